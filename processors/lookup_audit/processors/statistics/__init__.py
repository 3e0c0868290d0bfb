"""Statistics that several figures share."""
