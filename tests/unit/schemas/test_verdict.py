from typing import Any

import pytest
from hypothesis import given

from lookup_audit.schemas.names import CHECKS, Degradation
from lookup_audit.schemas.ruleset import DEFAULT_RULESET, Ruleset
from lookup_audit.schemas.verdict import Verdict
from tests.support.audits import DEFAULT_REGISTRY, NO_REGISTRY, audited, outcome_of, registry_of
from tests.support.events import Event, make_candidate, make_lookup
from tests.support.strategies import examples, lookups


@given(lookups())
@examples(150)
def test_every_accepted_lookup_has_a_verdict(event: Event) -> None:
    for registry in (DEFAULT_REGISTRY, NO_REGISTRY, registry_of(Ruleset(normalized=True))):
        verdict = audited(event, registry).verdict()

        assert verdict.level_check in ("pass", "fail", "unverifiable")
        assert (verdict.level_mismatch is not None) is (verdict.level_check == "fail")
        if verdict.recomputed_level is None:
            assert verdict.level_check == "unverifiable"
        elif verdict.level_check == "unverifiable":
            assert "level_unknown" in verdict.source_degradations


@given(lookups())
@examples(60)
def test_a_verdict_is_the_same_every_time(event: Event) -> None:
    assert audited(event).verdict() == audited(event).verdict()


@given(lookups())
@examples(60)
def test_a_verdict_survives_json(event: Event) -> None:
    verdict = audited(event).verdict()

    assert Verdict.model_validate_json(verdict.model_dump_json()) == verdict


@given(lookups())
@examples(100)
def test_a_check_is_reported_once(event: Event) -> None:
    verdict = audited(event)

    names = [text.partition(":")[0] for text in verdict.failures + verdict.unverifiable]

    assert len(names) == len(set(names))
    assert set(names) <= set(CHECKS)
    assert verdict.failed_checks == [text.partition(":")[0] for text in verdict.failures]


@given(lookups())
@examples(60)
def test_an_unknown_field_outside_the_projection_changes_no_check(event: Event) -> None:
    one, other = audited(event), audited(event | {"rrf_news": {"distance": 1}})

    assert (one.failures, one.unverifiable) == (other.failures, other.unverifiable)


def test_a_verdict_names_the_ruleset_it_recomputed_by() -> None:
    registered = Ruleset(highly_relevant_threshold=0.9)

    verdict = audited(make_lookup(), registry_of(registered))

    assert verdict.ruleset_id == registered.ruleset_id


def test_without_a_registered_ruleset_the_events_own_is_used() -> None:
    assert audited(make_lookup(), NO_REGISTRY).ruleset_id == DEFAULT_RULESET.ruleset_id


def test_without_any_ruleset_there_is_no_id() -> None:
    assert audited(make_lookup(thresholds=None), NO_REGISTRY).ruleset_id is None


def test_quality_and_basis_are_those_of_the_best_candidate() -> None:
    event = make_lookup(
        mode="hybrid",
        candidates=[
            make_candidate(original_rank=2, dense_distance=0.1),
            make_candidate(original_rank=1, dense_distance=None),
        ],
    )

    verdict = audited(event)

    assert (verdict.quality_score, verdict.quality_basis) == (1.0, "hybrid_rank")


def test_a_level_of_null_is_none() -> None:
    assert audited(make_lookup(relevance_level=None)).reported_level == "NONE"


def test_what_is_recomputed_stands_beside_each_candidate() -> None:
    verdict = audited(make_lookup())

    assert verdict.qualities == [0.795, 0.6]
    assert verdict.layers == ["high", "low"]


def test_a_second_copy_of_a_chunk_is_marked() -> None:
    twin = make_candidate()

    assert audited(make_lookup(candidates=[twin, twin])).duplicates == [False, True]


def test_candidates_without_an_id_are_never_taken_for_copies() -> None:
    nameless = make_candidate(chunk_id=None)

    assert audited(make_lookup(candidates=[nameless, nameless])).duplicates == [False, False]


def hybrid(score: float, **trace: Any) -> Event:
    """A lookup of two routes fused with k = 60: no fused score can exceed 2 / 61."""
    routes = [{"name": "dense"}, {"name": "keyword"}]
    return make_lookup(
        mode="hybrid",
        candidates=[make_candidate(rrf_score=score)],
        retrieval_trace={"routes": routes, "fusion": {"method": "rrf", "k": 60}} | trace,
    )


