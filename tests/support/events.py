"""Complete, valid events to start a test from: every factory takes what the test is about.

Ids are fresh and times are now, so that no test depends on what another left behind or on the
day it runs. An event without overrides passes every check under the default ruleset.
"""

import json
import math
import uuid
from datetime import UTC, datetime
from typing import Any

Event = dict[str, Any]

# What the events state as their thresholds: the default ruleset.
DEFAULT_THRESHOLDS: Event = {
    "rule": "unified-quality/1",
    "max_l2_distance": 2.0,
    "highly_relevant_threshold": 0.75,
    "reference_threshold": 0.5,
    "distance_metric": "l2",
    "normalized": False,
    "rank_fallback": "reciprocal",
    "high_layer_similarity": 0.82,
    "middle_layer_similarity": 0.7,
}


def now_text() -> str:
    """The current time as producers write it."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def make_candidate(**over: Any) -> Event:
    """One kept candidate; its scores follow from ``dense_distance`` (0.41 unless given).

    Args:
        **over: Members to set; ``None`` sets null. Quality, similarity and layer are worked out
            for unit vectors under the default ruleset unless given.
    """
    distance = over.get("dense_distance", 0.41)
    rank = over.get("original_rank", 1)
    text = "The default timeout is thirty seconds unless the caller sets another."
    similarity = None if distance is None else max(-1.0, 1.0 - distance**2 / 2.0)
    similarity = over.get("similarity_score", similarity)
    url = over.get("source_url", f"https://kb.example.com/p/{rank}")
    candidate = {
        "chunk_id": f"doc-{rank}#chunk-0",
        "document_id": f"doc-{rank}",
        "document_version": "v3.2",
        "document_updated_at": "2026-10-01T00:00:00Z",
        "source": "wiki",
        "source_url": url,
        "title": "Client timeouts",
        "breadcrumb": "SDK > Client > Timeouts",
        "excerpt": text,
        "original_rank": rank,
        "dense_distance": distance,
        "similarity_score": similarity,
        "quality_score": _quality(distance, rank),
        "hit_reasons": [],
        "tokens": 180,
        "layer": _layer(similarity, url),
        "kept": True,
        "drop_reason": None,
    }
    return candidate | over


def make_lookup(**over: Any) -> Event:
    """A dense lookup with two kept candidates, the first selected and shown to the agent.

    Args:
        **over: Members to set; ``None`` sets null. Where ``candidates`` is given, the selection,
            the projection, the level, the status and the counts follow from the kept ones.
    """
    default = [
        make_candidate(),
        make_candidate(original_rank=2, dense_distance=0.8, tokens=95, breadcrumb="SDK > Retries"),
    ]
    given = over.get("candidates")
    candidates = given if isinstance(given, list) else [] if "candidates" in over else default
    kept = [c for c in candidates if c.get("kept") is not False and not c.get("drop_reason")]
    best = min(kept, key=_rank, default=None)
    shown = [best] if best else []
    quality = best.get("quality_score") if best else None
    level = _level(quality)
    status = "EVIDENCE_FOUND" if shown else "NO_EVIDENCE"
    event = {
        "schema_version": "1.0",
        "event_id": f"evt-{uuid.uuid4()}",
        "occurred_at": now_text(),
        "tenant": "acme",
        "service": {
            "name": "kb-retrieval",
            "version": "2.3.1",
            "instance_id": "pod-7/boot-41",
            "sequence": 1,
        },
        "trace_id": uuid.uuid4().hex,
        "span_id": uuid.uuid4().hex[:16],
        "run_id": f"run-{uuid.uuid4()}",
        "tool_call_id": "call-7f3a",
        "query": {"text": "what is the default timeout of the client", "language": "en"},
        "mode": "dense",
        "model_version": "minilm-l6@2",
        "versions": {"reranker": None, "index": "kb-2026-11-01", "chunker": "md-400@3"},
        "top_k": 4,
        "thresholds": dict(DEFAULT_THRESHOLDS),
        "retrieval_trace": {
            "routes": [{"name": "dense", "hits": len(candidates), "latency_ms": 12.5}],
            "category_filter": None,
            "unfiltered_retry": False,
        },
        "candidates": candidates,
        "selected_chunk_ids": [c["chunk_id"] for c in shown if c.get("chunk_id") is not None],
        "context_budget": {"limit_tokens": 4000, "used_tokens": 180 if shown else 0},
        "quality_score": quality,
        "relevance_level": level,
        "evidence_status": status,
        "returned_count": len(shown),
        "truncated": False,
        "completeness_hint": None,
        "projection": {
            "evidence_status": status,
            "tool_call_id": "call-7f3a",
            "query": "what is the default timeout of the client",
            "evidence": [
                {
                    "document_id": c.get("chunk_id"),
                    "source": c.get("source"),
                    "title": c.get("title"),
                    "breadcrumb": c.get("breadcrumb"),
                    "excerpt": c.get("excerpt"),
                }
                for c in shown
            ],
            "returned_count": len(shown),
            "relevance_level": level,
            "truncated": False,
        },
        "latency_ms": 61.0,
    }
    return event | over


def make_outcome(**over: Any) -> Event:
    """An answered, firm outcome with one cited claim.

    Args:
        **over: Members to set. With ``action="refused"`` the claims give way to a refusal.
    """
    refused = over.get("action") == "refused"
    claim = {
        "claim_id": "c1",
        "text": "The default timeout is thirty seconds.",
        "cited_chunk_ids": ["doc-1#chunk-0"],
        "cited_source_urls": ["https://kb.example.com/p/1"],
    }
    refusal = {"reason": "low_quality", "text": "I found nothing I could rely on."}
    event = {
        "schema_version": "1.0",
        "outcome_id": f"out-{uuid.uuid4()}",
        "occurred_at": now_text(),
        "tenant": "acme",
        "run_id": f"run-{uuid.uuid4()}",
        "lookup_event_ids": [f"evt-{uuid.uuid4()}"],
        "action": "answered",
        "stance": None if refused else "firm",
        "claims": [] if refused else [claim],
        "refusal": refusal if refused else None,
        "answer_model": "answerer@5",
    }
    return event | over


def make_judgement(**over: Any) -> Event:
    """A reviewer's judgement that an answer is incorrect.

    Args:
        **over: Members to set.
    """
    event = {
        "schema_version": "1.0",
        "judgement_id": f"jdg-{uuid.uuid4()}",
        "occurred_at": now_text(),
        "tenant": "acme",
        "outcome_id": f"out-{uuid.uuid4()}",
        "verdict": "incorrect",
        "source": "human",
        "judge": {"id": "reviewer-3", "version": None},
        "comment": "True for v2; v3 uses sixty seconds.",
    }
    return event | over


def encode(event: object) -> bytes:
    """An event as the bytes of a request body or a record value; NaN is written as ``NaN``."""
    return json.dumps(event, ensure_ascii=False, separators=(",", ":")).encode(
        "utf-8", "surrogatepass"
    )


def _rank(candidate: Event) -> float:
    rank = candidate.get("original_rank")
    return rank if isinstance(rank, (int, float)) else math.inf


def _quality(distance: float | None, rank: int | None) -> float | None:
    if distance is not None:
        return min(1.0, max(0.0, 1.0 - distance / 2.0))
    return None if rank is None else 1.0 / rank


def _layer(similarity: float | None, source_url: str | None) -> str | None:
    if similarity is None:
        return None
    if similarity >= 0.82 and source_url:
        return "high"
    return "middle" if similarity >= 0.7 else "low"


def _level(quality: object) -> str | None:
    if not isinstance(quality, (int, float)):
        return None
    return "PRECISE" if quality >= 0.75 else "REFERENCE" if quality >= 0.5 else None
