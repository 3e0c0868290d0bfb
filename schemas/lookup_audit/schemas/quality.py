"""quality_score: how near the question a candidate is, on one ruler of 0 to 1.

``l2q(d) = clamp(1 - d / max_l2_distance, 0, 1)`` over plain L2. In hybrid mode a chunk without a
dense distance falls back on its rank, which says "first of this round" and not "near": the basis
is kept beside every value. A fused (RRF) score is never on this ruler.
"""

import math

from lookup_audit.schemas.names import DistanceMetric, QualityBasis, RankFallback
from lookup_audit.schemas.records import Candidate
from lookup_audit.schemas.ruleset import Ruleset

# The farthest two unit vectors can be apart.
MAX_UNIT_L2 = 2.0
# float32 arithmetic puts opposite vectors a hair beyond it.
_UNIT_SLACK = 1e-6
# Dense distance and cosine of one pair agree this far even when both passed through float32.
_METRIC_TOLERANCE = 1e-3

NO_DISTANCE = "no_distance"
NO_RANK = "no_rank"
NO_RULE_FOR_MODE = "no_rule_for_mode"
IMPOSSIBLE_DISTANCE = "impossible_distance"
DISTANCE_LOOKS_SQUARED = "distance_looks_squared"


def plain_l2(distance: float, metric: DistanceMetric) -> float:
    """Convert a distance to plain L2.

    ``L2 = sqrt(l2_squared)``; for unit vectors ``L2 = sqrt(2 * cosine_distance)``, from
    ``|a - b|^2 = 2 - 2 cos(a, b)``.

    >>> plain_l2(0.25, "l2_squared")
    0.5
    >>> plain_l2(0.5, "cosine_distance")
    1.0
    """
    if metric == "l2":
        return distance
    return math.sqrt(distance if metric == "l2_squared" else 2.0 * distance)


def distance_quality(l2: float, max_l2_distance: float) -> float:
    """``clamp(1 - l2 / max_l2_distance, 0, 1)``.

    >>> distance_quality(0.5, 2.0)
    0.75
    >>> distance_quality(3.0, 2.0)
    0.0
    """
    quality = 1.0 - l2 / max_l2_distance
    return 0.0 if quality < 0.0 else 1.0 if quality > 1.0 else quality


def rank_quality(original_rank: int, candidate_count: int, fallback: RankFallback) -> float:
    """The rank fallback: ``1 / rank`` or ``1 - (rank - 1) / candidates``, never below 0.

    >>> rank_quality(4, 8, "reciprocal")
    0.25
    >>> rank_quality(4, 8, "linear")
    0.625
    """
    if fallback == "reciprocal":
        return 1.0 / original_rank
    return max(0.0, 1.0 - (original_rank - 1) / candidate_count)


def is_impossible(distance: float, ruleset: Ruleset) -> bool:
    """Whether no two vectors can be this far apart: negative, or beyond unit vectors' reach."""
    if 0.0 <= distance <= MAX_UNIT_L2:
        return False  # possible in every metric
    if distance < 0:
        return True
    if ruleset.distance_metric == "cosine_distance":
        return distance > 2.0 + _UNIT_SLACK
    return ruleset.normalized and (
        plain_l2(distance, ruleset.distance_metric) > MAX_UNIT_L2 + _UNIT_SLACK
    )


def could_be_squared(distance: float, similarity: float) -> bool:
    """Whether a distance fits its cosine if it is a squared one: half of :func:`looks_squared`."""
    return abs(similarity - (1.0 - distance / 2.0)) <= _METRIC_TOLERANCE


def looks_squared(distance: float, similarity: float | None, ruleset: Ruleset) -> bool:
    """Whether a distance declared as plain L2 fits its cosine only if it is a squared one.

    For unit vectors ``cos = 1 - L2^2 / 2``. Two popular stores return the square.

    >>> looks_squared(0.6, 0.7, Ruleset(normalized=True))
    True
    >>> looks_squared(0.6, 0.82, Ruleset(normalized=True))
    False
    """
    if similarity is None or not could_be_squared(distance, similarity):
        return False
    return (
        abs(similarity - (1.0 - distance * distance / 2.0)) > _METRIC_TOLERANCE
        and ruleset.normalized
        and ruleset.distance_metric == "l2"
    )


def candidate_quality(
    candidate: Candidate, mode: str, candidate_count: int, ruleset: Ruleset
) -> tuple[float, QualityBasis] | str:
    """Recompute one candidate's quality from the recorded numbers.

    Args:
        candidate: The candidate.
        mode: Retrieval mode of its lookup.
        candidate_count: All candidates of the event, dropped ones included.
        ruleset: Metric, maximum and fallback in force.

    Returns:
        The quality with its basis, or the reason why there is none.
    """
    distance = candidate.dense_distance
    if distance is not None:
        if mode != "dense" and mode != "hybrid":
            return NO_RULE_FOR_MODE
        if is_impossible(distance, ruleset):
            return IMPOSSIBLE_DISTANCE
        similarity = candidate.similarity_score
        if similarity is not None and looks_squared(distance, similarity, ruleset):
            return DISTANCE_LOOKS_SQUARED
        metric = ruleset.distance_metric
        l2 = distance if metric == "l2" else plain_l2(distance, metric)
        quality = distance_quality(l2, ruleset.max_l2_distance)
        return quality, "dense_l2" if mode == "dense" else "hybrid_l2"
    if mode == "hybrid":
        rank = candidate.original_rank
        if rank is None:
            return NO_RANK
        return rank_quality(rank, candidate_count, ruleset.rank_fallback), "hybrid_rank"
    return NO_DISTANCE if mode == "dense" else NO_RULE_FOR_MODE
