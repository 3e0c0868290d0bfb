"""Rates from a weighted sample of correlated lookups, each with a 95 % interval.

Three things must be respected at once: sampling weights (Hajek), several lookups that share one
answer and its judgement (clusters), and rates near 0 or 1 (Wilson). All of it needs only sums, so
that days add up and the engine can do the same in SQL (``audit.ratio_daily``; a test compares).
"""

import math
from collections.abc import Iterable
from dataclasses import astuple, dataclass
from statistics import NormalDist
from typing import Final, Self

# The two-sided 95 % point of the normal distribution.
Z_95: Final = NormalDist().inv_cdf(0.975)
# How much the plain effective size counts against the one seen in the data, in units of
# information m p (1 - p). Without it a few heavy weights that happen to be absent make an interval
# far too short; checked by simulation (tests/unit/processors/statistics).
PRIOR_INFORMATION = 10.0


def wilson(successes: float, n: float, *, confidence: float = 0.95) -> tuple[float, float] | None:
    """Wilson's score interval of a rate; ``None`` where n is 0.

    Source: Wilson 1927, JASA 22:209. ``n`` may be an effective size and so a fraction.

    >>> low, high = wilson(16, 45)
    >>> round(low, 4), round(high, 4)
    (0.2322, 0.5016)
    """
    if n <= 0:
        return None
    z = NormalDist().inv_cdf(0.5 + confidence / 2)
    rate = successes / n
    shrink = 1 + z * z / n
    centre = (rate + z * z / (2 * n)) / shrink
    half = z * math.sqrt(max(0.0, rate * (1 - rate)) / n + z * z / (4 * n * n)) / shrink
    return max(0.0, centre - half), min(1.0, centre + half)


@dataclass(frozen=True, slots=True)
class Estimate:
    """A rate with its interval; ``n_effective`` is the size that Wilson's interval was given."""

    value: float
    low: float
    high: float
    n_effective: float


@dataclass(frozen=True, slots=True)
class Sums:
    """What a rate needs of its clusters: additive, so that parts of a period can be joined.

    Of each cluster, ``a`` is the weight that counts and ``b`` the weight that could have counted.

    Args:
        clusters: How many have ``b > 0``.
        a: Sum of a.
        b: Sum of b.
        aa: Sum of a * a.
        ab: Sum of a * b.
        bb: Sum of b * b.
    """

    clusters: float = 0.0
    a: float = 0.0
    b: float = 0.0
    aa: float = 0.0
    ab: float = 0.0
    bb: float = 0.0

    @classmethod
    def of(cls, pairs: Iterable[tuple[float, float]]) -> Self:
        """The sums of ``(a, b)`` of each cluster."""
        kept = [(a, b) for a, b in pairs if b > 0]
        return cls(
            clusters=float(len(kept)),
            a=math.fsum(a for a, _ in kept),
            b=math.fsum(b for _, b in kept),
            aa=math.fsum(a * a for a, _ in kept),
            ab=math.fsum(a * b for a, b in kept),
            bb=math.fsum(b * b for _, b in kept),
        )

    def __add__(self, other: Self) -> Self:
        return type(self)(*(x + y for x, y in zip(astuple(self), astuple(other), strict=True)))


def estimate(sums: Sums, *, confidence: float = 0.95) -> Estimate | None:
    """The rate a / b with Wilson's interval on the effective size; ``None`` where b is 0.

    The effective size is ``p (1 - p) b^2 / V`` with the linearised variance of a ratio over
    clusters, ``V = sum (a - p b)^2`` (Sarndal, Swensson & Wretman 1992, 5.6), drawn towards
    Kish's ``b^2 / bb`` (Kish 1965) by a fixed amount of information. For unweighted single
    lookups both are n, so that the interval is Wilson's own.

    >>> estimate(Sums.of([(1, 1)] * 16 + [(0, 1)] * 29)) == Estimate(16 / 45, *wilson(16, 45), 45.0)
    True
    """
    if sums.b <= 0:
        return None
    rate = min(1.0, sums.a / sums.b)
    spread = max(0.0, sums.aa - 2 * rate * sums.ab + rate * rate * sums.bb)
    information = sums.clusters * rate * (1 - rate)
    n_effective = (
        sums.b**2
        * (information + PRIOR_INFORMATION)
        / (sums.clusters * spread + PRIOR_INFORMATION * sums.bb)
    )
    interval = wilson(rate * n_effective, n_effective, confidence=confidence)
    assert interval is not None, "b > 0 means a positive effective size"
    return Estimate(rate, *interval, n_effective)


def odds(share: Estimate | None) -> tuple[float, float, float | None] | None:
    """A ratio a / b from the share a / (a + b): value, low, high.

    The map is monotone, so the share's interval becomes the ratio's. ``None`` where b is 0; a high
    end of ``None`` is one without bound.
    """
    if share is None or share.value >= 1:
        return None
    high = None if share.high >= 1 else share.high / (1 - share.high)
    return share.value / (1 - share.value), share.low / (1 - share.low), high
