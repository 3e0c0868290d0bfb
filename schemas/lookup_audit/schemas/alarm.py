"""DriftAlarm: a stratum's rate has moved, since when, by how much, and what became of it."""

from typing import Annotated, Literal

from pydantic import Field

from lookup_audit.schemas.fields import Count, Finite, Id, Instant, Name, Record, Unit
from lookup_audit.schemas.lookup import SchemaVersion
from lookup_audit.schemas.names import DriftMetric, Mode

AlarmState = Literal["open", "recovered", "accepted"]
Points = Annotated[Finite, Field(ge=-100, le=100, description="percentage points")]


class DriftAlarm(Record):
    """One change of one rate in one stratum.

    It is sent when it opens, when its size is known better, and once when it is closed; all have
    one ``alarm_id`` and a rising ``revision``.

    Args:
        alarm_id: The same for one change, also after a restart or a replay.
        revision: 1 when it opened, then rising.
        state: Open, or why it is closed.
        metric: Which rate.
        tenant: Of the stratum; ``*`` in a roll-up over strata.
        service: Of the stratum; ``*`` in a roll-up over strata.
        mode: Of the stratum. Modes are never pooled.
        model_version: Of the stratum; ``*`` in a roll-up over strata.
        quality_basis: Of the stratum; ``*`` where all bases of the mode are counted.
        direction: Where the rate went.
        started_at: Estimate of when the change began.
        detected_at: End of the minute that raised the alarm.
        closed_at: End of the minute that closed it.
        reference_rate: What the stratum's season and reference had expected since the start.
        observed_rate: What was seen since the start.
        change_points: Observed minus expected.
        change_low: Lower end of its 95 % interval.
        change_high: Upper end of its 95 % interval.
        calls: Calls since the start.
        successes: How many of them counted for the rate.
        reference_calls: Calls that the reference was learned from.
        design_effect: How much more the rate varies than independent calls would let it.
        compared_to: The model version the reference is of, where it is a predecessor's.
        accepted_by: Who said that the new rate is meant.
        summary: The alarm in one sentence.
        board_url: A page that shows the stratum.
    """

    schema_version: SchemaVersion | None = None
    alarm_id: Id
    revision: Count
    state: AlarmState
    metric: DriftMetric
    tenant: Name
    service: Name
    mode: Mode
    model_version: Name
    quality_basis: Name
    direction: Literal["up", "down"]
    started_at: Instant
    detected_at: Instant
    closed_at: Instant | None = None
    reference_rate: Unit
    observed_rate: Unit
    change_points: Points
    change_low: Points
    change_high: Points
    calls: Count
    successes: Count
    reference_calls: Count
    design_effect: Finite
    compared_to: Name | None = None
    accepted_by: Name | None = None
    summary: str
    board_url: str | None = None
