"""Times as Grafana writes them in an address: ``now-7d``, milliseconds, or RFC 3339."""

import re
from datetime import UTC, datetime, timedelta
from typing import Final

from lookup_audit.dashboards.macros import Range
from lookup_audit.schemas.errors import LookupAuditError

_RELATIVE = re.compile(r"now(?:-(\d{1,6})([smhdwM]))?")
_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800, "M": 2592000}
_STEPS: Final = (60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400)
_POINTS: Final = 120
_MAX_YEARS: Final = 20


class TimeError(LookupAuditError):
    """A time in an address cannot be read."""


def read_range(since: str, until: str, now: datetime) -> Range:
    """The range of an address, with buckets that make about a hundred points.

    Args:
        since: Its start.
        until: Its end.
        now: The clock, with an offset.

    Raises:
        TimeError: One cannot be read, or the start is not before the end.
    """
    start, end = read_time(since, now), read_time(until, now)
    if not timedelta(0) < end - start <= timedelta(days=366 * _MAX_YEARS):
        raise TimeError("the start of the range must be before its end, by at most 20 years")
    wanted = (end - start).total_seconds() / _POINTS
    days = max(1, round(wanted / 86400)) * 86400
    return Range(start, end, next((step for step in _STEPS if step >= wanted), days))


def read_time(text: str, now: datetime) -> datetime:
    """One time.

    >>> at = datetime(2026, 1, 2, tzinfo=UTC)
    >>> read_time("now-1d", at).isoformat(), read_time("0", at).isoformat()
    ('2026-01-01T00:00:00+00:00', '1970-01-01T00:00:00+00:00')

    Raises:
        TimeError: It is none of the three forms.
    """
    text = text.strip()
    try:
        if match := _RELATIVE.fullmatch(text):
            seconds = int(match[1]) * _SECONDS[match[2]] if match[1] else 0
            return now - timedelta(seconds=seconds)
        if re.fullmatch(r"[0-9]{1,14}", text):
            return datetime.fromtimestamp(int(text) / 1000, UTC)
        found = datetime.fromisoformat(text)
        if found.tzinfo is None:
            # The page shows UTC, so it is what a reader types.
            found = found.replace(tzinfo=UTC)
        if not 1971 < found.year < 2105:
            raise ValueError
        return found.astimezone(UTC)
    except (ValueError, OverflowError, OSError) as error:
        raise TimeError(
            f"{text[:40]!r} is no time: write now-7d, 2026-11-01T00:00:00Z or milliseconds"
        ) from error
