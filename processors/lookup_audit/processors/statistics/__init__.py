"""Intervals and tests that the figures rest on: pure, each with the source of its formula."""
