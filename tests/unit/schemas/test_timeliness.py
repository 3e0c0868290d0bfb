from datetime import UTC, datetime, timedelta

import pytest

from lookup_audit.schemas.errors import Rejected
from lookup_audit.schemas.names import Reason
from lookup_audit.schemas.timeliness import is_late, is_storable_time, untimely

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
RETENTION = timedelta(days=30)
TICK = timedelta(microseconds=1)


def refusal(moment: datetime) -> Rejected | None:
    return untimely(moment, now=NOW, retention=RETENTION, event_id="e")


@pytest.mark.parametrize(
    "moment",
    [
        pytest.param(NOW, id="now"),
        pytest.param(NOW + timedelta(minutes=10), id="ten-minutes-ahead"),
        pytest.param(NOW - RETENTION, id="as-old-as-the-retention"),
    ],
)
def test_a_time_within_the_bounds_is_believed(moment: datetime) -> None:
    assert refusal(moment) is None


@pytest.mark.parametrize(
    ("moment", "reason"),
    [
        pytest.param(NOW + timedelta(minutes=10) + TICK, Reason.FUTURE_TIME, id="ahead"),
        pytest.param(datetime(2150, 1, 1, tzinfo=UTC), Reason.FUTURE_TIME, id="far-ahead"),
        pytest.param(NOW - RETENTION - TICK, Reason.EXPIRED, id="too-old"),
        pytest.param(datetime(1, 1, 1, tzinfo=UTC), Reason.EXPIRED, id="year-one"),
    ],
)
def test_a_time_beyond_the_bounds_is_refused(moment: datetime, reason: Reason) -> None:
    found = refusal(moment)

    assert found is not None
    assert (found.reason, found.field, found.event_id) == (reason, "occurred_at", "e")


def test_an_event_is_late_after_24_hours() -> None:
    assert is_late(NOW - timedelta(hours=24) - TICK, now=NOW)


def test_an_event_of_24_hours_is_not_yet_late() -> None:
    assert not is_late(NOW - timedelta(hours=24), now=NOW)


@pytest.mark.parametrize("text", [None, "1900-01-01T00:00:00Z", "2298-12-31T00:00:00Z"])
def test_a_document_time_the_store_can_hold_is_storable(text: str | None) -> None:
    assert is_storable_time(text)


@pytest.mark.parametrize("text", ["0001-01-01T00:00:00Z", "1899-12-31T00:00:00Z", "9999-01-01"])
def test_a_document_time_beyond_the_store_is_not_storable(text: str) -> None:
    assert not is_storable_time(text)
