"""Why the PRECISE rate moved between two periods: parts that add up, each with an interval."""
