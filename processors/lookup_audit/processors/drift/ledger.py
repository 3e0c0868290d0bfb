"""The watcher's tables: what was closed, what is known, what was told.

A step is written in an order that a kill cannot harm: its minutes, its alarms, its state, and last
the row that makes it count. What is without that row is read by nobody.
"""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pyarrow as pa

from lookup_audit.processors.drift.codec import read_rollup, read_series, rollup_text, series_text
from lookup_audit.processors.drift.config import DriftConfig
from lookup_audit.processors.drift.counting import Bounds, MinuteRow
from lookup_audit.processors.drift.family import Count, Family
from lookup_audit.processors.drift.reference import calls_needed
from lookup_audit.processors.drift.series import Series, SeriesKey, band_of
from lookup_audit.processors.drift.telling import instant
from lookup_audit.processors.store import Store
from lookup_audit.schemas.alarm import DriftAlarm
from lookup_audit.schemas.names import DriftMetric

_MICROS: Final = pa.timestamp("us", tz="UTC")
_MILLIS: Final = pa.timestamp("ms", tz="UTC")
_SECONDS: Final = pa.timestamp("s", tz="UTC")
_KEY_COLUMNS: Final = (
    "metric",
    "tenant",
    "service",
    "mode",
    "model_version",
    "quality_basis",
)
_HOLDING = "(step, epoch) IN (SELECT step, max(epoch) FROM audit_store.drift_steps GROUP BY step)"


@dataclass(frozen=True, slots=True)
class Step:
    """A step that counts.

    Args:
        number: Dense from 1.
        epoch: Of the leader who made it.
        closed_from: First minute closed.
        closed_to: End of the last one.
        seen_to: Rows stored until here have been seen.
        acceptances: Alarms whose acceptance took effect, ``minute:alarm_id``.
        config: What the user had set.
    """

    number: int
    epoch: int
    closed_from: datetime
    closed_to: datetime
    seen_to: datetime
    acceptances: tuple[str, ...]
    config: DriftConfig


