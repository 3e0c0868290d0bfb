"""Thresholds from a gold set, fragility without one, and two strategies side by side.

Everything here is per model version and mode. Two modes' levels are on different rulers, so no
function takes lookups of several modes together.
"""
