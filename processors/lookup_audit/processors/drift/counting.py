"""From stored events to closed minutes: which minutes can be closed, and what is in them.

Time is the data's own. A minute is closed when every partition has stored something that reached
Kafka a lateness after it, so that a clock that jumps, a slow processor or a long outage closes
nothing too early. An event belongs to its minute if Kafka had it within the lateness: a property
of the event, so that a replay counts the same. Outcomes and judgements belong to the minute they
arrived in. Every stored event is counted exactly once: in its minute, or as late, or as missed.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from lookup_audit.processors.drift.config import DriftConfig
from lookup_audit.processors.drift.series import SeriesKey
from lookup_audit.processors.drift.telling import EPOCH
from lookup_audit.processors.reading import Reader, rows
from lookup_audit.schemas.names import ALL, DriftMetric

# How far back an outcome's or a judgement's lookup is searched.
_RUN_DAYS, _JUDGED_DAYS = 1, 60


@dataclass(frozen=True, slots=True)
class Bounds:
    """What one step closes.

    Args:
        closed_from: First minute.
        closed_to: End of the last minute.
        seen_from: Rows stored until here were seen by the steps before.
        seen_to: Rows stored until here are seen by this step.
        is_silent: All that was on time is closed with it, and nothing new comes in.
    """

    closed_from: datetime
    closed_to: datetime
    seen_from: datetime
    seen_to: datetime
    is_silent: bool

    @property
    def closes(self) -> bool:
        """Whether there is any minute in it."""
        return self.closed_to > self.closed_from


class MinuteRow(NamedTuple):
    """One row of ``audit_store.drift_minutes``, without its step."""

    minute: datetime
    key: SeriesKey
    n: int
    k: int
    late: int = 0
    missed: int = 0


_ARRIVED = "least(toDateTime64(kafka_timestamp, 6, 'UTC'), ingested_at)"

_FIRST = """
SELECT count() AS n, toUnixTimestamp(toStartOfMinute(min(occurred_at))) AS first
FROM audit_store.lookups WHERE NOT late
"""

# The slowest partition that is not idle; its newest record has reached Kafka at this time.
_WATERMARK = f"""
SELECT
    (SELECT count() FROM audit_store.lookups
     WHERE ingested_at > {{idle:DateTime64(6, 'UTC')}}) AS fresh,
    (SELECT toUnixTimestamp64Micro(min(newest)) FROM (
        SELECT max({_ARRIVED}) AS newest FROM audit_store.lookups
        WHERE ingested_at > {{idle:DateTime64(6, 'UTC')}}
          AND ingested_at <= {{seen:DateTime64(6, 'UTC')}}
        GROUP BY kafka_cluster, kafka_topic, kafka_partition)) AS slowest,
    (SELECT toUnixTimestamp64Micro(max({_ARRIVED})) FROM audit_store.lookups
     WHERE ingested_at <= {{seen:DateTime64(6, 'UTC')}}) AS newest
"""

_ON_TIME = f"""
NOT late AND {_ARRIVED} < toStartOfMinute(occurred_at) + INTERVAL 60 + {{lateness:UInt32}} SECOND
"""

_LOOKUPS = f"""
SELECT
    toUnixTimestamp(toStartOfMinute(occurred_at)) AS minute,
    tenant, service, mode, model_version, quality_basis AS basis,
    countIf(on_time) AS n,
    countIf(on_time AND reported_level = 'PRECISE') AS precise,
    countIf(on_time AND level_check != 'unverifiable') AS verified,
    countIf(on_time AND level_check = 'fail') AS failed,
    countIf(NOT on_time) AS came_late
FROM (SELECT *, {_ON_TIME} AS on_time FROM audit_store.lookups)
WHERE mode IN ('dense', 'hybrid')
  AND occurred_at >= {{from:DateTime64(6, 'UTC')}} AND occurred_at < {{to:DateTime64(6, 'UTC')}}
  AND ingested_at <= {{seen:DateTime64(6, 'UTC')}}
GROUP BY minute, tenant, service, mode, model_version, basis
"""

_LATECOMERS = f"""
SELECT
    toUnixTimestamp(toStartOfMinute(occurred_at)) AS minute,
    tenant, service, mode, model_version, quality_basis AS basis,
    countIf(NOT on_time) AS came_late,
    countIf(on_time) AS missed
FROM (SELECT *, {_ON_TIME} AS on_time FROM audit_store.lookups)
WHERE mode IN ('dense', 'hybrid')
  AND occurred_at < {{from:DateTime64(6, 'UTC')}}
  AND ingested_at > {{seen_from:DateTime64(6, 'UTC')}}
  AND ingested_at <= {{seen:DateTime64(6, 'UTC')}}
