import math
from typing import Any

import pytest

from lookup_audit.schemas.checks import CHECK_FUNCTIONS
from lookup_audit.schemas.names import CHECKS, CheckName
from lookup_audit.schemas.ruleset import DEFAULT_RULESET, Registry, Ruleset
from tests.support.audits import (
    DEFAULT_REGISTRY,
    NO_REGISTRY,
    audited,
    outcome_of,
    registry_of,
)
from tests.support.events import DEFAULT_THRESHOLDS, Event, make_candidate, make_lookup

FIRST = "doc-1#chunk-0"
SECOND = "doc-2#chunk-0"
FAR = 0.5000000000000002  # its quality is one ulp below 0.75
LEGACY = registry_of(Ruleset(rule="l0-hint/1"))


def pair(first: Event | None = None, second: Event | None = None) -> list[Event]:
    """The candidates of the default lookup, each with members of its own."""
    return [
        make_candidate(**{"original_rank": 1} | (first or {})),
        make_candidate(
            **{"original_rank": 2, "dense_distance": 0.8, "breadcrumb": "SDK > Retries"}
            | (second or {})
        ),
    ]


def candidates(first: Event | None = None, second: Event | None = None, **over: Any) -> Event:
    return make_lookup(candidates=pair(first, second), **over)


def projected(**over: Any) -> Event:
    event = make_lookup()
    event["projection"] |= over
    return event


def shown(**over: Any) -> Event:
    """The default lookup where the one piece of evidence shown has members of its own."""
    event = make_lookup()
    event["projection"]["evidence"][0] |= over
    return event


def without(name: str, event: Event | None = None) -> Event:
    return {key: value for key, value in (event or make_lookup()).items() if key != name}


def moves(*chunks: str | None, **over: Any) -> Event:
    trace = [
        {"chunk_id": chunk, "rank_before": rank, "rank_after": rank, "score": 0.5}
        for rank, chunk in enumerate(chunks, start=1)
    ]
    return make_lookup(rerank_trace={"model": "ce-1", "moves": trace}, **over)


def test_there_is_a_check_for_every_name() -> None:
    assert tuple(CHECK_FUNCTIONS) == CHECKS


@pytest.mark.parametrize("check", CHECKS)
def test_an_honest_lookup_passes_every_check(check: CheckName) -> None:
    assert outcome_of(audited(make_lookup()), check) == "pass"


@pytest.mark.parametrize("check", CHECKS)
def test_an_honest_lookup_that_found_nothing_passes_every_check(check: CheckName) -> None:
    assert outcome_of(audited(make_lookup(candidates=[])), check) == "pass"


