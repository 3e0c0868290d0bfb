"""What two stages must agree on: events, verdicts, the pure rules, names and errors.

Imports nothing of the other stages and does no I/O.
"""
