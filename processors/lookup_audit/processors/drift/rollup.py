"""The roll-up: a small common shift of many strata, found sooner than in any of them.

For each tilt the log-evidence of all strata of one metric and mode is summed and goes through the
same recursion. A pure change of the traffic's mix moves no stratum, so it cannot raise it. Strata
with an open incident are left out, and an alarm of one stratum empties the sum: what is known
already must not page twice. Calls of one minute are taken as independent across strata.
"""

from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from lookup_audit.processors.drift import incident as incidents
from lookup_audit.processors.drift.config import DriftConfig
from lookup_audit.processors.drift.detector import (
    BOTH,
    RISES,
    Evidence,
    Tilts,
    brackets,
    injection,
    no_evidence,
    step,
)
from lookup_audit.processors.drift.incident import Around, Incident, Transition
from lookup_audit.processors.drift.series import IDLE_MINUTES, ONE_SIDED, SeriesKey, Tested
from lookup_audit.schemas.names import ALL, DriftMetric

# With fewer strata the sum says nothing that they do not say themselves.
LEAST_MEMBERS: Final = 3


class Member(NamedTuple):
    """One stratum's minute.

    Args:
        key: Which one.
        k: Successes.
        n: Calls.
        tested: Its test.
    """

    key: SeriesKey
    k: float
    n: float
    tested: Tested


@dataclass(frozen=True, slots=True)
class Rollup:
    """State of one roll-up.

    Args:
        key: With ``*`` for tenant, service and model version; never for the mode.
        last: Minute of its newest calls.
        evidence: For a common change that nobody knows of.
        incident: The common change that is known, if any.
    """

    key: SeriesKey
    last: int
    evidence: Evidence
    incident: Incident | None = None


def rollup_key(key: SeriesKey) -> SeriesKey:
    """The roll-up that a stratum belongs to."""
    return SeriesKey(key.metric, ALL, ALL, key.mode, ALL, ALL)


def tilts_of(metric: DriftMetric) -> Tilts:
    """Directions looked for."""
    return RISES if metric in ONE_SIDED else BOTH


def new_rollup(key: SeriesKey, minute: int) -> Rollup:
    """A roll-up at its first minute."""
    return Rollup(key, minute, no_evidence(tilts_of(key.metric)))


def emptied(rollup: Rollup) -> Rollup:
    """Without its evidence, as one of its strata has alarmed by itself."""
    return replace(rollup, evidence=no_evidence(tilts_of(rollup.key.metric)))


def advance_rollup(
    rollup: Rollup,
    members: list[Member],
    minute: int,
    config: DriftConfig,
    per_minute: float,
) -> tuple[Rollup, list[Transition]]:
    """The roll-up after one closed minute.

    Args:
        rollup: Before it.
        members: Its strata's minutes, at least one.
        minute: Which one.
        config: The user's words.
        per_minute: False alarms it may spend in a minute.
    """
    k, n = sum(m.k for m in members), sum(m.n for m in members)
    expected = sum(m.n * m.tested.mean for m in members)
    spent = injection(
        min(minute - rollup.last, IDLE_MINUTES),
        n,
        per_minute=per_minute,
        calls_per_alarm=config.calls_per_alarm,
    )
    logs = [sum(column) for column in zip(*(m.tested.logs for m in members), strict=True)]
    evidence = step(rollup.evidence, logs, inject=spent, minute=minute, k=k, n=n, expected=expected)
    around = Around(
        dispersion=sum(m.n * m.tested.dispersion for m in members) / n,
        band=sum(m.n * m.tested.band for m in members) / n,
        reference_error=0.0,
    )
    incident = rollup.incident
    transitions: list[Transition] = []
    if incident is not None:
        incident, transitions = incidents.follow(
            incident,
            _way_back(incident, members),
            inject=spent,
            minute=minute,
            k=k,
            n=n,
            expected=expected,
            around=around,
        )
    if evidence.value >= 1.0:
        incident, more = incidents.alarm(
            incident, rollup.key, tilts_of(rollup.key.metric), evidence, minute, around
        )
        transitions = [*transitions, *more]
        evidence = evidence.spent()
    return replace(rollup, last=minute, evidence=evidence, incident=incident), transitions


def _way_back(incident: Incident, members: list[Member]) -> list[float]:
    each = [
        brackets(
            incident.back_tilts,
            m.k,
            m.n,
            mean=min(max(m.tested.mean + incident.level, 0.0), 1.0),
            band=m.tested.band,
            dispersion=m.tested.dispersion,
        )
        for m in members
    ]
    return [sum(column) for column in zip(*each, strict=True)]
