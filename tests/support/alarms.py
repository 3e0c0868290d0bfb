"""A drift alarm to start a test from."""

from datetime import UTC, datetime, timedelta
from typing import Any

from lookup_audit.schemas.alarm import DriftAlarm
from lookup_audit.schemas.names import DriftMetric

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)


def make_alarm(**over: Any) -> DriftAlarm:
    values: dict[str, Any] = {
        "alarm_id": "8edd08fc9b3e7b3b",
        "revision": 1,
        "state": "open",
        "metric": DriftMetric.PRECISE,
        "tenant": "acme",
        "service": "kb",
        "mode": "dense",
        "model_version": "m1",
        "quality_basis": "*",
        "direction": "down",
        "started_at": NOW - timedelta(hours=1),
        "detected_at": NOW,
        "reference_rate": 0.6,
        "observed_rate": 0.4,
        "change_points": -20.0,
        "change_low": -24.0,
        "change_high": -16.0,
        "calls": 500,
        "successes": 200,
        "reference_calls": 5000,
        "design_effect": 1.0,
        "summary": "The PRECISE rate fell.",
        "board_url": "http://board/?var-tenant=acme",
    }
    return DriftAlarm(**(values | over))
