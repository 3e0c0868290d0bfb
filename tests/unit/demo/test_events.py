from __future__ import annotations

import json
from typing import Any

import pytest

from lookup_audit.deploy.demo.events import CallContext, lookup_result
from lookup_audit.deploy.demo.lookup import KnowledgeBase, Query
from tests.unit.demo.conftest import NOON

TOP_LEVEL = {
    "schema_version", "event_id", "occurred_at", "tenant", "service", "trace_id", "span_id",
    "run_id", "tool_call_id", "query", "mode", "model_version", "versions", "top_k", "thresholds",
    "retrieval_trace", "rerank_trace", "candidates", "selected_chunk_ids", "context_budget",
    "quality_score", "top_similarity", "relevance_level", "evidence_status", "returned_count",
    "truncated", "completeness_hint", "projection", "latency_ms",
}  # fmt: skip
PER_CANDIDATE = {
    "chunk_id", "document_id", "document_version", "document_updated_at", "source", "source_url",
    "title", "breadcrumb", "excerpt", "original_rank", "score", "score_label", "dense_distance",
    "rrf_score", "rerank_score", "similarity_score", "quality_score", "hit_reasons", "tokens",
    "layer", "kept", "drop_reason",
}  # fmt: skip
SEEN_BY_AGENT = {
    "evidence_status", "tool_call_id", "query", "evidence", "returned_count", "relevance_level",
    "truncated",
}  # fmt: skip

QUERIES = (
    Query("What is the default port of the collector?", "dense", 4),
    Query("What is the default port of the collector?", "hybrid", 4, "semantics"),
    Query("rank fallback", "hybrid", 2),
    Query("How do I bake bread without yeast?", "dense", 4),
    Query("Who won the football world cup in 1998?", "hybrid", 4, "runbook"),
)


def make_event(base: KnowledgeBase, query: Query) -> dict[str, Any]:
    call = CallContext(
        event_id="e-1", occurred_at=NOON, tenant="demo", service="handbook-knowledge",
        instance_id="i/boot-1", sequence=1, trace_id="1" * 32, span_id="2" * 16,
        run_id="run-1", tool_call_id="call-1", latency_ms=3.5,
    )  # fmt: skip
    found = base.look_up(query)
    return lookup_result(found, call, base.bundle, base.thresholds, base.budget_tokens)


@pytest.fixture(scope="module")
def events(candidate: KnowledgeBase, baseline: KnowledgeBase) -> list[dict[str, Any]]:
    return [make_event(base, query) for base in (candidate, baseline) for query in QUERIES]


def test_events_have_every_field_of_the_contract(events: list[dict[str, Any]]) -> None:
    for event in events:
        assert set(event) == TOP_LEVEL
        assert event["candidates"]
        for candidate in event["candidates"]:
            assert set(candidate) == PER_CANDIDATE


def test_events_are_strict_json_with_utc_microseconds(events: list[dict[str, Any]]) -> None:
    for event in events:
        assert json.loads(json.dumps(event, allow_nan=False)) == event
        assert event["occurred_at"] == "2026-11-30T12:00:00.000000Z"


def test_reported_numbers_agree_with_each_other(events: list[dict[str, Any]]) -> None:
    for event in events:
        kept = [c for c in event["candidates"] if c["kept"]]
        selected = [c for c in kept if c["chunk_id"] in event["selected_chunk_ids"]]
        assert event["quality_score"] == kept[0]["quality_score"]
        assert event["context_budget"]["used_tokens"] == sum(c["tokens"] for c in selected)
        assert event["returned_count"] == len(event["projection"]["evidence"]) == len(selected)
        assert (event["evidence_status"] == "EVIDENCE_FOUND") == bool(selected)
        assert event["truncated"] == (event["completeness_hint"] is not None)
        for candidate in event["candidates"]:
            assert candidate["kept"] == (candidate["drop_reason"] is None)
            if candidate["dense_distance"] is None:
                assert event["mode"] == "hybrid"
                assert candidate["quality_score"] == 1 / candidate["original_rank"]
                assert candidate["similarity_score"] is None
            else:
                distance = candidate["dense_distance"]
                assert candidate["quality_score"] == pytest.approx(1 - distance / 2, abs=1e-12)


def test_the_projection_shows_nothing_internal(events: list[dict[str, Any]]) -> None:
    for event in events:
        assert set(event["projection"]) == SEEN_BY_AGENT
        for item in event["projection"]["evidence"]:
            assert set(item) == {
                "document_id", "source", "source_url", "title", "breadcrumb", "excerpt"
            }  # fmt: skip


def test_excerpts_stand_in_the_chunk_they_cite(
    events: list[dict[str, Any]], candidate: KnowledgeBase, baseline: KnowledgeBase
) -> None:
    texts = {
        (base.bundle.model_version, chunk.chunk_id): chunk.text
        for base in (candidate, baseline)
        for chunk in base.chunks
    }
    for event in events:
        for item in event["projection"]["evidence"]:
            assert item["excerpt"] in texts[event["model_version"], item["document_id"]]


def test_a_retry_is_told_in_the_trace(events: list[dict[str, Any]]) -> None:
    retried = [e for e in events if e["retrieval_trace"]["unfiltered_retry"]]
    assert retried
    assert all(e["retrieval_trace"]["category_filter"] for e in retried)


def test_fusion_is_told_in_hybrid_mode_only(events: list[dict[str, Any]]) -> None:
    for event in events:
        fusion = event["retrieval_trace"]["fusion"]
        routes = [route["name"] for route in event["retrieval_trace"]["routes"]]
        if event["mode"] == "hybrid":
            assert fusion == {"method": "rrf", "k": 60}
            assert routes == ["dense", "keyword"]
        else:
            assert fusion is None
            assert routes == ["dense"]
