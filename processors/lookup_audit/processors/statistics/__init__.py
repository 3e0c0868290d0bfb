"""Statistics that several analyses share: intervals, paired tests, separation of two groups."""
