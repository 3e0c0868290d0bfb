"""Intervals of a proportion."""

import math
from statistics import NormalDist


def wilson(successes: float, n: float, *, confidence: float = 0.95) -> tuple[float, float] | None:
    """Wilson's score interval (Wilson 1927, JASA 22:209); no interval over zero events.

    Args:
        successes: How often it happened.
        n: Out of how many; may be an effective number.
        confidence: Of the two-sided interval.

    >>> low, high = wilson(8, 10)
    >>> round(low, 4), round(high, 4)
    (0.4902, 0.9433)
    """
    if n <= 0:
        return None
    z = NormalDist().inv_cdf((1.0 + confidence) / 2.0)
    share = successes / n
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    low = 0.0 if successes <= 0 else max(0.0, centre - half)
    high = 1.0 if successes >= n else min(1.0, centre + half)
    return low, high
