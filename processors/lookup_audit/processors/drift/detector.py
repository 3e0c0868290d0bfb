r"""The detector: does a stream of yes and no still have the rate of its reference?

A dead-band mixture e-SR detector (Shin, Ramdas, Rinaldo 2024, NEJSDS, "E-detectors"). For each
tilt ``g`` a batch of ``k`` in ``n`` multiplies the evidence ``M_g`` by

    exp((g * k - n * log(1 + q * (exp(g) - 1))) / D)

where ``q`` is the edge of the dead band on the side of ``g`` and ``D`` the design effect of calls
that come in clusters. Before that, ``s`` is added to each ``M_g``; an alarm is raised when their
mean reaches one. A call's factor has mean at most one while its rate is inside the band, so the
expected number of false alarms is at most the sum of all ``s``: for any length of time, with no
threshold to calibrate. Adding ``dt / T`` a batch promises one false alarm in ``T``.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

_STRENGTHS: Final = (0.1, 0.2, 0.4, 0.8, 1.6)
RISES: Final = tuple((g, math.expm1(g)) for g in _STRENGTHS)
FALLS: Final = tuple((-g, math.expm1(-g)) for g in _STRENGTHS)
BOTH: Final = FALLS + RISES

Tilts = tuple[tuple[float, float], ...]

# Far beyond any alarm, and still a finite number.
_MOST: Final = 600.0


class Tilt(NamedTuple):
    """What one tilt remembers.

    Args:
        mass: Its evidence, the ``M_g`` above.
        score: Log-evidence of its current excursion: a CUSUM, never below zero.
        start: First minute of that excursion.
        k: Successes since then.
        n: Calls since then.
        expected: Successes the reference would have had since then.
    """

    mass: float = 0.0
    score: float = 0.0
    start: int = 0
    k: float = 0.0
    n: float = 0.0
    expected: float = 0.0


@dataclass(frozen=True, slots=True)
class Evidence:
    """The evidence for a change, in constant space.

    Args:
        tilts: One entry for each tilt, in the tilts' order.
    """

    tilts: tuple[Tilt, ...]

    @property
    def value(self) -> float:
        """The mean over the tilts; an alarm is raised when it reaches one."""
        return sum(tilt[0] for tilt in self.tilts) / len(self.tilts)

    @property
    def winner(self) -> int:
        """The tilt with the most evidence."""
        return max(range(len(self.tilts)), key=lambda i: self.tilts[i].mass)

    def spent(self) -> "Evidence":
        """The same excursions with no mass: what an alarm leaves behind."""
        return Evidence(tuple(tilt._replace(mass=0.0) for tilt in self.tilts))


def no_evidence(tilts: Tilts) -> Evidence:
    """The start."""
    return Evidence((Tilt(),) * len(tilts))


def brackets(
    tilts: Tilts, k: float, n: float, *, mean: float, band: float, dispersion: float
) -> list[float]:
    """Log-evidence of one batch for each tilt.

    Args:
        tilts: Which changes to look for.
        k: Successes, at most ``n``.
        n: Calls.
        mean: The reference's rate for this batch.
        band: Half the width of the dead band, a share.
        dispersion: The design effect, at least 1.
    """
    # With a lower edge of 0 (or an upper one of 1) no change on that side is possible, and the
    # logarithm is 0 (or g), so that the evidence for it can only fall.
    low, high = max(mean - band, 0.0), min(mean + band, 1.0)
    log1p = math.log1p
    return [
        (g * k - n * log1p((high if g > 0.0 else low) * grown)) / dispersion for g, grown in tilts
    ]


def step(
    evidence: Evidence,
    logs: Sequence[float],
    *,
    inject: float,
    minute: int,
    k: float,
    n: float,
    expected: float,
) -> Evidence:
    """The evidence after one batch.

    Args:
        evidence: Before it.
        logs: From :func:`brackets`, or sums of such over strata.
        inject: The false alarms this batch may spend, ``s`` above.
        minute: When the batch was, for the estimate of a start.
        k: Successes.
        n: Calls.
        expected: Successes the reference would have had.
    """
    exp = math.exp
    after = []
    for (mass, score, start, ks, ns, es), log in zip(evidence.tilts, logs, strict=True):
        if mass + inject > 0.0:
            mass = min((mass + inject) * exp(min(log, _MOST)), 1e200)
        if score <= 0.0:
            start, ks, ns, es = minute, 0.0, 0.0, 0.0
        score += log
        if score > 0.0:
            after.append(Tilt(mass, score, start, ks + k, ns + n, es + expected))
        else:
            after.append(Tilt(mass))
    return Evidence(tuple(after))


def injection(minutes: float, calls: float, *, per_minute: float, calls_per_alarm: int) -> float:
    """How many false alarms a batch may spend.

    Args:
        minutes: Since the stratum's batch before it.
        calls: In the batch.
        per_minute: The promised rate of false alarms.
        calls_per_alarm: The floor that keeps strata of few calls from spending it on noise.
    """
    return min(minutes * per_minute, calls / calls_per_alarm)
