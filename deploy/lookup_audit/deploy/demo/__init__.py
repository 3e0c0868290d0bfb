"""The demo: a real retrieval service over the handbook, an agent, and gold judgements.

``run.run_demo`` drives it. Nothing is imported here, since the demo's libraries are an extra.
"""
