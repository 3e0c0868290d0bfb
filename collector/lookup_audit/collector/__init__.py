"""Collector stage of Lookup Audit."""
