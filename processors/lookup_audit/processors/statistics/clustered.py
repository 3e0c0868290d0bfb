"""Proportions over things that come in clusters, such as the candidates of one question."""

from collections.abc import Sequence

from lookup_audit.processors.statistics.proportions import wilson


def clustered_wilson(
    clusters: Sequence[tuple[int, int]], *, confidence: float = 0.95
) -> tuple[float, float] | None:
    """Wilson's interval on the effective n of a share over clusters.

    The variance is that of a ratio estimate over clusters (Cochran 1977, Sampling Techniques,
    2.11); effective n is the n of a simple sample with that variance, at most the real one (Korn
    and Graubard 1998, Survey Methodology 24:193). Where nothing varies it is the number of
    clusters.

    Args:
        clusters: Of each cluster, how many have the property, out of how many.
        confidence: Of the two-sided interval.
    """
    filled = [(hits, n) for hits, n in clusters if n]
    total = sum(n for _, n in filled)
    if not total:
        return None
    share = sum(hits for hits, _ in filled) / total
    count = len(filled)
    spread = sum((hits - share * n) ** 2 for hits, n in filled)
    if count < 2 or spread == 0.0 or share in (0.0, 1.0):
        effective = float(count)
    else:
        variance = count / (count - 1) * spread / total**2
        effective = min(float(total), share * (1 - share) / variance)
    return wilson(share * effective, effective, confidence=confidence)
