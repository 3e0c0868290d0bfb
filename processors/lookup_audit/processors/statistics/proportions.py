"""Intervals of a proportion."""

import math
from statistics import NormalDist


def wilson(successes: float, n: float, *, confidence: float = 0.95) -> tuple[float, float] | None:
    """Wilson's score interval (Wilson 1927, JASA 22:209); ``None`` over zero events.

    >>> low, high = wilson(8, 10)
    >>> round(low, 3), round(high, 3)
    (0.49, 0.943)
    """
    if n == 0:
        return None
    z = NormalDist().inv_cdf(0.5 + confidence / 2)
    p = successes / n
    centre = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    return max(0.0, centre - half), min(1.0, centre + half)
