"""Proportions with their uncertainty."""

from math import sqrt
from statistics import NormalDist


def wilson(successes: float, n: float, *, confidence: float = 0.95) -> tuple[float, float] | None:
    """Wilson's score interval of a proportion (Wilson 1927, JASA 22:209).

    Args:
        successes: Between 0 and ``n``; an effective count may be fractional.
        n: How many were looked at.
        confidence: Coverage of the interval.

    Returns:
        The two ends, or ``None`` over zero events.
    """
    if n <= 0:
        return None
    z = NormalDist().inv_cdf(0.5 + confidence / 2)
    share = successes / n
    scale = 1 + z * z / n
    centre = (share + z * z / (2 * n)) / scale
    half = z * sqrt(share * (1 - share) / n + z * z / (4 * n * n)) / scale
    return max(0.0, centre - half), min(1.0, centre + half)
