import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from lookup_audit.schemas.names import DistanceMetric, QualityBasis, RankFallback
from lookup_audit.schemas.quality import (
    candidate_quality,
    distance_quality,
    is_impossible,
    looks_squared,
    plain_l2,
    rank_quality,
)
from lookup_audit.schemas.records import Candidate
from lookup_audit.schemas.ruleset import Ruleset
from tests.support.strategies import NON_NEGATIVE, examples

POSITIVE = st.floats(min_value=0, exclude_min=True, allow_infinity=False)
METRICS: list[DistanceMetric] = ["l2", "l2_squared", "cosine_distance"]
FALLBACKS: list[RankFallback] = ["reciprocal", "linear"]
UNIT_VECTORS = st.lists(st.floats(-1, 1), min_size=4, max_size=4).map(
    lambda v: [x / (math.hypot(*v) or math.nan) for x in v]
)


@pytest.mark.parametrize(
    ("distance", "maximum", "quality"),
    [
        pytest.param(0.0, 2.0, 1.0, id="same"),
        pytest.param(0.5, 2.0, 0.75, id="near"),
        pytest.param(2.0, 2.0, 0.0, id="at-the-maximum"),
        pytest.param(9.0, 2.0, 0.0, id="beyond-the-maximum"),
        pytest.param(0.5, 1.0, 0.5, id="other-maximum"),
    ],
)
def test_quality_falls_with_distance_to_the_maximum(
    distance: float, maximum: float, quality: float
) -> None:
    assert distance_quality(distance, maximum) == quality


@given(NON_NEGATIVE, POSITIVE)
@examples(100)
def test_quality_lies_between_0_and_1(distance: float, maximum: float) -> None:
    assert 0.0 <= distance_quality(distance, maximum) <= 1.0


@given(NON_NEGATIVE, NON_NEGATIVE, POSITIVE, st.sampled_from(METRICS))
@examples(100)
def test_a_greater_distance_never_raises_quality(
    one: float, other: float, maximum: float, metric: DistanceMetric
) -> None:
    near, far = sorted((one, other))

    assert distance_quality(plain_l2(near, metric), maximum) >= distance_quality(
        plain_l2(far, metric), maximum
    )


@given(UNIT_VECTORS, UNIT_VECTORS)
@examples(100)
def test_the_metrics_agree_for_unit_vectors(one: list[float], other: list[float]) -> None:
    assume(not math.isnan(one[0]) and not math.isnan(other[0]))
    l2 = math.dist(one, other)
    cosine = max(0.0, 1.0 - sum(x * y for x, y in zip(one, other, strict=True)))

    assert plain_l2(l2 * l2, "l2_squared") == pytest.approx(l2, abs=1e-7)
    assert plain_l2(cosine, "cosine_distance") == pytest.approx(l2, abs=1e-7)


@pytest.mark.parametrize("fallback", FALLBACKS)
@pytest.mark.parametrize("count", [1, 5])
def test_the_first_rank_has_quality_1(fallback: RankFallback, count: int) -> None:
    assert rank_quality(1, count, fallback) == 1.0


@pytest.mark.parametrize(
    ("fallback", "quality"),
    [pytest.param("reciprocal", 0.25, id="reciprocal"), pytest.param("linear", 0.4, id="linear")],
)
def test_a_rank_has_the_quality_of_its_formula(fallback: RankFallback, quality: float) -> None:
    assert rank_quality(4, 5, fallback) == quality


@given(
    st.integers(1, 2**31), st.integers(1, 2**31), st.integers(1, 500), st.sampled_from(FALLBACKS)
)
@examples(100)
def test_a_later_rank_never_raises_quality(
    one: int, other: int, count: int, fallback: RankFallback
) -> None:
    early, late = sorted((one, other))

    assert 1.0 >= rank_quality(early, count, fallback) >= rank_quality(late, count, fallback) >= 0


@pytest.mark.parametrize(
    ("distance", "ruleset", "expected"),
    [
        pytest.param(-1e-9, Ruleset(), True, id="negative"),
        pytest.param(7.5, Ruleset(), False, id="far-apart-but-not-normalized"),
        pytest.param(2.0, Ruleset(normalized=True), False, id="opposite-unit-vectors"),
        pytest.param(2.0000002, Ruleset(normalized=True), False, id="opposite-in-float32"),
        pytest.param(2.001, Ruleset(normalized=True), True, id="beyond-unit-vectors"),
        pytest.param(
            4.0, Ruleset(normalized=True, distance_metric="l2_squared"), False, id="squared"
        ),
        pytest.param(
            4.1, Ruleset(normalized=True, distance_metric="l2_squared"), True, id="squared-beyond"
        ),
        pytest.param(2.1, Ruleset(distance_metric="cosine_distance"), True, id="cosine-beyond"),
    ],
)
def test_a_distance_no_vectors_can_have_is_a_fault(
    distance: float, ruleset: Ruleset, expected: bool
) -> None:
    assert is_impossible(distance, ruleset) is expected