class Ledger:
    """Reads and writes the watcher's tables.

    Args:
        store: A migrated store.
    """

    def __init__(self, store: Store):
        self._store = store

    def last_step(self) -> Step | None:
        """The newest step that counts."""
        found = self._steps("ORDER BY step DESC, epoch DESC LIMIT 1", {})
        return found[0] if found else None

    def steps_after(self, number: int) -> list[Step]:
        """Steps that count, in order."""
        return self._steps(
            f"WHERE step > {{step:UInt64}} AND {_HOLDING} ORDER BY step", {"step": number}
        )

    def _steps(self, rest: str, values: dict[str, Any]) -> list[Step]:
        found = self._store.query(
            "SELECT step, epoch, toUnixTimestamp(closed_from), toUnixTimestamp(closed_to), "
            f"toUnixTimestamp64Micro(seen_to), acceptances, settings "
            f"FROM audit_store.drift_steps {rest}",
            values,
        )
        return [
            Step(
                int(step),
                int(epoch),
                datetime.fromtimestamp(start, UTC),
                datetime.fromtimestamp(end, UTC),
                _instant(seen),
                tuple(accepted),
                DriftConfig.model_validate_json(settings),
            )
            for step, epoch, start, end, seen, accepted, settings in found
        ]

    def restore(self, family: Family) -> int:
        """Give a family the newest checkpoint; returns the step it is of, 0 without one."""
        found = self._store.query(
            "SELECT step, epoch FROM audit_store.drift_steps WHERE checkpoint AND (step, epoch) IN "
            "(SELECT step, epoch FROM audit_store.drift_states) "
            f"AND {_HOLDING} ORDER BY step DESC LIMIT 1"
        )
        if not found:
            family.restore((), ())
            return 0
        step, epoch = found[0]
        states = self._store.query(
            "SELECT DISTINCT kind, state FROM audit_store.drift_states "
            "WHERE step = {step:UInt64} AND epoch = {epoch:UInt64} ORDER BY kind, state",
            {"step": step, "epoch": epoch},
        )
        family.restore(
            [read_series(state) for kind, state in states if kind == "series"],
            [read_rollup(state) for kind, state in states if kind == "rollup"],
        )
        return int(step)

    def counts(self, step: Step) -> list[Count]:
        """The closed minutes of a step."""
        found = self._store.query(
            f"SELECT toUnixTimestamp(minute), {', '.join(_KEY_COLUMNS)}, any(k), any(n) "
            "FROM audit_store.drift_minutes "
            "WHERE step = {step:UInt64} AND epoch = {epoch:UInt64} AND n > 0 "
            f"GROUP BY minute, {', '.join(_KEY_COLUMNS)} ORDER BY minute",
            {"step": step.number, "epoch": step.epoch},
        )
        return [
            Count(int(seconds) // 60, SeriesKey(DriftMetric(metric), *names), int(k), int(n))
            for seconds, metric, *names, k, n in found
        ]

    def pending_acceptances(self) -> list[tuple[str, datetime, str]]:
        """Acceptances that no step has taken up: alarm, time and by whom."""
        found = self._store.query(
            "SELECT alarm_id, toUnixTimestamp64Micro(min(accepted_at)), "
            "argMin(accepted_by, (accepted_at, accepted_by)) "
            "FROM audit_store.drift_acceptances WHERE alarm_id NOT IN "
            "(SELECT splitByChar(':', arrayJoin(acceptances))[2] FROM audit_store.drift_steps "
            f"WHERE {_HOLDING}) GROUP BY alarm_id ORDER BY alarm_id"
        )
        return [(alarm, _instant(micros), by) for alarm, micros, by in found]

    def write_minutes(self, number: int, epoch: int, found: Sequence[MinuteRow]) -> None:
        """The step's minutes."""
        if not found:
            return
        columns: dict[str, pa.Array] = _stamp(number, epoch, len(found))
        columns["minute"] = pa.array([row.minute for row in found], _SECONDS)
        columns |= _keys([row.key for row in found])
        for name in ("n", "k", "late", "missed"):
            columns[name] = pa.array([getattr(row, name) for row in found], pa.uint64())
        self._insert("drift_minutes", columns, number, epoch)

    def write_alarms(self, number: int, epoch: int, alarms: Sequence[DriftAlarm]) -> None:
        """What the step told."""
        if not alarms:
            return
        columns: dict[str, pa.Array] = _stamp(number, epoch, len(alarms))
        for name, kind in _ALARM_COLUMNS.items():
            values = [getattr(alarm, name) for alarm in alarms]
            if kind == pa.string():
                values = [str(value or "") for value in values]
            columns[name] = pa.array(values, kind)
        columns["event"] = pa.array([alarm.model_dump_json() for alarm in alarms], pa.string())
        self._insert("drift_alarms", columns, number, epoch)

    def write_checkpoint(self, number: int, epoch: int, family: Family) -> None:
        """Everything that is known after the step."""
        kinds = ["series"] * len(family.series) + ["rollup"] * len(family.rollups)
        states = [series_text(one) for one in family.series.values()]
        states += [rollup_text(one) for one in family.rollups.values()]
        columns: dict[str, pa.Array] = _stamp(number, epoch, len(kinds))
        columns["kind"] = pa.array(kinds, pa.string())
        columns["state"] = pa.array(states, pa.string())
        self._insert("drift_states", columns, number, epoch)

    def write_strata(
        self, number: int, epoch: int, series: Iterable[Series], config: DriftConfig, now: datetime
    ) -> None:
        """The series that had calls, for people to look at."""
        found = list(series)
        if not found:
            return
        columns: dict[str, pa.Array] = _stamp(number, epoch, len(found))
        columns |= _keys([one.key for one in found])
        lines = [_stratum(one, config) for one in found]
        for name, kind in _STRATA_COLUMNS.items():
            columns[name] = pa.array([line[name] for line in lines], kind)
        columns["updated_at"] = pa.array([now] * len(found), _MILLIS)
        self._insert("drift_strata", columns, number, epoch)

    def commit(
        self,
        number: int,
        epoch: int,
        holder: str,
        bounds: Bounds,
        acceptances: Sequence[str],
        config: DriftConfig,
        *,
        has_checkpoint: bool,
        now: datetime,
    ) -> None:
        """The row that makes the step count."""
        columns: dict[str, pa.Array] = _stamp(number, epoch, 1)
        columns |= {
            "holder": pa.array([holder], pa.string()),
            "closed_from": pa.array([bounds.closed_from], _SECONDS),
            "closed_to": pa.array([bounds.closed_to], _SECONDS),
            "seen_from": pa.array([bounds.seen_from], _MICROS),
            "seen_to": pa.array([bounds.seen_to], _MICROS),
            "acceptances": pa.array([list(acceptances)], pa.list_(pa.string())),
            "settings": pa.array([config.model_dump_json()], pa.string()),
            "checkpoint": pa.array([has_checkpoint], pa.bool_()),
            "written_at": pa.array([now], _MILLIS),
        }
        self._insert("drift_steps", columns, number, epoch)

    def undelivered(self, channel: str, after_step: int = 0) -> list[DriftAlarm]:
        """Alarm events of steps that count, which a channel has not got, oldest first."""
        found = self._store.query(
            f"SELECT event FROM audit_store.drift_alarms FINAL WHERE {_HOLDING} "
            "AND step > {step:UInt64} AND (alarm_id, revision) NOT IN "
            "(SELECT alarm_id, revision FROM audit_store.drift_deliveries "
            "WHERE channel = {channel:String}) ORDER BY step, detected_at, alarm_id, revision",
            {"channel": channel, "step": after_step},
        )
        return [DriftAlarm.model_validate_json(event) for (event,) in found]

    def open_alarms(self) -> list[DriftAlarm]:
        """The newest event of each alarm that is open."""
        found = self._store.query(
            "SELECT event FROM (SELECT alarm_id, event, state FROM audit_store.drift_alarms "
            f"WHERE {_HOLDING} ORDER BY revision DESC, step DESC LIMIT 1 BY alarm_id) "
            "WHERE state = 'open' ORDER BY alarm_id"
        )
        return [DriftAlarm.model_validate_json(event) for (event,) in found]

    def write_deliveries(self, channel: str, alarms: Sequence[DriftAlarm], now: datetime) -> None:
        """Remember that a channel has got these."""
        count = len(alarms)
        columns = {
            "channel": pa.array([channel] * count, pa.string()),
            "alarm_id": pa.array([alarm.alarm_id for alarm in alarms], pa.string()),
            "revision": pa.array([alarm.revision for alarm in alarms], pa.uint64()),
            "delivered_at": pa.array([now] * count, _MILLIS),
        }
        ids = ",".join(f"{a.alarm_id}/{a.revision}" for a in alarms)
        token = f"delivered;{channel};{hashlib.sha256(ids.encode()).hexdigest()}"
        self._store.insert("audit_store.drift_deliveries", pa.table(columns), token=token)

    def _insert(self, table: str, columns: dict[str, pa.Array], number: int, epoch: int) -> None:
        self._store.insert(
            f"audit_store.{table}", pa.table(columns), token=f"{table};{number};{epoch}"
        )


def acceptance_row(
    alarm_id: str, *, accepted_by: str, comment: str, accepted_at: datetime
) -> pa.Table:
    """A row of ``drift_acceptances``."""
    return pa.table(
        {
            "alarm_id": pa.array([alarm_id], pa.string()),
            "accepted_at": pa.array([accepted_at], _MICROS),
            "accepted_by": pa.array([accepted_by], pa.string()),
            "comment": pa.array([comment], pa.string()),
        }
    )


_TEXT, _NUMBER, _WHOLE = pa.string(), pa.float64(), pa.uint64()
_ALARM_COLUMNS: Final = {
    "alarm_id": _TEXT,
    "revision": _WHOLE,
    "state": _TEXT,
    "metric": _TEXT,
    "tenant": _TEXT,
    "service": _TEXT,
    "mode": _TEXT,
    "model_version": _TEXT,
    "quality_basis": _TEXT,
    "direction": _TEXT,
    "started_at": _MICROS,
    "detected_at": _MICROS,
    "closed_at": _MICROS,
    "reference_rate": _NUMBER,
    "observed_rate": _NUMBER,
    "change_points": _NUMBER,
    "change_low": _NUMBER,
    "change_high": _NUMBER,
    "calls": _WHOLE,
    "successes": _WHOLE,
    "reference_calls": _WHOLE,
    "design_effect": _NUMBER,
    "compared_to": _TEXT,
    "accepted_by": _TEXT,
    "summary": _TEXT,
    "board_url": _TEXT,
}
_STRATA_COLUMNS: Final = {
    "phase": _TEXT,
    "first_call": _SECONDS,
    "last_call": _SECONDS,
    "reference_calls": _NUMBER,
    "calls_needed": _WHOLE,
    "reference_rate": _NUMBER,
    "reference_error": _NUMBER,
    "compared_to": _TEXT,
    "ignore_points": _NUMBER,
    "design_effect": _NUMBER,
    "has_season": pa.bool_(),
    "evidence": _NUMBER,
    "alarm_id": _TEXT,
}


def _stratum(series: Series, config: DriftConfig) -> dict[str, Any]:
    reference, spread = series.reference, series.profile.dispersion
    known = reference.n > 0
    return {
        "phase": str(reference.phase),
        "first_call": instant(series.first),
        "last_call": instant(series.last),
        "reference_calls": reference.n,
        "calls_needed": calls_needed(config, spread),
        "reference_rate": reference.rate if known else None,
        "reference_error": reference.standard_error(spread) if known else None,
        "compared_to": reference.version,
        "ignore_points": 100.0 * band_of(series, config, series.last),
        "design_effect": spread,
        "has_season": any(series.profile.offsets),
        "evidence": min(series.evidence.value, 1.0),
        "alarm_id": series.incident.alarm_id if series.incident is not None else "",
    }


def _stamp(number: int, epoch: int, count: int) -> dict[str, pa.Array]:
    return {
        "step": pa.array([number] * count, pa.uint64()),
        "epoch": pa.array([epoch] * count, pa.uint64()),
    }


def _keys(keys: Sequence[SeriesKey]) -> dict[str, pa.Array]:
    return {
        name: pa.array([str(key[index]) for key in keys], pa.string())
        for index, name in enumerate(_KEY_COLUMNS)
    }


def _instant(micros: int) -> datetime:
    return instant(0) + timedelta(microseconds=int(micros))
