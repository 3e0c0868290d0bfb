from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pytest

from lookup_audit.collector import (
    InMemoryEmitter,
    candidates_from_langchain,
    candidates_from_llama_index,
    lookup_result,
)


@dataclass
class Document:
    """The members of a LangChain document."""

    page_content: str
    metadata: dict[str, Any] = field(default_factory=dict)
    id: str | None = None


@dataclass
class Node:
    """The members of a LlamaIndex node."""

    node_id: str
    text: str
    metadata: dict[str, Any] = field(default_factory=dict)
    ref_doc_id: str | None = None

    def get_content(self) -> str:
        return self.text


@dataclass
class NodeWithScore:
    node: Node
    score: float | None


def test_three_lines_make_an_event_that_a_collector_accepts() -> None:
    emitter = InMemoryEmitter()
    emitter.emit(
        lookup_result(
            query="timeout",
            mode="dense",
            model_version="minilm@2",
            candidates=[{"chunk_id": "a", "dense_distance": 0.4}, {"chunk_id": "b"}],
            relevance_level="PRECISE",
        )
    )
    assert emitter.rejected == []
    (event,) = emitter.lookups
    assert [c["original_rank"] for c in event["candidates"]] == [1, 2]
    assert event["evidence_status"] == "EVIDENCE_FOUND"
    assert event["query"] == {"text": "timeout"}


def test_without_a_kept_candidate_there_is_no_evidence() -> None:
    event = lookup_result(
        query="q",
        mode="hybrid",
        model_version="m",
        candidates=[{"chunk_id": "a", "drop_reason": "low"}],
    )
    assert event["evidence_status"] == "NO_EVIDENCE"
    assert "relevance_level" not in event


def test_langchain_documents_with_scores_become_candidates() -> None:
    results = [
        (
            Document(
                "thirty seconds",
                {"source": "wiki", "url": "https://kb/1", "version": 3, "updated_at": "2026-10-01"},
                id="c-1",
            ),
            0.41,
        ),
        (Document("retries", {"chunk_id": "c-2", "doc_id": "d-2"}), 0.8),
    ]
    first, second = candidates_from_langchain(results, score_field="dense_distance")
    assert first == {
        "original_rank": 1,
        "chunk_id": "c-1",
        "document_version": "3",
        "source": "wiki",
        "source_url": "https://kb/1",
        "excerpt": "thirty seconds",
        "dense_distance": 0.41,
    }
    assert (second["chunk_id"], second["document_id"]) == ("c-2", "d-2")


def test_llama_index_nodes_become_candidates() -> None:
    moment = datetime(2026, 10, 1, tzinfo=UTC)
    nodes = [
        NodeWithScore(Node("n-1", "text", {"title": "T", "updated_at": moment}, "doc-1"), 0.9),
        NodeWithScore(Node("n-2", "text"), None),
    ]
    first, second = candidates_from_llama_index(nodes, score_field="similarity_score")
    assert (first["chunk_id"], first["document_id"], first["title"]) == ("n-1", "doc-1", "T")
    assert first["document_updated_at"] == "2026-10-01T00:00:00+00:00"
    assert first["similarity_score"] == 0.9
    assert "similarity_score" not in second
    emitter = InMemoryEmitter()
    emitter.emit(
        lookup_result(query="q", mode="dense", model_version="m", candidates=[first, second])
    )
    assert emitter.rejected == []


def test_what_a_score_means_is_never_guessed() -> None:
    with pytest.raises(ValueError, match="say what they are with score_field"):
        candidates_from_langchain([(Document("a"), 0.5)])


def test_the_in_memory_emitter_shows_what_a_collector_would_refuse() -> None:
    emitter = InMemoryEmitter()
    emitter.emit({"event_id": "x"})
    emitter.emit({"a": object()})
    emitter.emit_outcome({"outcome_id": "o"})
    assert [(str(r.reason), r.field) for r in emitter.rejected] == [
        ("missing_field", "occurred_at"),
        ("wrong_type", ""),
        ("missing_field", "occurred_at"),
    ]
    assert emitter.stats().rejected == {"missing_field": 2, "wrong_type": 1}