GROUP BY minute, tenant, service, mode, model_version, basis
"""

# What arrived in the minutes of this step, or was stored too late to be counted in its own.
_ARRIVING = f"""
    {_ARRIVED} < {{to:DateTime64(6, 'UTC')}}
    AND ingested_at <= {{seen:DateTime64(6, 'UTC')}}
    AND ({_ARRIVED} >= {{from:DateTime64(6, 'UTC')}}
         OR ingested_at > {{seen_from:DateTime64(6, 'UTC')}})
    AND ingested_at >= {{from:DateTime64(6, 'UTC')}}
"""

_OUTCOMES = f"""
WITH
    came AS (
        SELECT
            tenant,
            arrayJoin(arrayDistinct(lookup_event_ids)) AS event_id,
            action = 'refused' AS refused,
            late AS is_late,
            {_ARRIVED} AS arrived,
            (NOT late AND {_ARRIVED} >= {{from:DateTime64(6, 'UTC')}}) AS counts
        FROM audit_store.outcomes WHERE {_ARRIVING}
    )
SELECT
    toUnixTimestamp(toStartOfMinute(came.arrived)) AS minute,
    l.tenant AS tenant, l.service AS service, l.mode AS mode, l.model_version AS model_version,
    countIf(counts) AS n,
    countIf(counts AND refused) AS refusals,
    countIf(counts AND level = 'NONE') AS low,
    countIf(counts AND level = 'NONE' AND refused) AS low_refused,
    countIf(is_late AND NOT counts) AS came_late,
    countIf(NOT is_late AND NOT counts) AS missed
FROM came INNER JOIN (
    SELECT tenant, event_id, service, mode, model_version, reported_level AS level
    FROM audit_store.lookups
    WHERE occurred_at >= {{from:DateTime64(6, 'UTC')}} - INTERVAL {_RUN_DAYS} DAY
      AND id_hash IN (SELECT cityHash64('lookup', tenant, event_id) FROM came)
) AS l ON l.tenant = came.tenant AND l.event_id = came.event_id
GROUP BY minute, tenant, service, mode, model_version
"""

# An answer counts with its first judgement that says something; later ones correct the cells, and
# a detector must see each answer once.
_JUDGEMENTS = f"""
WITH
    came AS (
        SELECT tenant, outcome_id FROM audit_store.judgements
        WHERE {_ARRIVING} AND verdict != 'cannot_tell'
    ),
    first AS (
        SELECT
            tenant, outcome_id,
            min({_ARRIVED}) AS arrived,
            argMin(verdict, ({_ARRIVED}, judgement_id)) AS said
        FROM audit_store.judgements
        WHERE (tenant, outcome_id) IN (SELECT tenant, outcome_id FROM came)
          AND verdict != 'cannot_tell'
          AND ingested_at <= {{seen:DateTime64(6, 'UTC')}}
        GROUP BY tenant, outcome_id
        HAVING arrived >= {{from:DateTime64(6, 'UTC')}} AND arrived < {{to:DateTime64(6, 'UTC')}}
    ),
    answered AS (
        SELECT o.tenant AS tenant, arrayJoin(o.lookup_event_ids) AS event_id, arrived, said
        FROM audit_store.outcomes AS o
        INNER JOIN first ON first.tenant = o.tenant AND first.outcome_id = o.outcome_id
        WHERE o.action = 'answered' AND o.outcome_id IN (SELECT outcome_id FROM first)
    )
SELECT
    toUnixTimestamp(toStartOfMinute(a.arrived)) AS minute,
    l.tenant AS tenant, l.service AS service, l.mode AS mode, l.model_version AS model_version,
    count() AS n,
    countIf(a.said = 'incorrect') AS wrong