@pytest.mark.parametrize(
    ("event", "registry", "expected"),
    [
        pytest.param(
            make_lookup(candidates=pair({"dense_distance": 0.5})),
            DEFAULT_REGISTRY,
            "pass",
            id="on-the-threshold",
        ),
        pytest.param(
            candidates({"dense_distance": 0.5}, relevance_level="REFERENCE"),
            DEFAULT_REGISTRY,
            "fail:rounding",
            id="rounding-down-on-the-threshold",
        ),
        pytest.param(
            candidates({"dense_distance": FAR}, relevance_level="PRECISE"),
            DEFAULT_REGISTRY,
            "fail:rounding",
            id="rounding-up-one-ulp-below",
        ),
        pytest.param(
            candidates({"dense_distance": 0.500001}, relevance_level="PRECISE"),
            DEFAULT_REGISTRY,
            "fail:rounding",
            id="rounding-within-the-tolerance",
        ),
        pytest.param(
            candidates({"dense_distance": 0.500003}, relevance_level="PRECISE"),
            DEFAULT_REGISTRY,
            "fail:rule",
            id="beyond-the-tolerance",
        ),
        pytest.param(
            candidates({"dense_distance": 1.0}, relevance_level=None),
            DEFAULT_REGISTRY,
            "fail:rounding",
            id="rounding-at-the-lower-threshold",
        ),
        pytest.param(
            candidates({"dense_distance": FAR}, {"dense_distance": 1.9}, relevance_level=None),
            DEFAULT_REGISTRY,
            "fail:wrong_top",
            id="near-a-threshold-that-does-not-explain-it",
        ),
        pytest.param(
            candidates({"dense_distance": 0.56}, relevance_level="PRECISE"),
            registry_of(Ruleset(highly_relevant_threshold=0.7), DEFAULT_RULESET),
            "fail:stale_threshold",
            id="fits-an-earlier-ruleset",
        ),
        pytest.param(
            candidates(
                {"dense_distance": 0.56},
                relevance_level="PRECISE",
                thresholds=DEFAULT_THRESHOLDS | {"highly_relevant_threshold": 0.7},
            ),
            DEFAULT_REGISTRY,
            "fail:stale_threshold",
            id="fits-the-ruleset-it-states",
        ),
        pytest.param(
            make_lookup(relevance_level="REFERENCE"),
            DEFAULT_REGISTRY,
            "fail:wrong_top",
            id="fits-the-second",
        ),
        pytest.param(
            make_lookup(
                candidates=[
                    make_candidate(dense_distance=0.1, kept=False, drop_reason="budget"),
                    make_candidate(original_rank=2, dense_distance=0.8),
                ],
                relevance_level="PRECISE",
            ),
            DEFAULT_REGISTRY,
            "fail:wrong_top",
            id="fits-a-dropped-one",
        ),
        pytest.param(
            make_lookup(relevance_level="HIGHLY_RELEVANT"),
            DEFAULT_REGISTRY,
            "fail:legacy_rule",
            id="fits-the-legacy-rule",
        ),
        pytest.param(
            make_lookup(relevance_level="HIGHLY_RELEVANT"),
            registry_of(Ruleset(rule="l0-hint/1"), DEFAULT_RULESET),
            "fail:legacy_rule",
            id="fits-the-legacy-rule-that-once-was-in-force",
        ),
        pytest.param(
            make_lookup(candidates=[], relevance_level="PRECISE"),
            DEFAULT_REGISTRY,
            "fail:level_without_evidence",
            id="level-of-nothing",
        ),
        pytest.param(
            make_lookup(candidates=[make_candidate(kept=False)], relevance_level="PRECISE"),
            DEFAULT_REGISTRY,
            "fail:level_without_evidence",
            id="level-of-what-was-dropped",
        ),
        pytest.param(
            make_lookup(candidates=[], relevance_level="PRECISE", thresholds=None),
            NO_REGISTRY,
            "fail:level_without_evidence",
            id="level-of-nothing-under-any-ruleset",
        ),
        pytest.param(
            make_lookup(relevance_level=None), DEFAULT_REGISTRY, "fail:rule", id="fits-nothing"
        ),
        pytest.param(
            make_lookup(relevance_level="NONE", candidates=[]),
            DEFAULT_REGISTRY,
            "pass",
            id="none-is-null",
        ),
        pytest.param(
            candidates({"hit_reasons": ["l0:domain:sdk"]}), LEGACY, "pass", id="legacy-with-a-hit"
        ),
        pytest.param(
            candidates({"hit_reasons": ["l1:x"]}, relevance_level="HIGHLY_RELEVANT"),
            LEGACY,
            "pass",
            id="legacy-without-a-hit",
        ),
        pytest.param(
            make_lookup(thresholds=None), NO_REGISTRY, "unverifiable:no_thresholds", id="no-ruleset"
        ),
        pytest.param(make_lookup(), NO_REGISTRY, "pass", id="by-what-the-event-states"),
        pytest.param(
            make_lookup(mode="lexical"),
            DEFAULT_REGISTRY,
            "unverifiable:no_rule_for_mode",
            id="lexical",
        ),
        pytest.param(
            make_lookup(mode="unknown", candidates=[]),
            DEFAULT_REGISTRY,
            "unverifiable:no_rule_for_mode",
            id="unknown-mode-without-candidates",
        ),
        pytest.param(
            candidates({"dense_distance": None}),
            DEFAULT_REGISTRY,
            "unverifiable:no_distance",
            id="dense-without-a-distance",
        ),
        pytest.param(
            candidates({"dense_distance": None}, mode="hybrid"),
            DEFAULT_REGISTRY,
            "pass",
            id="hybrid-by-rank",
        ),
        pytest.param(
            make_lookup(
                schema_version="1.1",
                candidates=[without("original_rank", make_candidate(chunk_id=c)) for c in "ab"],
            ),
            DEFAULT_REGISTRY,
            "unverifiable:unknown_rank",
            id="ranks-unknown",
        ),
        pytest.param(
            make_lookup(
                schema_version="1.1",
                mode="hybrid",
                candidates=[
                    make_candidate(
                        chunk_id="a", original_rank=None, dense_distance=None, source_url="u"
                    )
                ],
            ),
            DEFAULT_REGISTRY,
            "unverifiable:no_rank",
            id="hybrid-without-distance-and-rank",
        ),
        pytest.param(
            candidates({"dense_distance": 2.5, "similarity_score": None}),
            registry_of(Ruleset(normalized=True)),
            "unverifiable:impossible_distance",
            id="impossible-distance",
        ),
        pytest.param(
            candidates({"dense_distance": 0.6, "similarity_score": 0.7}),
            registry_of(Ruleset(normalized=True)),
            "unverifiable:distance_looks_squared",
            id="undeclared-square",
        ),
    ],
)
def test_level(event: Event, registry: Registry, expected: str) -> None:
    assert outcome_of(audited(event, registry), "level") == expected


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        pytest.param(candidates({"quality_score": 0.7950005}), "pass", id="within-tolerance"),
        pytest.param(
            candidates({"quality_score": 0.79501}), "fail:quality_differs@candidates[0]", id="first"
        ),
        pytest.param(
            candidates(None, {"quality_score": 0.9}),
            "fail:quality_differs@candidates[1]",
            id="not-only-the-best",
        ),
        pytest.param(
            candidates({"quality_score": None}, {"quality_score": 0.9}),
            "fail:quality_differs@candidates[1]",
            id="a-failure-outweighs-a-missing-input",
        ),
        pytest.param(
            candidates(None, {"quality_score": 0.9, "kept": False}), "pass", id="dropped-is-free"
        ),
        pytest.param(
            make_lookup(quality_score=0.9), "fail:quality_differs@quality_score", id="of-the-call"
        ),
        pytest.param(make_lookup(quality_score=None), "pass", id="call-without-one"),
        pytest.param(
            candidates({"quality_score": None}),
            "unverifiable:no_reported_quality@candidates[0]",
            id="not-reported",
        ),
        pytest.param(
            candidates(None, {"dense_distance": None, "quality_score": 0.4}),
            "unverifiable:no_distance@candidates[1]",
            id="no-distance",
        ),
        pytest.param(
            make_lookup(mode="lexical"),
            "unverifiable:no_rule_for_mode@candidates[0]",
            id="no-rule",
        ),
        pytest.param(
            candidates({"dense_distance": None, "quality_score": 1.0}, mode="hybrid"),
            "pass",
            id="by-rank",
        ),
    ],
)
def test_quality(event: Event, expected: str) -> None:
    assert outcome_of(audited(event), "quality") == expected


