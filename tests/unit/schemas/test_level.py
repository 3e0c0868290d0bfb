import math
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookup_audit.schemas.level import best_candidate, has_l0_hit, is_kept, level_of
from lookup_audit.schemas.names import Level
from lookup_audit.schemas.records import Candidate
from lookup_audit.schemas.ruleset import Ruleset
from tests.support.audits import audited
from tests.support.events import Event, make_candidate, make_lookup
from tests.support.strategies import UNIT, examples

LEGACY = Ruleset(rule="l0-hint/1")
ORDER: list[Level] = ["NONE", "REFERENCE", "HIGHLY_RELEVANT", "PRECISE"]


def below(value: float) -> float:
    return math.nextafter(value, -math.inf)


@pytest.mark.parametrize(
    ("quality", "level"),
    [
        pytest.param(1.0, "PRECISE", id="best"),
        pytest.param(0.75, "PRECISE", id="on-the-upper-threshold"),
        pytest.param(below(0.75), "REFERENCE", id="one-ulp-below-the-upper"),
        pytest.param(0.5, "REFERENCE", id="on-the-lower-threshold"),
        pytest.param(below(0.5), "NONE", id="one-ulp-below-the-lower"),
        pytest.param(0.0, "NONE", id="worst"),
        pytest.param(None, "NONE", id="no-evidence"),
    ],
)
@pytest.mark.parametrize("hit", [True, False])
def test_the_current_rule_looks_at_quality_alone(
    quality: float | None, hit: bool, level: Level
) -> None:
    assert level_of(quality, hit, Ruleset()) == level


@pytest.mark.parametrize(
    ("quality", "hit", "level"),
    [
        pytest.param(0.75, True, "PRECISE", id="with-a-hit"),
        pytest.param(0.75, False, "HIGHLY_RELEVANT", id="without-a-hit"),
        pytest.param(below(0.75), True, "REFERENCE", id="a-hit-alone-is-not-enough"),
        pytest.param(0.5, False, "REFERENCE", id="reference"),
        pytest.param(below(0.5), True, "NONE", id="none"),
        pytest.param(None, True, "NONE", id="no-evidence"),
    ],
)
def test_the_legacy_rule_asks_for_a_level_0_hit(
    quality: float | None, hit: bool, level: Level
) -> None:
    assert level_of(quality, hit, LEGACY) == level


@given(UNIT, UNIT)
@examples(100)
def test_every_threshold_is_inclusive_to_the_last_ulp(one: float, other: float) -> None:
    reference, high = sorted((one, other))
    ruleset = Ruleset(reference_threshold=reference, highly_relevant_threshold=high)

    assert level_of(high, False, ruleset) == "PRECISE"
    assert level_of(below(high), False, ruleset) != "PRECISE"
    assert level_of(below(reference), False, ruleset) == "NONE"


@given(UNIT, UNIT, st.booleans(), st.sampled_from([Ruleset(), LEGACY]))
@examples(100)
def test_a_higher_quality_never_lowers_the_level(
    one: float, other: float, hit: bool, ruleset: Ruleset
) -> None:
    low, high = sorted((one, other))

    assert ORDER.index(level_of(low, hit, ruleset)) <= ORDER.index(level_of(high, hit, ruleset))


@pytest.mark.parametrize(
    ("reasons", "expected"),
    [
        pytest.param(["l0:keyword:timeout"], True, id="keyword"),
        pytest.param(["dense", "l0:domain:sdk"], True, id="domain-among-others"),
        pytest.param(["dense:l0:x", "l0"], False, id="not-at-the-start"),
        pytest.param([], False, id="none"),
        pytest.param(None, False, id="unknown"),
    ],
)
def test_a_level_0_hit_is_told_by_its_reason(reasons: list[str] | None, expected: bool) -> None:
    assert has_l0_hit(Candidate(hit_reasons=reasons)) is expected


@pytest.mark.parametrize(
    ("candidate", "kept"),
    [
        pytest.param(Candidate(), True, id="silent"),
        pytest.param(Candidate(drop_reason=""), True, id="empty-reason"),
        pytest.param(Candidate(drop_reason="budget"), False, id="reason-alone"),
        pytest.param(Candidate(kept=False), False, id="dropped"),
        pytest.param(Candidate(kept=True, drop_reason="budget"), True, id="kept-says-so"),
    ],
)
def test_a_candidate_is_kept_unless_it_says_otherwise(candidate: Candidate, kept: bool) -> None:
    assert is_kept(candidate) is kept


def test_the_best_candidate_has_the_smallest_rank_wherever_it_stands() -> None:
    ranked = [Candidate(original_rank=rank) for rank in (3, 1, 2)]

    assert all(best_candidate(order) is ranked[1] for order in permutations(ranked))


def test_the_first_of_equal_ranks_is_the_best() -> None:
    twins = [Candidate(chunk_id="a", original_rank=1), Candidate(chunk_id="a", original_rank=1)]

    assert best_candidate(twins) is twins[0]


def test_a_single_candidate_is_the_best_without_a_rank() -> None:
    only = Candidate()

    assert best_candidate([only]) is only


def test_of_several_an_unknown_rank_could_be_the_best() -> None:
    assert best_candidate([Candidate(original_rank=2), Candidate()]) is None


def test_without_candidates_there_is_no_best() -> None:
    assert best_candidate([]) is None


DROPPED = st.lists(
    st.builds(
        lambda distance, rank: make_candidate(
            chunk_id=f"dropped-{rank}",
            original_rank=rank,
            dense_distance=distance,
            kept=False,
            drop_reason="budget",
        ),
        st.floats(0, 2),
        st.integers(1, 20),
    ),
    max_size=4,
)


@given(DROPPED, DROPPED, st.sampled_from(["dense", "hybrid"]))
@examples(60)
def test_dropped_candidates_never_change_the_level(
    some: list[Event], others: list[Event], mode: str
) -> None:
    kept = [make_candidate(original_rank=7), make_candidate(original_rank=9, dense_distance=1.5)]
    alone = audited(make_lookup(mode=mode, candidates=kept))

    mixed = audited(make_lookup(mode=mode, candidates=[*some, kept[0], *others, kept[1]]))

    assert (mixed.recomputed_level, mixed.quality_score) == (
        alone.recomputed_level,
        alone.quality_score,
    )


@given(st.floats(0, 2), st.lists(st.floats(0, 2), max_size=4), st.permutations(range(5)))
@examples(60)
def test_the_level_depends_on_the_best_rank_alone(
    best: float, rest: list[float], order: list[int]
) -> None:
    candidates = [
        make_candidate(original_rank=rank, dense_distance=distance)
        for rank, distance in enumerate([best, *rest], start=1)
    ]
    shuffled = [candidates[index] for index in order if index < len(candidates)]

    assert (
        audited(make_lookup(candidates=shuffled)).recomputed_level
        == audited(make_lookup(candidates=candidates[:1])).recomputed_level
    )