FROM answered AS a INNER JOIN (
    SELECT tenant, event_id, service, mode, model_version
    FROM audit_store.lookups
    WHERE reported_level = 'PRECISE'
      AND occurred_at >= {{from:DateTime64(6, 'UTC')}} - INTERVAL {_JUDGED_DAYS} DAY
      AND id_hash IN (SELECT cityHash64('lookup', tenant, event_id) FROM answered)
) AS l ON l.tenant = a.tenant AND l.event_id = a.event_id
GROUP BY minute, tenant, service, mode, model_version
"""


def first_minute(reader: Reader) -> datetime | None:
    """The minute of the oldest lookup that was not late; ``None`` without one."""
    found = rows(reader, _FIRST)[0]
    return _minute(found["first"]) if found["n"] else None


def next_bounds(
    reader: Reader,
    config: DriftConfig,
    closed_to: datetime,
    seen_to: datetime,
    now: datetime,
    longest: timedelta,
) -> Bounds | None:
    """What the next step may close, perhaps nothing; ``None`` before any lookup is settled.

    Args:
        reader: The store.
        config: Lateness and patience.
        closed_to: Where the step before ended.
        seen_to: Rows stored until here were seen by it.
        now: The time now; it only ever delays.
        longest: What a step closes at most.
    """
    seen = now - timedelta(seconds=config.hold_seconds)
    idle = now - timedelta(seconds=config.idle_seconds)
    found = rows(reader, _WATERMARK, {"idle": text(idle), "seen": text(seen)})[0]
    if not found["newest"]:
        return None
    is_silent = not found["fresh"]
    if not is_silent:
        if not found["slowest"]:
            return None
        mark = _instant(found["slowest"]) - config.lateness
        end = mark.replace(second=0, microsecond=0)
    else:
        # All is silent: whatever was on time has been stored, and nothing beyond it is closed.
        mark = _instant(found["newest"])
        end = mark.replace(second=0, microsecond=0) + timedelta(minutes=1)
    closed = min(max(end, closed_to), closed_to + longest)
    return Bounds(closed_to, closed, seen_to, max(seen, seen_to), is_silent and closed >= end)


def count(reader: Reader, config: DriftConfig, bounds: Bounds) -> list[MinuteRow]:
    """What the step closes, and what came too late for the steps before.

    Args:
        reader: The store.
        config: The lateness.
        bounds: Of the step; the same bounds give the same rows, whenever they are asked for.
    """
    values = {
        "from": text(bounds.closed_from),
        "to": text(bounds.closed_to),
        "seen_from": text(bounds.seen_from),
        "seen": text(bounds.seen_to),
        "lateness": config.lateness_seconds,
    }
    found: list[MinuteRow] = []
    for row in rows(reader, _LOOKUPS, values):
        found += _of_lookups(row)
    for row in rows(reader, _LATECOMERS, values):
        key = _key(row, DriftMetric.PRECISE, ALL)
        found.append(MinuteRow(_minute(row["minute"]), key, 0, 0, row["came_late"], row["missed"]))
    for row in rows(reader, _OUTCOMES, values):
        minute, late = _minute(row["minute"]), (row["came_late"], row["missed"])
        refusal = _key(row, DriftMetric.REFUSAL, ALL)
        found.append(MinuteRow(minute, refusal, row["n"], row["refusals"], *late))
        low = _key(row, DriftMetric.LOW_SCORE_REFUSAL, ALL)
        found.append(MinuteRow(minute, low, row["low"], row["low_refused"]))
    for row in rows(reader, _JUDGEMENTS, values):
        key = _key(row, DriftMetric.HIGH_SCORE_ERROR, ALL)
        found.append(MinuteRow(_minute(row["minute"]), key, row["n"], row["wrong"]))
    return merged(found)


def merged(found: list[MinuteRow]) -> list[MinuteRow]:
    """One row for each minute and series, in order; rows that say nothing are left out."""
    totals: dict[tuple[datetime, SeriesKey], list[int]] = {}
    for row in found:
        total = totals.setdefault((row.minute, row.key), [0, 0, 0, 0])
        for index, value in enumerate(row[2:]):
            total[index] += value
    return [MinuteRow(*where, *total) for where, total in sorted(totals.items()) if any(total)]


def _of_lookups(row: dict[str, Any]) -> list[MinuteRow]:
    minute = _minute(row["minute"])
    found = [
        MinuteRow(
            minute, _key(row, DriftMetric.PRECISE, ALL), row["n"], row["precise"], row["came_late"]
        ),
        MinuteRow(minute, _key(row, DriftMetric.MISMATCH, ALL), row["verified"], row["failed"]),
    ]
    if row["basis"]:
        # Without a basis there is no quality, and nothing that could be PRECISE.
        key = _key(row, DriftMetric.PRECISE, row["basis"])
        found.append(MinuteRow(minute, key, row["n"], row["precise"]))
    return found


def _key(row: dict[str, Any], metric: DriftMetric, basis: str) -> SeriesKey:
    return SeriesKey(
        metric, row["tenant"], row["service"], row["mode"], row["model_version"], basis
    )


def text(when: datetime) -> str:
    """An instant as the engine takes it."""
    return f"{when:%Y-%m-%d %H:%M:%S.%f}"


def _minute(seconds: int) -> datetime:
    return _instant(int(seconds) * 1_000_000)


def _instant(micros: int) -> datetime:
    return EPOCH + timedelta(microseconds=int(micros))