def test_quality_without_a_ruleset_is_unverifiable() -> None:
    verdict = audited(make_lookup(thresholds=None), NO_REGISTRY)

    assert outcome_of(verdict, "quality") == "unverifiable:no_thresholds@candidates[0]"


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        pytest.param(
            candidates(None, {"chunk_id": FIRST}), f"fail:duplicate_chunk@{FIRST}", id="duplicate"
        ),
        pytest.param(
            candidates(None, {"chunk_id": FIRST, "kept": False, "drop_reason": "duplicate"}),
            "pass",
            id="duplicate-that-was-dropped",
        ),
        pytest.param(
            make_lookup(candidates=pair()[::-1]),
            f"fail:ranks_not_increasing@{FIRST}",
            id="falling-ranks",
        ),
        pytest.param(
            candidates(None, {"original_rank": 1, "chunk_id": SECOND}),
            f"fail:ranks_not_increasing@{SECOND}",
            id="equal-ranks",
        ),
        pytest.param(candidates({"original_rank": 3}, {"original_rank": 8}), "pass", id="gaps"),
        pytest.param(
            candidates({"chunk_id": None}, selected_chunk_ids=[]),
            "unverifiable:unidentified_candidate",
            id="no-id",
        ),
        pytest.param(
            candidates({"original_rank": None, "chunk_id": FIRST}, schema_version="1.1"),
            f"unverifiable:unknown_rank@{FIRST}",
            id="no-rank",
        ),
        pytest.param(moves(FIRST, SECOND), "pass", id="reranked"),
        pytest.param(moves(SECOND, FIRST), "pass", id="reranked-in-any-order"),
        pytest.param(
            moves(FIRST), "fail:kept_chunk_not_reranked@rerank_trace.moves", id="one-is-missing"
        ),
        pytest.param(
            moves(), "fail:kept_chunk_not_reranked@rerank_trace.moves", id="nothing-reranked"
        ),
        pytest.param(
            moves(FIRST, SECOND, "ghost"),
            "fail:unknown_chunk_reranked@rerank_trace.moves",
            id="one-too-many",
        ),
        pytest.param(
            moves(FIRST, SECOND, candidates=pair(None, {"kept": False})),
            "pass",
            id="dropped-after-reranking",
        ),
        pytest.param(
            moves(FIRST, SECOND, SECOND),
            "fail:chunk_moved_twice@rerank_trace.moves",
            id="moved-twice",
        ),
        pytest.param(
            moves(FIRST, None),
            "unverifiable:unidentified_move@rerank_trace.moves",
            id="move-without-an-id",
        ),
        pytest.param(make_lookup(rerank_trace={"model": "ce-1"}), "pass", id="trace-without-moves"),
    ],
)
def test_order(event: Event, expected: str) -> None:
    assert outcome_of(audited(event), "order") == expected


