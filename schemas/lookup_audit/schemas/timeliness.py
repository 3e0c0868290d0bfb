"""Whether an event's time can be believed and kept: the one rule for every door.

A clock that runs ahead would open partitions and windows that have not happened; an event older
than the retention would be acknowledged and gone seconds later. Both are refused with a reason.
"""

from datetime import datetime, timedelta

from lookup_audit.schemas.errors import Rejected
from lookup_audit.schemas.names import Reason

MAX_AHEAD = timedelta(minutes=10)
LATE_AFTER = timedelta(hours=24)
# Two years: what most audits look back on.
DEFAULT_RETENTION_DAYS = 730


def untimely(
    occurred_at: datetime, *, now: datetime, retention: timedelta, event_id: str
) -> Rejected | None:
    """Refuse an event from the future or from before the retention, else ``None``.

    Args:
        occurred_at: Event time.
        now: The receiver's clock.
        retention: How long events are kept.
        event_id: For the answer.
    """
    if occurred_at - now > MAX_AHEAD:
        message = (
            f"occurred_at: {occurred_at.isoformat()} is more than 10 minutes ahead of the "
            f"receiver's clock ({now.isoformat()}); check the sender's clock"
        )
        return Rejected(Reason.FUTURE_TIME, "occurred_at", message, event_id)
    if now - occurred_at > retention:
        message = (
            f"occurred_at: {occurred_at.isoformat()} is older than the retention of "
            f"{retention.days} days; it would be removed at once"
        )
        return Rejected(Reason.EXPIRED, "occurred_at", message, event_id)
    return None


def is_late(occurred_at: datetime, *, now: datetime) -> bool:
    """Whether an event comes so late that closed windows must not change by it (over 24 h)."""
    return now - occurred_at > LATE_AFTER


def is_storable_time(text: str | None) -> bool:
    """Whether a document's time fits the store's years 1900 to 2299; unknown always fits.

    A year 0001 is some runtimes' word for "never": the lookup is kept, the time is unknown.
    """
    return text is None or "1900" <= text[:4] < "2299"
