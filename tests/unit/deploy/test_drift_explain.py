import argparse
import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from lookup_audit.deploy.cli.drift_explain import add_options, alarm_comparison
from lookup_audit.processors.reading import QueryRefusedError
from lookup_audit.schemas.errors import ConfigError

NOW = datetime(2026, 12, 1, tzinfo=UTC)
ALARM = {
    "alarm_id": "0123456789abcdef",
    "metric": "precise_rate",
    "tenant": "acme",
    "service": "*",
    "mode": "hybrid",
    "model_version": "m@2",
    "quality_basis": "*",
    "compared_to": "",
    "started_at": "2026-11-30 12:00:00.000000",
    "closed_at": None,
}


class Alarms:
    """A reader of these alarms, or of a store that has no such view."""

    def __init__(self, *alarms: dict[str, Any], has_view: bool = True):
        self.alarms = alarms
        self.has_view = has_view

    def raw(
        self, sql: str, *, output_format: str, parameters: Mapping[str, Any] | None = None
    ) -> bytes:
        if not self.has_view:
            raise QueryRefusedError("audit.drift_alarms (UNKNOWN_TABLE)")
        assert "audit.drift_alarms" in sql
        return "\n".join(map(json.dumps, self.alarms)).encode()

    def close(self) -> None:
        pass


def options(*arguments: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_options(parser)
    return parser.parse_args(["0123", *arguments])


def test_an_open_alarm_is_compared_with_the_weeks_before_it() -> None:
    found = alarm_comparison(Alarms(ALARM), options(), NOW)
    started = datetime(2026, 11, 30, 12, tzinfo=UTC)
    assert (found.after.scope.since, found.after.scope.until) == (started, NOW)
    assert found.before.scope.until == started
    assert found.before.scope.since == started - timedelta(days=28)
    for stratum in (found.before, found.after):
        assert (stratum.scope.tenant, stratum.service, stratum.mode) == ("acme", "", "hybrid")
        assert (stratum.model_version, stratum.quality_basis) == ("m@2", "")


def test_a_closed_alarm_ends_where_it_was_closed() -> None:
    closed = ALARM | {"closed_at": "2026-11-30 18:00:00.000000"}
    found = alarm_comparison(Alarms(closed), options(), NOW)
    assert found.after.scope.until == datetime(2026, 11, 30, 18, tzinfo=UTC)


def test_a_new_version_is_compared_with_its_predecessor() -> None:
    found = alarm_comparison(Alarms(ALARM | {"compared_to": "m@1"}), options(), NOW)
    assert (found.before.model_version, found.after.model_version) == ("m@1", "m@2")
    # It may still run beside the new one.
    assert found.before.scope.until == found.after.scope.until == NOW


def test_another_reference_can_be_named() -> None:
    found = alarm_comparison(
        Alarms(ALARM),
        options("--against-from", "2026-10-01T00:00:00Z", "--against-to", "2026-10-08T00:00:00Z"),
        NOW,
    )
    assert found.before.scope.since == datetime(2026, 10, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("alarms", "arguments", "reason"),
    [
        (Alarms(), (), "there is no alarm 0123"),
        (Alarms(ALARM, ALARM), (), "any of several"),
        (Alarms(ALARM | {"metric": "refusal_rate"}), (), "only a change of the PRECISE rate"),
        (Alarms(ALARM | {"mode": "*"}), (), "modes are never pooled"),
        (Alarms(has_view=False), (), "older than this version"),
        (Alarms(ALARM), ("--mode", "dense"), "an alarm says itself"),
        (Alarms(ALARM), ("--against-to", "2026-12-01T00:00:00Z"), "overlap"),
    ],
)
def test_an_alarm_that_cannot_be_explained_is_refused(
    alarms: Alarms, arguments: tuple[str, ...], reason: str
) -> None:
    with pytest.raises(ConfigError, match=reason):
        alarm_comparison(alarms, options(*arguments), NOW)