@pytest.mark.parametrize(
    ("thresholds", "registry", "expected"),
    [
        pytest.param(
            DEFAULT_THRESHOLDS | {"reference_threshold": 0.4},
            DEFAULT_REGISTRY,
            "fail:differs_from_registry@thresholds.reference_threshold",
            id="threshold",
        ),
        pytest.param(
            DEFAULT_THRESHOLDS | {"rank_fallback": "linear"},
            DEFAULT_REGISTRY,
            "fail:differs_from_registry@thresholds.rank_fallback",
            id="formula",
        ),
        pytest.param(
            DEFAULT_THRESHOLDS | {"highly_relevant_threshold": math.nextafter(0.75, 1)},
            DEFAULT_REGISTRY,
            "fail:differs_from_registry@thresholds.highly_relevant_threshold",
            id="by-one-ulp",
        ),
        pytest.param(
            DEFAULT_THRESHOLDS | {"reference_threshold": 0.8},
            NO_REGISTRY,
            "fail:reference_above_highly_relevant",
            id="upside-down-in-the-event",
        ),
        pytest.param(
            None,
            registry_of(Ruleset(reference_threshold=0.8)),
            "fail:reference_above_highly_relevant",
            id="upside-down-in-the-registry",
        ),
        pytest.param(
            {"highly_relevant_threshold": 0.75, "reference_threshold": 0.5},
            DEFAULT_REGISTRY,
            "pass",
            id="the-two-that-count",
        ),
        pytest.param(
            {"reference_threshold": 0.4},
            DEFAULT_REGISTRY,
            "fail:differs_from_registry@thresholds.reference_threshold",
            id="one-alone-that-differs",
        ),
        pytest.param(
            {"reference_threshold": 0.5},
            DEFAULT_REGISTRY,
            "unverifiable:no_thresholds",
            id="one-alone",
        ),
        pytest.param({}, DEFAULT_REGISTRY, "unverifiable:no_thresholds", id="empty"),
        pytest.param(None, DEFAULT_REGISTRY, "unverifiable:no_thresholds", id="none"),
        pytest.param(
            DEFAULT_THRESHOLDS, NO_REGISTRY, "unverifiable:no_registered_ruleset", id="no-registry"
        ),
    ],
)
def test_ruleset(thresholds: Event | None, registry: Registry, expected: str) -> None:
    assert outcome_of(audited(make_lookup(thresholds=thresholds), registry), "ruleset") == expected


