"""What a lookup looks like from outside: the projection for the agent, the event for the audit."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from lookup_audit.deploy.demo.identifiers import rfc3339
from lookup_audit.deploy.demo.lookup import Bundle, Candidate, Found
from lookup_audit.deploy.demo.scoring import Thresholds
from lookup_audit.deploy.demo.search import RRF_K

SCHEMA_VERSION = "1.0"
SOURCE = "handbook"

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class CallContext:
    """The identity of one call: who asked, who answered, in which trace."""

    event_id: str
    occurred_at: datetime
    tenant: str
    service: str
    instance_id: str
    sequence: int
    trace_id: str
    span_id: str
    run_id: str
    tool_call_id: str
    latency_ms: float


def projection(found: Found, tool_call_id: str) -> Json:
    """The trimmed answer that an agent sees: passages and the level, nothing internal."""
    selected = found.selected
    return {
        "evidence_status": evidence_status(found),
        "tool_call_id": tool_call_id,
        "query": found.query.text,
        "evidence": [
            {
                "document_id": candidate.chunk.chunk_id,
                "source": SOURCE,
                "source_url": candidate.chunk.source_url,
                "title": candidate.chunk.page.title,
                "breadcrumb": candidate.chunk.breadcrumb,
                "excerpt": candidate.chunk.text,
            }
            for candidate in selected
        ],
        "returned_count": len(selected),
        "relevance_level": found.level,
        "truncated": found.truncated,
    }


def evidence_status(found: Found) -> str:
    """Whether there is anything that may be cited."""
    return "EVIDENCE_FOUND" if found.selected else "NO_EVIDENCE"


def lookup_result(
    found: Found, call: CallContext, bundle: Bundle, thresholds: Thresholds, budget_tokens: int
) -> Json:
    """The complete LookupResult event of one call."""
    kept = found.kept
    selected = found.selected
    best = kept[0] if kept else None
    similarities = [c.similarity for c in kept if c.similarity is not None]
    cut = sum(1 for c in found.candidates if c.drop_reason == "context_budget")
    return {
        "schema_version": SCHEMA_VERSION,
        "event_id": call.event_id,
        "occurred_at": rfc3339(call.occurred_at),
        "tenant": call.tenant,
        "service": {
            "name": call.service,
            "version": bundle.service_version,
            "instance_id": call.instance_id,
            "sequence": call.sequence,
        },
        "trace_id": call.trace_id,
        "span_id": call.span_id,
        "run_id": call.run_id,
        "tool_call_id": call.tool_call_id,
        "query": {"text": found.query.text, "language": "en"},
        "mode": found.query.mode,
        "model_version": bundle.model_version,
        "versions": {"reranker": None, "index": bundle.index, "chunker": bundle.chunker},
        "top_k": found.query.top_k,
        "thresholds": thresholds.as_event(),
        "retrieval_trace": retrieval_trace(found),
        "rerank_trace": None,
        "candidates": [candidate_json(c, found.query.mode) for c in found.candidates],
        "selected_chunk_ids": [c.chunk.chunk_id for c in selected],
        "context_budget": {
            "limit_tokens": budget_tokens,
            "used_tokens": sum(c.chunk.tokens for c in selected),
        },
        "quality_score": best.quality if best else None,
        "top_similarity": max(similarities, default=None),
        "relevance_level": found.level,
        "evidence_status": evidence_status(found),
        "returned_count": len(selected),
        "truncated": found.truncated,
        "completeness_hint": f"{cut} passages did not fit the context budget" if cut else None,
        "projection": projection(found, call.tool_call_id),
        "latency_ms": call.latency_ms,
    }


def retrieval_trace(found: Found) -> Json:
    """Routes, fusion and filter of one call."""
    return {
        "routes": [
            {"name": route.name, "hits": len(route.hits), "latency_ms": route.latency_ms}
            for route in found.routes
        ],
        "fusion": {"method": "rrf", "k": RRF_K} if found.query.mode == "hybrid" else None,
        "category_filter": found.query.category,
        "unfiltered_retry": found.unfiltered_retry,
    }


def candidate_json(candidate: Candidate, mode: str) -> Json:
    """One candidate of the event, dropped ones with their reason."""
    chunk = candidate.chunk
    ranked = candidate.ranked
    by_rrf = mode == "hybrid"
    return {
        "chunk_id": chunk.chunk_id,
        "document_id": chunk.page.slug,
        "document_version": chunk.page.version,
        "document_updated_at": f"{chunk.page.updated}T00:00:00Z",
        "source": SOURCE,
        "source_url": chunk.source_url,
        "title": chunk.page.title,
        "breadcrumb": chunk.breadcrumb,
        "excerpt": chunk.text,
        "original_rank": ranked.original_rank,
        "score": ranked.rrf_score if by_rrf else ranked.dense_distance,
        "score_label": "rrf" if by_rrf else "l2",
        "dense_distance": ranked.dense_distance,
        "rrf_score": ranked.rrf_score,
        "rerank_score": None,
        "similarity_score": candidate.similarity,
        "quality_score": candidate.quality,
        "hit_reasons": hit_reasons(candidate),
        "tokens": chunk.tokens,
        "layer": candidate.layer,
        "kept": candidate.drop_reason is None,
        "drop_reason": candidate.drop_reason,
    }


def hit_reasons(candidate: Candidate) -> list[str]:
    """Which routes found the candidate, and where they ranked it."""
    reasons = []
    if candidate.ranked.dense_distance is not None:
        reasons.append("route:dense")
    if candidate.ranked.keyword_rank is not None:
        reasons.append(f"route:keyword:{candidate.ranked.keyword_rank}")
    return reasons
