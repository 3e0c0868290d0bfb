"""Stored history under another ruleset: levels, rates, cells and a grid, all in SQL."""