NOTHING_SHOWN: Event = {"evidence": [], "returned_count": 0, "evidence_status": "NO_EVIDENCE"}


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        pytest.param(
            make_lookup(evidence_status="NO_EVIDENCE"),
            "fail:no_evidence_with_evidence@evidence_status",
            id="none-with-some",
        ),
        pytest.param(
            make_lookup(evidence_status="NO_EVIDENCE", projection=None, selected_chunk_ids=None),
            "fail:no_evidence_with_evidence@evidence_status",
            id="none-with-kept-candidates",
        ),
        pytest.param(
            make_lookup(candidates=[], evidence_status="EVIDENCE_FOUND"),
            "fail:evidence_found_without_evidence@evidence_status",
            id="some-with-none",
        ),
        pytest.param(
            make_lookup(evidence_status="NO_EVIDENCE", projection=NOTHING_SHOWN, returned_count=0),
            "fail:level_on_no_evidence@relevance_level",
            id="level-on-none",
        ),
        pytest.param(
            make_lookup(returned_count=2),
            "fail:returned_count_differs@returned_count",
            id="count",
        ),
        pytest.param(
            make_lookup(returned_count=None)
            | {"projection": projected()["projection"] | {"returned_count": 3}},
            "fail:returned_count_differs@projection.returned_count",
            id="count-of-the-projection",
        ),
        pytest.param(
            make_lookup(returned_count=3, projection=None),
            "fail:returned_count_differs@returned_count",
            id="more-returned-than-kept",
        ),
        pytest.param(
            make_lookup(evidence_status=None), "unverifiable:no_evidence_status", id="no-status"
        ),
        pytest.param(
            make_lookup(returned_count=None), "unverifiable:no_returned_count", id="no-count"
        ),
        pytest.param(make_lookup(projection=None), "unverifiable:no_projection", id="not-shown"),
        pytest.param(
            make_lookup(projection=None, evidence_status="EVIDENCE_FOUND", selected_chunk_ids=[]),
            "fail:evidence_found_without_evidence@evidence_status",
            id="nothing-selected",
        ),
    ],
)
def test_evidence(event: Event, expected: str) -> None:
    assert outcome_of(audited(event), "evidence") == expected


