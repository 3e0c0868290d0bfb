"""What an alarm says: the transition of an incident as a DriftAlarm, with one plain sentence."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final, cast

from lookup_audit.processors.drift.family import Told
from lookup_audit.processors.drift.incident import change_interval
from lookup_audit.schemas.alarm import AlarmState, DriftAlarm
from lookup_audit.schemas.names import ALL, DriftMetric, Mode

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
NAMES: Final = {
    DriftMetric.PRECISE: "PRECISE rate",
    DriftMetric.MISMATCH: "mismatch rate",
    DriftMetric.REFUSAL: "refusal rate",
    DriftMetric.HIGH_SCORE_ERROR: "high-score-error rate",
    DriftMetric.LOW_SCORE_REFUSAL: "low-score-refusal rate",
}
_STATES: Final[dict[str, AlarmState]] = {
    "opened": "open",
    "updated": "open",
    "recovered": "recovered",
    "accepted": "accepted",
}


def instant(minute: int) -> datetime:
    """The start of a minute."""
    return EPOCH + timedelta(minutes=minute)


def minute_of(when: datetime) -> int:
    """The minute an instant lies in."""
    return (when - EPOCH) // timedelta(minutes=1)


def drift_alarm(
    told: Told,
    board_url: Callable[[Told], str | None],
    accepted_by: str | None = None,
) -> DriftAlarm:
    """The event of one transition; the same whenever the same minutes are read again.

    Args:
        told: What happened.
        board_url: Gives the page that shows the stratum.
        accepted_by: Who accepted it, of an acceptance.
    """
    what, incident, minute, around = told.transition
    change, low, high = change_interval(incident, around)
    n = max(incident.n, 1.0)
    state = _STATES[what]
    reference = told.series.reference if told.series is not None else None
    key = told.key
    alarm = DriftAlarm(
        schema_version="1.0",
        alarm_id=incident.alarm_id,
        revision=incident.revision,
        state=state,
        metric=key.metric,
        tenant=key.tenant,
        service=key.service,
        mode=cast(Mode, key.mode),
        model_version=key.model_version,
        quality_basis=key.quality_basis,
        direction="up" if incident.rising else "down",
        started_at=instant(incident.started),
        detected_at=instant(incident.opened + 1),
        closed_at=None if state == "open" else instant(minute + 1),
        reference_rate=_unit(incident.expected / n),
        observed_rate=_unit(incident.k / n),
        change_points=100.0 * change,
        change_low=100.0 * low,
        change_high=100.0 * high,
        calls=round(incident.n),
        successes=round(incident.k),
        reference_calls=round(reference.n) if reference is not None else 0,
        design_effect=around.dispersion,
        compared_to=(reference.version or None) if reference is not None else None,
        accepted_by=accepted_by,
        summary="",
        board_url=board_url(told),
    )
    return alarm.model_copy(update={"summary": summary(alarm)})


def summary(alarm: DriftAlarm) -> str:
    """The alarm in one sentence."""
    where = stratum(alarm)
    verb = "rose" if alarm.change_points >= 0 else "fell"
    size = (
        f"{verb} by {abs(alarm.change_points):.1f} points "
        f"(95 %: {alarm.change_low:+.1f} to {alarm.change_high:+.1f})"
    )
    seen = (
        f"{100 * alarm.observed_rate:.1f} % in {alarm.calls} calls where "
        f"{100 * alarm.reference_rate:.1f} % was expected"
    )
    if alarm.compared_to and alarm.compared_to != alarm.model_version:
        seen += f" from {alarm.compared_to}"
    start = f"{alarm.started_at:%Y-%m-%d %H:%M} UTC"
    text = f"The {NAMES[alarm.metric]} of {where} {size} since about {start}: {seen}."
    if alarm.state == "recovered":
        return f"Over: {text}"
    if alarm.state == "accepted":
        return f"Accepted{f' by {alarm.accepted_by}' if alarm.accepted_by else ''}: {text}"
    return text


def stratum(alarm: DriftAlarm) -> str:
    """The stratum in words."""
    if alarm.tenant == alarm.service == ALL:
        return f"all strata of mode {alarm.mode} together"
    parts = [alarm.tenant or "no tenant", alarm.service or "no service", f"mode {alarm.mode}"]
    parts.append(f"model {alarm.model_version}")
    if alarm.quality_basis != ALL:
        parts.append(f"basis {alarm.quality_basis}")
    return ", ".join(parts)


def _unit(value: float) -> float:
    return min(max(value, 0.0), 1.0)
