"""Dashboards stage of Lookup Audit."""