@pytest.mark.parametrize(
    ("event", "normalized", "expected"),
    [
        pytest.param(make_lookup(), False, [], id="nothing-odd"),
        pytest.param(
            make_lookup(candidates=[make_candidate(), make_candidate()]),
            False,
            [Degradation.DUPLICATE_CANDIDATE],
            id="duplicate",
        ),
        pytest.param(
            make_lookup(candidates=[make_candidate(chunk_id=None)]),
            False,
            [Degradation.UNIDENTIFIED_CANDIDATE],
            id="no-id",
        ),
        pytest.param(
            make_lookup(
                schema_version="1.1", candidates=[make_candidate(original_rank=None, chunk_id="a")]
            ),
            False,
            [Degradation.MISSING_RANK],
            id="no-rank",
        ),
        pytest.param(
            make_lookup(candidates=[make_candidate(dense_distance=2.5, similarity_score=None)]),
            True,
            [Degradation.IMPOSSIBLE_DISTANCE],
            id="impossible",
        ),
        pytest.param(
            make_lookup(candidates=[make_candidate(dense_distance=0.6, similarity_score=0.7)]),
            True,
            [Degradation.DISTANCE_LOOKS_SQUARED],
            id="square",
        ),
        pytest.param(
            make_lookup(candidates=[make_candidate(dense_distance=0, similarity_score=1.0000001)]),
            False,
            [Degradation.SIMILARITY_CLAMPED],
            id="overshoot",
        ),
        pytest.param(make_lookup(news=1), False, [Degradation.UNKNOWN_FIELDS], id="unknown-field"),
        pytest.param(hybrid(2 / 61), False, [], id="largest-fused-score"),
        pytest.param(
            hybrid(0.04), False, [Degradation.RRF_ABOVE_MAXIMUM], id="fused-score-of-another-k"
        ),
        pytest.param(hybrid(0.04, fusion=None), False, [], id="fused-score-of-unknown-k"),
        pytest.param(
            make_lookup(candidates=[make_candidate(document_updated_at="0001-01-01T00:00:00Z")]),
            False,
            [Degradation.DOCUMENT_TIME_OUT_OF_RANGE],
            id="never-updated",
        ),
        pytest.param(
            make_lookup(rerank_trace={"moves": []}),
            False,
            [Degradation.RERANK_MISMATCH],
            id="rerank",
        ),
    ],
)
def test_what_is_odd_is_named(event: Event, normalized: bool, expected: list[str]) -> None:
    assert audited(event, registry_of(Ruleset(normalized=normalized))).degradations == expected


def test_the_newest_registry_decides_and_not_the_event() -> None:
    verdict = audited(make_lookup(), registry_of(Ruleset(highly_relevant_threshold=0.9)))

    assert verdict.recomputed_level == "REFERENCE"
    assert outcome_of(verdict, "level") == "fail:stale_threshold"


def test_a_level_that_the_source_could_not_tell_is_no_mismatch() -> None:
    told = make_lookup(relevance_level=None)
    verdict = audited(told | {"degradations": ["level_unknown"]}).verdict()

    assert audited(told).verdict().level_check == "fail"
    assert (verdict.level_check, verdict.recomputed_level) == ("unverifiable", "PRECISE")
    assert "level:level_not_reported" in verdict.unverifiable
    assert verdict.source_degradations == ("level_unknown",)


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        pytest.param(
            make_lookup(candidates=[], relevance_level=None, degradations=["candidates_unknown"]),
            "candidates_unknown",
            id="nothing-was-told",
        ),
        pytest.param(
            make_lookup(
                candidates=[make_candidate(original_rank=3)], degradations=["documents_missing"]
            ),
            "documents_missing",
            id="the-first-is-missing",
        ),
        pytest.param(
            make_lookup(
                mode="hybrid",
                candidates=[make_candidate(dense_distance=None)],
                degradations=["mode_inferred"],
            ),
            "mode_inferred",
            id="a-rank-under-a-guessed-mode",
        ),
    ],
)
def test_a_level_is_not_recomputed_from_what_the_source_could_not_tell(
    event: Event, reason: str
) -> None:
    verdict = audited(event).verdict()

    assert verdict.recomputed_level is None
    assert f"level:{reason}" in verdict.unverifiable


def test_a_degradation_that_is_no_known_word_does_not_reach_the_verdict() -> None:
    event = make_lookup(degradations=["level_unknown", "made-up"])

    assert audited(event).degradations == ["level_unknown"]
