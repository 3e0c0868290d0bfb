"""Processors stage of Lookup Audit."""
