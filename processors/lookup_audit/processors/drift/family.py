"""All strata together: one budget of false alarms, one alarm for one change.

The family folds closed minutes, in order, into its state. What it tells depends on the minutes and
on what people accepted, and on nothing else: no clock, no order of arrival, no size of a step.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from lookup_audit.processors.drift import incident as incidents
from lookup_audit.processors.drift.config import MINUTES_A_DAY, DriftConfig
from lookup_audit.processors.drift.dispersion import Spread, pool
from lookup_audit.processors.drift.incident import Around, Incident, Transition
from lookup_audit.processors.drift.rollup import (
    LEAST_MEMBERS,
    Member,
    Rollup,
    advance_rollup,
    emptied,
    new_rollup,
    rollup_key,
)
from lookup_audit.processors.drift.series import (
    IDLE_MINUTES,
    Batch,
    Context,
    Series,
    SeriesKey,
    advance,
    new_series,
    rebase,
)
from lookup_audit.schemas.names import ALL


class Count(NamedTuple):
    """One closed minute of one series.

    Args:
        minute: Minutes since the epoch.
        key: Which series.
        k: Successes.
        n: Calls, above 0.
    """

    minute: int
    key: SeriesKey
    k: float
    n: float


class Told(NamedTuple):
    """A transition of an alarm, and what it is about.

    Args:
        key: Of the series or roll-up.
        transition: What happened.
        series: The series as it is; ``None`` for a roll-up.
    """

    key: SeriesKey
    transition: Transition
    series: Series | None


class Family:
    """Every watched rate of every stratum.

    Args:
        config: The user's words.
    """

    def __init__(self, config: DriftConfig):
        self.config = config
        self.series: dict[SeriesKey, Series] = {}
        self.rollups: dict[SeriesKey, Rollup] = {}
        self._active = 0
        self._members: dict[SeriesKey, int] = {}
        self._groups: dict[tuple[str, ...], list[SeriesKey]] = {}

    def restore(self, series: Iterable[Series], rollups: Iterable[Rollup]) -> None:
        """Go on from a checkpoint."""
        self.series = {one.key: one for one in series}
        self.rollups = {one.key: one for one in rollups}
        self._groups = {}
        for key in self.series:
            self._groups.setdefault(_group(key), []).append(key)

    def minute(self, counts: Sequence[Count]) -> list[Told]:
        """Fold in one closed minute.

        Args:
            counts: Of one minute, each series at most once.
        """
        minute = counts[0].minute
        self._count_active(minute)
        told: list[Told] = []
        members: dict[SeriesKey, list[Member]] = defaultdict(list)
        for _, key, k, n in sorted(counts, key=lambda c: c.key):
            self._ensure(key, minute)
            before = self.series[key]
            after, transitions, tested = advance(before, Batch(minute, k, n), self._context(key))
            self.series[key] = after
            for transition in transitions:
                told += self._tell(key, transition)
            if tested is not None and key.quality_basis == ALL and self._is_free(key):
                members[rollup_key(key)].append(Member(key, k, n, tested))
        for where in sorted(members):
            told += self._roll(where, members[where], minute)
        return told

    def accept(self, alarm_id: str, minute: int) -> list[Told]:
        """Take the rate of an open alarm as the new reference.

        Returns:
            What is to be told; nothing where no such alarm is open.
        """
        for key, rollup in self.rollups.items():
            if rollup.incident is not None and rollup.incident.alarm_id == alarm_id:
                return self._accept_rollup(key, rollup.incident, minute)
        told = []
        for key, series in list(self.series.items()):
            incident = series.incident
            if incident is not None and incident.alarm_id == alarm_id:
                self.series[key] = rebase(series, incident)
                if incident.is_owner:
                    told.append(
                        Told(key, incidents.accepted(incident, minute, _around(series)), series)
                    )
        return told

    def open_alarms(self) -> set[str]:
        """Ids of the alarms that are open."""
        every: list[Series | Rollup] = [*self.series.values(), *self.rollups.values()]
        return {one.incident.alarm_id for one in every if one.incident is not None}

    def _accept_rollup(self, where: SeriesKey, incident: Incident, minute: int) -> list[Told]:
        rollup = self.rollups[where]
        self.rollups[where] = replace(emptied(rollup), incident=None)
        for key, series in list(self.series.items()):
            if rollup_key(key) == where and series.is_watched:
                mine = series.incident
                # A stratum that did not alarm itself begins with no calls.
                start = mine or replace(incident, k=0.0, n=0.0, started=minute)
                if mine is None or mine.alarm_id == incident.alarm_id:
                    self.series[key] = rebase(series, start)
        around = Around(1.0, self.config.band, 0.0)
        return [Told(where, incidents.accepted(incident, minute, around), None)]

    def _ensure(self, key: SeriesKey, minute: int) -> None:
        if key not in self.series:
            group = self._groups.setdefault(_group(key), [])
            self.series[key] = new_series(key, minute, self._predecessor(key))
            group.append(key)

    def _predecessor(self, key: SeriesKey) -> Series | None:
        """The same stratum's model version with the newest calls before this one."""
        others = [
            one
            for one in self.series.values()
            if one.key._replace(model_version="") == key._replace(model_version="")
        ]
        return max(others, key=lambda one: (one.last, one.key), default=None)

    def _tell(self, key: SeriesKey, transition: Transition) -> list[Told]:
        """One change gives one alarm: let later strata of the same change join it."""
        incident = transition.incident
        if transition.what == "opened":
            where = rollup_key(key)
            if where in self.rollups:
                self.rollups[where] = emptied(self.rollups[where])
            owner = self._open_alarm_of_the_same_change(key, rising=incident.rising)
            if owner is not None:
                series = self.series[key]
                assert series.incident is not None, "it was opened just now"
                joined = replace(series.incident, alarm_id=owner, is_owner=False)
                self.series[key] = replace(series, incident=joined)
                return []
        if not incident.is_owner:
            return []
        if transition.what == "recovered":
            self._release(incident.alarm_id)
        return [Told(key, transition, self.series[key])]

    def _open_alarm_of_the_same_change(self, key: SeriesKey, *, rising: bool) -> str | None:
        near: list[Incident | None] = [
            self.series[other].incident for other in self._groups[_group(key)] if other != key
        ]
        rollup = self.rollups.get(rollup_key(key))
        if rollup is not None:
            near.append(rollup.incident)
        for one in near:
            if one is not None and one.is_owner and one.rising == rising:
                return one.alarm_id
        return None

    def _release(self, alarm_id: str) -> None:
        for key, series in self.series.items():
            mine = series.incident
            if mine is not None and mine.alarm_id == alarm_id and not mine.is_owner:
                self.series[key] = replace(series, incident=None)

    def _is_free(self, key: SeriesKey) -> bool:
        """Whether a stratum may take part in the roll-up: its own change is none, or the same."""
        mine = self.series[key].incident
        if mine is None:
            return True
        rollup = self.rollups.get(rollup_key(key))
        common = rollup.incident if rollup is not None else None
        return common is not None and common.alarm_id == mine.alarm_id

    def _roll(self, where: SeriesKey, members: list[Member], minute: int) -> list[Told]:
        if where not in self._members:
            return []
        rollup = self.rollups.get(where) or new_rollup(where, minute)
        per_minute = self.config.rollup_share / self._fleet_minutes / len(self._members)
        rollup, transitions = advance_rollup(rollup, members, minute, self.config, per_minute)
        self.rollups[where] = rollup
        for transition in transitions:
            if transition.what == "recovered":
                self._release(transition.incident.alarm_id)
        return [Told(where, transition, None) for transition in transitions]

    @property
    def _fleet_minutes(self) -> float:
        return self.config.fleet_false_alarm_days * MINUTES_A_DAY

    def _context(self, key: SeriesKey) -> Context:
        alone = 1.0 / (self.config.false_alarm_days * MINUTES_A_DAY)
        share = (1.0 - self.config.rollup_share) / max(1, self._active)
        return Context(
            self.config, min(alone, share / self._fleet_minutes), lambda: self._pooled(key)
        )

    def _pooled(self, key: SeriesKey) -> tuple[Spread, ...]:
        """The spread of all strata of a mode and metric that know theirs."""
        known = [
            one.profile.scales
            for one in self.series.values()
            if one.profile.scales and (one.key.metric, one.key.mode) == (key.metric, key.mode)
        ]
        return pool(known) if known else ()

    def _count_active(self, minute: int) -> None:
        """Count the strata that share the budget: those with calls within a week."""
        members: dict[SeriesKey, int] = defaultdict(int)
        active = 0
        for key, one in self.series.items():
            if minute - one.last <= IDLE_MINUTES:
                active += 1
                if key.quality_basis == ALL:
                    members[rollup_key(key)] += 1
        self._active = active
        self._members = {where: n for where, n in members.items() if n >= LEAST_MEMBERS}


def _group(key: SeriesKey) -> tuple[str, ...]:
    """What one change of a stratum is told by: the bases of a mode belong together."""
    return tuple(key[:-1])


def _around(series: Series) -> Around:
    dispersion = series.profile.dispersion
    return Around(dispersion, 0.0, series.reference.standard_error(dispersion))


def by_minute(counts: Iterable[Count]) -> Mapping[int, list[Count]]:
    """Counts by minute, in order."""
    minutes: dict[int, list[Count]] = defaultdict(list)
    for count in counts:
        minutes[count.minute].append(count)
    return dict(sorted(minutes.items()))