NORMALIZED = Ruleset(normalized=True)


@pytest.mark.parametrize(
    ("distance", "similarity", "ruleset", "expected"),
    [
        pytest.param(0.6, 0.7, NORMALIZED, True, id="fits-only-as-a-square"),
        pytest.param(0.6, 0.82, NORMALIZED, False, id="fits-as-it-is"),
        pytest.param(0.6, 0.1, NORMALIZED, False, id="fits-neither-way"),
        pytest.param(0.0, 1.0, NORMALIZED, False, id="zero-is-its-own-square"),
        pytest.param(0.6, None, NORMALIZED, False, id="nothing-to-compare"),
        pytest.param(0.6, 0.7, Ruleset(), False, id="not-normalized"),
        pytest.param(
            0.6,
            0.7,
            Ruleset(normalized=True, distance_metric="l2_squared"),
            False,
            id="declared-as-squared",
        ),
    ],
)
def test_an_undeclared_square_is_told_by_its_cosine(
    distance: float, similarity: float | None, ruleset: Ruleset, expected: bool
) -> None:
    assert looks_squared(distance, similarity, ruleset) is expected


@given(UNIT_VECTORS, UNIT_VECTORS)
@examples(100)
def test_an_honest_distance_never_looks_squared(one: list[float], other: list[float]) -> None:
    assume(not math.isnan(one[0]) and not math.isnan(other[0]))
    cosine = sum(x * y for x, y in zip(one, other, strict=True))

    assert not looks_squared(math.dist(one, other), cosine, NORMALIZED)


@pytest.mark.parametrize(
    ("candidate", "mode", "expected"),
    [
        pytest.param(
            Candidate(dense_distance=0.5, original_rank=9), "dense", (0.75, "dense_l2"), id="dense"
        ),
        pytest.param(
            Candidate(dense_distance=0.5, original_rank=9, rrf_score=0.01),
            "hybrid",
            (0.75, "hybrid_l2"),
            id="hybrid-with-a-dense-neighbour",
        ),
        pytest.param(
            Candidate(original_rank=2, rrf_score=0.03),
            "hybrid",
            (0.5, "hybrid_rank"),
            id="hybrid-without",
        ),
        pytest.param(Candidate(original_rank=1), "dense", "no_distance", id="dense-without"),
        pytest.param(Candidate(rrf_score=0.03), "hybrid", "no_rank", id="nothing-known"),
        pytest.param(Candidate(dense_distance=0.5), "lexical", "no_rule_for_mode", id="lexical"),
        pytest.param(Candidate(original_rank=1), "unknown", "no_rule_for_mode", id="unknown"),
    ],
)
def test_the_mode_and_the_scores_decide_the_basis(
    candidate: Candidate, mode: str, expected: tuple[float, QualityBasis] | str
) -> None:
    assert candidate_quality(candidate, mode, 4, Ruleset()) == expected


@pytest.mark.parametrize(
    ("distance", "metric"),
    [
        pytest.param(0.5, "l2", id="plain"),
        pytest.param(0.25, "l2_squared", id="squared"),
        pytest.param(0.125, "cosine_distance", id="cosine"),
    ],
)
def test_a_declared_metric_is_converted(distance: float, metric: DistanceMetric) -> None:
    ruleset = Ruleset(distance_metric=metric)

    assert candidate_quality(Candidate(dense_distance=distance), "dense", 1, ruleset) == (
        0.75,
        "dense_l2",
    )


def test_a_distance_that_cannot_be_is_no_reason_for_the_rank_fallback() -> None:
    candidate = Candidate(dense_distance=3.0, original_rank=1)

    assert candidate_quality(candidate, "hybrid", 1, NORMALIZED) == "impossible_distance"


@given(NON_NEGATIVE, st.floats(0, 1), st.floats(0, 1))
@examples(60)
def test_a_fused_score_never_moves_quality(distance: float, one: float, other: float) -> None:
    results = {
        candidate_quality(
            Candidate(dense_distance=distance, original_rank=2, rrf_score=score),
            "hybrid",
            2,
            Ruleset(),
        )
        for score in (one, other)
    }

    assert len(results) == 1


@given(
    st.floats(0, 1e6),
    st.floats(-1, 1) | st.none(),
    st.sampled_from(METRICS),
    st.booleans(),
    POSITIVE,
)
@examples(150)
def test_whatever_is_recorded_quality_is_in_bounds_or_has_a_reason(
    distance: float,
    similarity: float | None,
    metric: DistanceMetric,
    normalized: bool,
    maximum: float,
) -> None:
    ruleset = Ruleset(distance_metric=metric, normalized=normalized, max_l2_distance=maximum)
    candidate = Candidate(dense_distance=distance, similarity_score=similarity)

    quality = candidate_quality(candidate, "dense", 1, ruleset)

    assert isinstance(quality, str) or 0.0 <= quality[0] <= 1.0