def leaking(path: str, value: object = 0.4) -> Event:
    event = make_lookup()
    *places, name = path.split(".")
    target: Any = event["projection"]
    for place in places:
        target = target[int(place)] if place.isdigit() else target.setdefault(place, {})
    target[name] = value
    return event


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        pytest.param(
            projected(relevance_level="REFERENCE"),
            "fail:disagrees@projection.relevance_level",
            id="other-level",
        ),
        pytest.param(
            projected(relevance_level=None),
            "fail:disagrees@projection.relevance_level",
            id="level-withheld",
        ),
        pytest.param(
            projected(evidence_status="NO_EVIDENCE"),
            "fail:disagrees@projection.evidence_status",
            id="other-status",
        ),
        pytest.param(
            projected(returned_count=4),
            "fail:disagrees@projection.returned_count",
            id="other-count",
        ),
        pytest.param(projected(truncated=True), "fail:disagrees@projection.truncated", id="cut"),
        pytest.param(
            projected(tool_call_id="call-8"), "fail:disagrees@projection.tool_call_id", id="call"
        ),
        pytest.param(projected(query="else"), "fail:disagrees@projection.query", id="other-query"),
        pytest.param(
            projected(completeness_hint="x") | {"completeness_hint": "y"},
            "fail:disagrees@projection.completeness_hint",
            id="other-hint",
        ),
        pytest.param(projected(truncated=None, query=None), "pass", id="trimmed"),
        pytest.param(
            shown(excerpt="The default timeout is sixty seconds."),
            "fail:excerpt_not_in_chunk@projection.evidence[0]",
            id="invented-excerpt",
        ),
        pytest.param(shown(excerpt="thirty seconds"), "pass", id="part-of-the-chunk"),
        pytest.param(shown(excerpt=None), "pass", id="no-excerpt"),
        pytest.param(
            shown(document_id="ghost"), "fail:unknown_evidence@projection.evidence[0]", id="unknown"
        ),
        pytest.param(
            make_lookup(candidates=pair({"kept": False}), projection=projected()["projection"]),
            "fail:disagrees@projection.relevance_level",
            id="dropped-with-another-level",
        ),
        pytest.param(
            make_lookup(
                candidates=pair(None, {"kept": False}),
                projection=shown(document_id=SECOND)["projection"],
            ),
            "fail:dropped_evidence@projection.evidence[0]",
            id="dropped",
        ),
        pytest.param(shown(document_id="doc-1"), "pass", id="cited-by-document"),
        pytest.param(
            make_lookup(
                candidates=pair(None, {"document_id": "doc-1", "excerpt": "Another passage."}),
                projection=shown(document_id="doc-1", excerpt="Another passage.")["projection"],
            ),
            "pass",
            id="any-chunk-of-the-cited-document",
        ),
        pytest.param(
            make_lookup(
                candidates=pair(None, {"excerpt": "Another passage."}),
                projection=shown(excerpt="Another passage.")["projection"],
            ),
            "fail:excerpt_not_in_chunk@projection.evidence[0]",
            id="excerpt-of-another-chunk",
        ),
        pytest.param(
            leaking("evidence.0.rrf_score"),
            "fail:leaks_internal@projection.evidence[0].rrf_score",
            id="leaks-rrf",
        ),
        pytest.param(
            leaking("evidence.0.denseDistance"),
            "fail:leaks_internal@projection.evidence[0].denseDistance",
            id="leaks-a-distance-in-camel-case",
        ),
        pytest.param(
            leaking("rawL2Distance"),
            "fail:leaks_internal@projection.rawL2Distance",
            id="leaks-a-distance-by-another-name",
        ),
        pytest.param(
            leaking("thresholds", {}), "fail:leaks_internal@projection.thresholds", id="thresholds"
        ),
        pytest.param(
            leaking("retrieval_trace", {}),
            "fail:leaks_internal@projection.retrieval_trace",
            id="trace",
        ),
        pytest.param(
            leaking("debug.ranking.RRF"),
            "fail:leaks_internal@projection.debug.ranking.RRF",
            id="leaks-at-any-depth",
        ),
        pytest.param(leaking("evidence.0.page"), "pass", id="harmless-unknown-field"),
        pytest.param(leaking("trace_id", "t"), "pass", id="a-trace-id-is-no-trace"),
        pytest.param(make_lookup(projection=None), "unverifiable:no_projection", id="not-given"),
        pytest.param(
            projected(evidence=None),
            "unverifiable:no_projected_evidence@projection.evidence",
            id="no-list",
        ),
        pytest.param(
            shown(document_id=None),
            "unverifiable:unidentified_evidence@projection.evidence[0]",
            id="cites-nothing",
        ),
        pytest.param(
            make_lookup(
                candidates=pair({"excerpt": None}), projection=shown(excerpt="x")["projection"]
            ),
            "unverifiable:no_chunk_text@projection.evidence[0]",
            id="no-chunk-text",
        ),
    ],
)
def test_projection(event: Event, expected: str) -> None:
    assert outcome_of(audited(event), "projection") == expected


def select(
    *chunks: str, first: Event | None = None, second: Event | None = None, **over: Any
) -> Event:
    return candidates(
        first, {"similarity_score": 0.75} | (second or {}), selected_chunk_ids=list(chunks), **over
    )


