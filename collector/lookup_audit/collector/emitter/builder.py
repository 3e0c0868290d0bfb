"""A LookupResult from what a retrieval service has at hand, and candidates from its framework.

Framework objects are known by their members alone, so that no framework has to be installed. What
a score *means* differs from store to store and is therefore always asked of the caller.
"""

import uuid
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Final, Literal, get_args

from lookup_audit.schemas.lookup import SCHEMA_VERSION
from lookup_audit.schemas.names import EvidenceStatus, Level, Mode

ScoreField = Literal[
    "dense_distance", "similarity_score", "rrf_score", "rerank_score", "quality_score", "score"
]
_SCORE_FIELDS: Final = frozenset(get_args(ScoreField))
# The first that is there names the field; frameworks and loaders agree on no spelling.
_METADATA: Final[Mapping[str, tuple[str, ...]]] = {
    "chunk_id": ("chunk_id", "chunkId", "id"),
    "document_id": ("document_id", "doc_id", "documentId"),
    "document_version": ("document_version", "version"),
    "document_updated_at": ("document_updated_at", "updated_at"),
    "source": ("source", "file_name", "file_path"),
    "source_url": ("source_url", "url"),
    "title": ("title",),
    "breadcrumb": ("breadcrumb",),
}


def new_event_id() -> str:
    """A fresh id for an event."""
    return f"evt-{uuid.uuid4()}"


def lookup_result(
    *,
    query: str,
    mode: Mode,
    model_version: str,
    candidates: Iterable[Mapping[str, Any]],
    relevance_level: Level | None = None,
    quality_score: float | None = None,
    evidence_status: EvidenceStatus | None = None,
    thresholds: Mapping[str, Any] | None = None,
    top_k: int | None = None,
    selected_chunk_ids: Iterable[str] | None = None,
    projection: Mapping[str, Any] | None = None,
    latency_ms: float | None = None,
    run_id: str | None = None,
    tool_call_id: str | None = None,
    event_id: str | None = None,
    occurred_at: datetime | None = None,
    **further: Any,
) -> dict[str, Any]:
    """Put one call of the lookup tool together; members that are ``None`` stay unknown.

    Args:
        query: What was searched for.
        mode: ``dense`` or ``hybrid``.
        model_version: The deployed retrieval model bundle.
        candidates: Every candidate in the order of its rank, dropped ones too, as mappings or
            from a helper of this module; ``original_rank`` is the place in the list unless given.
        relevance_level: The level the service gives the whole call.
        quality_score: Quality of the best candidate.
        evidence_status: Unless given, it follows from whether a candidate was kept.
        thresholds: The rules the service used.
        top_k: How many candidates were asked for.
        selected_chunk_ids: Chunks that went into the context.
        projection: The whole of what the agent saw.
        latency_ms: Duration of the call in milliseconds.
        run_id: The agent's run.
        tool_call_id: The agent's tool call.
        event_id: Unless given, a fresh one.
        occurred_at: Aware time of the call, now unless given.
        **further: Any other member of a LookupResult.
    """
    ranked = [
        {"original_rank": rank, **candidate} for rank, candidate in enumerate(candidates, start=1)
    ]
    kept = any(c.get("kept") is not False and not c.get("drop_reason") for c in ranked)
    event = {
        "schema_version": SCHEMA_VERSION,
        "event_id": event_id or new_event_id(),
        "occurred_at": occurred_at or datetime.now(UTC),
        "query": {"text": query},
        "mode": mode,
        "model_version": model_version,
        "candidates": ranked,
        "relevance_level": relevance_level,
        "quality_score": quality_score,
        "evidence_status": evidence_status or ("EVIDENCE_FOUND" if kept else "NO_EVIDENCE"),
        "thresholds": thresholds,
        "top_k": top_k,
        "selected_chunk_ids": None if selected_chunk_ids is None else list(selected_chunk_ids),
        "projection": projection,
        "latency_ms": latency_ms,
        "run_id": run_id,
        "tool_call_id": tool_call_id,
        **further,
    }
    return {name: value for name, value in event.items() if value is not None}


def candidates_from_langchain(
    results: Iterable[Any], *, score_field: ScoreField | None = None
) -> list[dict[str, Any]]:
    """Candidates from LangChain documents, or from ``(document, score)`` pairs.

    Args:
        results: What a vector store's search returned, best first.
        score_field: What the score is. ``similarity_search_with_score`` gives a distance in most
            stores (FAISS: squared L2), ``…_relevance_scores`` a similarity: look it up.

    Raises:
        ValueError: There are scores and ``score_field`` is not given, or is no score's name.
    """
    candidates = []
    for rank, result in enumerate(results, start=1):
        document, score = result if isinstance(result, tuple) else (result, None)
        candidate = _described(getattr(document, "metadata", None) or {}, rank)
        if getattr(document, "id", None) is not None:
            candidate["chunk_id"] = str(document.id)
        candidate["excerpt"] = document.page_content
        candidates.append(_scored(candidate, score, score_field))
    return candidates


def candidates_from_llama_index(
    nodes: Iterable[Any], *, score_field: ScoreField | None = None
) -> list[dict[str, Any]]:
    """Candidates from LlamaIndex ``NodeWithScore`` objects.

    Args:
        nodes: What a retriever or postprocessor returned, best first.
        score_field: What the score is, such as ``similarity_score`` or ``rerank_score``.

    Raises:
        ValueError: There are scores and ``score_field`` is not given, or is no score's name.
    """
    candidates = []
    for rank, found in enumerate(nodes, start=1):
        node = found.node
        candidate = _described(getattr(node, "metadata", None) or {}, rank)
        candidate["chunk_id"] = str(node.node_id)
        document_id = getattr(node, "ref_doc_id", None)
        if document_id is not None:
            candidate["document_id"] = str(document_id)
        candidate["excerpt"] = node.get_content()
        candidates.append(_scored(candidate, found.score, score_field))
    return candidates


def _described(metadata: Mapping[str, Any], rank: int) -> dict[str, Any]:
    candidate: dict[str, Any] = {"original_rank": rank}
    for name, spellings in _METADATA.items():
        value = next((metadata[s] for s in spellings if metadata.get(s) is not None), None)
        if value is None:
            continue
        text = value.isoformat() if isinstance(value, datetime) else str(value)
        if name != "document_updated_at" or _is_time(text):
            candidate[name] = text
    return candidate


def _is_time(text: str) -> bool:
    # A date alone says no moment, and an event with one would be refused for it.
    try:
        return datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        return False


def _scored(
    candidate: dict[str, Any], score: Any, score_field: ScoreField | None
) -> dict[str, Any]:
    if score is None:
        return candidate
    if score_field is None or score_field not in _SCORE_FIELDS:
        raise ValueError(
            f"the results carry scores; say what they are with score_field, one of "
            f"{', '.join(sorted(_SCORE_FIELDS))}"
        )
    return {**candidate, score_field: float(score)}
