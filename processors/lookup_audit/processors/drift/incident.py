"""One change, one alarm: opened once, sized better as calls come in, closed once.

The exit is the same detector turned round: evidence that the rate has left the alarmed level on
its way back. If the rate is then inside the dead band, as far as the calls can tell, the incident
is over; otherwise the level is corrected and it goes on.
"""

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from lookup_audit.processors.drift.detector import (
    FALLS,
    RISES,
    Evidence,
    Tilts,
    no_evidence,
    step,
)
from lookup_audit.processors.statistics.proportions import Z_95, wilson


class Around(NamedTuple):
    """What surrounds an estimate of a change.

    Args:
        dispersion: The design effect.
        band: Half the dead band.
        reference_error: Standard error of the reference's rate.
    """

    dispersion: float
    band: float
    reference_error: float


@dataclass(frozen=True, slots=True)
class Incident:
    """A change that is known and not over.

    Args:
        alarm_id: Of its alarm.
        is_owner: Whether the alarm is its own; otherwise it belongs to an alarm of the same change.
        rising: Direction.
        opened: Minute that raised the alarm.
        started: Estimated first minute of the change.
        level: Estimated change, a share; the way back is measured from it.
        k: Successes since the start.
        n: Calls since the start.
        expected: Successes the reference would have had.
        recovery: Evidence for the way back.
        revision: Of the alarm.
        told_n: Calls when the alarm was last told.
    """

    alarm_id: str
    is_owner: bool
    rising: bool
    opened: int
    started: int
    level: float
    k: float
    n: float
    expected: float
    recovery: Evidence
    revision: int = 1
    told_n: float = 0.0

    @property
    def back_tilts(self) -> Tilts:
        """The tilts that look for the way back."""
        return FALLS if self.rising else RISES


class Transition(NamedTuple):
    """Something to tell.

    Args:
        what: What happened.
        incident: As it was then.
        minute: When.
        around: For the interval of its size.
    """

    what: Literal["opened", "updated", "recovered", "accepted"]
    incident: Incident
    minute: int
    around: Around


def alarm_id_of(key: Sequence[str], *, rising: bool, minute: int) -> str:
    """The alarm's name: the same whenever the same minutes are read again."""
    text = "\x1f".join([*map(str, key), "up" if rising else "down", str(minute)])
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def alarm(
    incident: Incident | None,
    key: Sequence[str],
    tilts: Tilts,
    evidence: Evidence,
    minute: int,
    around: Around,
) -> tuple[Incident, list[Transition]]:
    """The evidence has reached one: open an incident, or learn more about the open one.

    Args:
        incident: The open one, if any.
        key: Of the series.
        tilts: Of the evidence.
        evidence: Whose value is at least one.
        minute: Now.
        around: For the interval.
    """
    winner = evidence.winner
    rising = tilts[winner][0] > 0.0
    tilt = evidence.tilts[winner]
    if incident is not None and incident.rising == rising:
        if tilt.n < 2.0 * incident.told_n or not tilt.n:
            return incident, []
        better = replace(
            incident,
            started=min(incident.started, tilt.start),
            level=(tilt.k - tilt.expected) / tilt.n,
            k=tilt.k,
            n=tilt.n,
            expected=tilt.expected,
            revision=incident.revision + 1,
            told_n=tilt.n,
        )
        return better, [Transition("updated", better, minute, around)]
    transitions = []
    if incident is not None:
        transitions.append(_closed(incident, minute, around))
    opened = Incident(
        alarm_id=alarm_id_of(key, rising=rising, minute=minute),
        is_owner=True,
        rising=rising,
        opened=minute,
        started=tilt.start if tilt.n else minute,
        level=(tilt.k - tilt.expected) / tilt.n if tilt.n else 0.0,
        k=tilt.k,
        n=tilt.n,
        expected=tilt.expected,
        recovery=no_evidence(FALLS if rising else RISES),
        told_n=tilt.n,
    )
    return opened, [*transitions, Transition("opened", opened, minute, around)]


def follow(
    incident: Incident,
    back: Sequence[float],
    *,
    inject: float,
    minute: int,
    k: float,
    n: float,
    expected: float,
    around: Around,
) -> tuple[Incident | None, list[Transition]]:
    """One more batch while the incident is open; ``None`` when it is over.

    Args:
        incident: The open one.
        back: Log-evidence for the way back.
        inject: As in the detector.
        minute: Now.
        k: Successes of the batch.
        n: Calls of the batch.
        expected: Successes the reference would have had.
        around: For interval and margin.
    """
    recovery = step(
        incident.recovery, back, inject=inject, minute=minute, k=k, n=n, expected=expected
    )
    incident = replace(
        incident,
        k=incident.k + k,
        n=incident.n + n,
        expected=incident.expected + expected,
        recovery=recovery,
    )
    if recovery.value < 1.0:
        return incident, []
    tilt = recovery.tilts[recovery.winner]
    calls = max(tilt.n, 1.0)
    change = (tilt.k - tilt.expected) / calls
    outward = change if incident.rising else -change
    if outward <= around.band + _margin(tilt.k / calls, calls, around):
        return None, [_closed(incident, minute, around)]
    better = replace(
        incident,
        level=change,
        k=tilt.k,
        n=tilt.n,
        expected=tilt.expected,
        recovery=no_evidence(incident.back_tilts),
        revision=incident.revision + 1,
        told_n=tilt.n,
    )
    return better, [Transition("updated", better, minute, around)]


def accepted(incident: Incident, minute: int, around: Around) -> Transition:
    """A person said that the change is meant."""
    closed = replace(incident, revision=incident.revision + 1)
    return Transition("accepted", closed, minute, around)


def _closed(incident: Incident, minute: int, around: Around) -> Transition:
    closed = replace(incident, revision=incident.revision + 1)
    return Transition("recovered", closed, minute, around)


def _margin(rate: float, calls: float, around: Around) -> float:
    smooth = (rate * calls + 1.0) / (calls + 2.0)
    variance = around.dispersion * smooth * (1.0 - smooth) / calls
    return Z_95 * math.sqrt(variance + around.reference_error**2)


def change_interval(incident: Incident, around: Around) -> tuple[float, float, float]:
    """The change since the start and the ends of its 95 % interval, shares.

    Wilson's interval on the effective calls ``n / D``, combined with the reference's error
    (Newcombe 1998, Stat. Med. 17:873, method 10). An alarm is raised on what stood out, so that
    early sizes tend to be too large.
    """
    n = max(incident.n, 1.0)
    rate, expected = min(incident.k / n, 1.0), min(incident.expected / n, 1.0)
    calls = n / around.dispersion
    interval = wilson(rate * calls, calls)
    assert interval is not None, "there is at least a part of a call"
    low, high = interval
    error = Z_95 * around.reference_error
    change = rate - expected
    down = change - math.hypot(rate - low, error)
    up = change + math.hypot(high - rate, error)
    return change, max(down, -1.0), min(up, 1.0)