SAME_PLACE = {
    "document_id": "doc-1",
    "source_url": "https://kb.example.com/p/1",
    "breadcrumb": "SDK > Client > Timeouts",
}
NO_PLACE = {"document_id": "doc-1", "source_url": None, "breadcrumb": None}


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        pytest.param(select(FIRST, SECOND), "pass", id="both"),
        pytest.param(select(), "pass", id="nothing"),
        pytest.param(select("ghost"), "fail:unknown_chunk@ghost", id="unknown"),
        pytest.param(
            select(SECOND, second={"kept": False}), f"fail:dropped_chunk@{SECOND}", id="dropped"
        ),
        pytest.param(
            select(FIRST, first={"kept": False}, second={"chunk_id": FIRST}),
            "pass",
            id="one-of-two-copies-was-kept",
        ),
        pytest.param(
            select(SECOND, second={"similarity_score": 0.5}), f"fail:low_layer@{SECOND}", id="low"
        ),
        pytest.param(
            select(SECOND, second={"similarity_score": None, "layer": "low"}),
            f"fail:low_layer@{SECOND}",
            id="low-by-its-own-word",
        ),
        pytest.param(select(FIRST, FIRST), f"fail:duplicate@{FIRST}", id="twice"),
        pytest.param(
            select(FIRST, SECOND, second=SAME_PLACE), f"fail:duplicate@{SECOND}", id="same-citation"
        ),
        pytest.param(
            select(
                FIRST,
                SECOND,
                first={"document_version": ""},
                second=SAME_PLACE | {"document_version": None},
            ),
            f"fail:duplicate@{SECOND}",
            id="empty-and-no-version-are-the-same",
        ),
        pytest.param(
            select(FIRST, SECOND, second=SAME_PLACE | {"document_version": "v4"}),
            "pass",
            id="another-version",
        ),
        pytest.param(
            select(FIRST, SECOND, second=SAME_PLACE | {"breadcrumb": "SDK > Retries"}),
            "pass",
            id="another-place",
        ),
        pytest.param(
            select(FIRST, SECOND, first=NO_PLACE, second=NO_PLACE),
            "pass",
            id="unknown-citations-are-not-the-same",
        ),
        pytest.param(
            select(FIRST, SECOND, context_budget={"limit_tokens": 359}),
            "fail:over_budget@context_budget",
            id="over-budget",
        ),
        pytest.param(
            select(FIRST, SECOND, context_budget={"limit_tokens": 360}), "pass", id="on-budget"
        ),
        pytest.param(
            select(FIRST, context_budget={"limit_tokens": 200, "used_tokens": 201}),
            "fail:over_budget@context_budget",
            id="over-budget-by-its-own-word",
        ),
        pytest.param(
            select(FIRST, SECOND, second={"tokens": None}, context_budget={"limit_tokens": 179}),
            "fail:over_budget@context_budget",
            id="over-budget-by-what-is-known",
        ),
        pytest.param(
            select(FIRST, second={"similarity_score": None}, first={"similarity_score": None}),
            f"unverifiable:unknown_layer@{FIRST}",
            id="unknown-layer",
        ),
        pytest.param(
            select(
                FIRST,
                first={"similarity_score": None},
                context_budget={"limit_tokens": 1, "used_tokens": 2},
            ),
            "fail:over_budget@context_budget",
            id="a-failure-outweighs-a-missing-input",
        ),
        pytest.param(
            make_lookup(selected_chunk_ids=None), "unverifiable:no_selection", id="no-selection"
        ),
        pytest.param(make_lookup(context_budget=None), "unverifiable:no_budget", id="no-budget"),
        pytest.param(
            select(FIRST, first={"tokens": None}, context_budget={"limit_tokens": 4000}),
            "unverifiable:no_tokens",
            id="no-tokens",
        ),
    ],
)
def test_selection(event: Event, expected: str) -> None:
    assert outcome_of(audited(event), "selection") == expected


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        pytest.param(
            candidates({"layer": "middle"}), "fail:layer_differs@candidates[0]", id="too-low"
        ),
        pytest.param(
            candidates(None, {"layer": "high", "kept": False}),
            "fail:layer_differs@candidates[1]",
            id="of-a-dropped-one",
        ),
        pytest.param(
            candidates({"source_url": None, "layer": "high"}),
            "fail:layer_differs@candidates[0]",
            id="high-without-a-link",
        ),
        pytest.param(
            candidates({"layer": None}, {"layer": "high"}),
            "fail:layer_differs@candidates[1]",
            id="a-failure-outweighs-a-missing-input",
        ),
        pytest.param(
            candidates({"layer": None}),
            "unverifiable:no_reported_layer@candidates[0]",
            id="not-reported",
        ),
        pytest.param(
            candidates({"similarity_score": None, "layer": "high"}),
            "unverifiable:no_similarity@candidates[0]",
            id="no-similarity",
        ),
        pytest.param(
            candidates({"similarity_score": None, "layer": None}),
            "unverifiable:no_similarity@candidates[0]",
            id="neither",
        ),
    ],
)
def test_layer(event: Event, expected: str) -> None:
    assert outcome_of(audited(event), "layer") == expected


def test_layers_without_a_ruleset_are_unverifiable() -> None:
    verdict = audited(make_lookup(thresholds=None), NO_REGISTRY)

    assert outcome_of(verdict, "layer") == "unverifiable:no_thresholds"
