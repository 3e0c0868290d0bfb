"""Deploy stage of Lookup Audit."""
