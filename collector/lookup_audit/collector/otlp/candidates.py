"""The documents of a retrieval's stages as one list of candidates with the reranker's moves.

The rank is the place in the first list that was told; what a later stage left out is kept with the
reason. Documents of two stages are one by their id, else by their text.
"""

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pydantic_core import PydanticCustomError

from lookup_audit.collector.otlp.documents import Document, gaps
from lookup_audit.collector.otlp.grouping import Retrieval
from lookup_audit.collector.otlp.reading import Reading, first_text
from lookup_audit.collector.otlp.spans import Attributes, number_of
from lookup_audit.schemas.fields import MAX_NAME_LENGTH, format_instant, parse_instant
from lookup_audit.schemas.names import SourceDegradation

_MAX_CHUNK_ID: Final = 1024


@dataclass(slots=True)
class Listing:
    """What the event says of its candidates; ``None`` where it says nothing."""

    candidates: list[dict[str, Any]]
    ranks_known: bool = True
    rerank_trace: dict[str, Any] | None = None
    selected: list[str] | None = None
    evidence_status: str | None = None
    returned_count: int | None = None
    truncated: bool | None = None
    missing: int = 0


@dataclass(slots=True)
class _Stages:
    """What was found first, what the last stage was given and what it left, where told."""

    found: list[Document] | None
    given: list[Document] | None = None
    left: list[Document] | None = None
    ranks_known: bool = True


def list_candidates(
    retrieval: Retrieval, own: Attributes, notes: set[SourceDegradation]
) -> Listing:
    """Lay out the candidates of a retrieval and note what is unknown of them."""
    stages = _stages(retrieval)
    readings = [r for r in (retrieval.top, *retrieval.twins, retrieval.reranker) if r is not None]
    listing = Listing([], ranks_known=stages.ranks_known, truncated=_is_cut(readings, notes))
    if stages.found is None:
        notes.add(SourceDegradation.CANDIDATES_UNKNOWN)
        return listing
    listing.missing = gaps(stages.found) if stages.ranks_known else 0
    if listing.missing:
        notes.add(SourceDegradation.DOCUMENTS_MISSING)
        listing.truncated = True
    kind = own.get("lookup_audit.retrieval.score.kind")
    is_rerank = retrieval.reranker is retrieval.top and not stages.given
    for document in stages.found:
        candidate = _candidate(document, kind, is_rerank=is_rerank, notes=notes)
        if stages.ranks_known:
            candidate["original_rank"] = document.index + 1
        listing.candidates.append(candidate)
    if stages.left is not None:
        _apply_last_stage(retrieval, stages, listing, notes)
    _choose_selected(own, listing)
    kept = [c for c in listing.candidates if c.get("kept", True)]
    listing.evidence_status = "EVIDENCE_FOUND" if kept else "NO_EVIDENCE"
    if not listing.truncated:
        listing.returned_count = len(kept)
    return listing


def _stages(retrieval: Retrieval) -> _Stages:
    top, reranker = retrieval.top, retrieval.reranker
    if reranker is top:
        if top.inputs is not None:
            return _Stages(top.inputs, top.inputs, top.documents)
        if top.documents == []:
            return _Stages([], [], [])
        # The order of the output is the reranker's; which ranks they had before is unknown.
        return _Stages(top.documents, None, top.documents, ranks_known=False)
    if top.is_redacted:
        # Whatever another span still shows of hidden documents stays hidden.
        return _Stages(top.documents)
    found = _complete(top.documents, retrieval.twins)
    children = [child for child in retrieval.children if child.documents is not None]
    stages = _Stages(found)
    if len(children) == 1 and found is not None:
        # One retriever inside another: the outer one reranks or filters what the inner one found.
        inner = children[0].documents
        stages = _Stages(inner, inner, found)
    elif found is None and len(children) == 1:
        stages = _Stages(children[0].documents)
    if reranker is not None:
        if stages.found is None:
            stages.found = reranker.inputs
        if reranker.documents is not None:
            stages.given = reranker.inputs if reranker.inputs is not None else stages.found
            stages.left = reranker.documents
    return stages


def _complete(documents: list[Document] | None, twins: Sequence[Reading]) -> list[Document] | None:
    """Fill what one telling leaves open from another, unless something is hidden."""
    for twin in twins:
        told = twin.documents
        if told is None:
            continue
        if documents is None:
            documents = told
        elif len(told) == len(documents) and not any(d.is_redacted for d in documents):
            for document, other in zip(documents, told, strict=True):
                if document.id and other.id and document.id != other.id:
                    continue
                document.id = document.id or other.id
                document.content = other.content if document.content is None else document.content
                if document.score is None:
                    document.score, document.score_name = other.score, other.score_name
    return documents


def _is_cut(readings: Sequence[Reading], notes: set[SourceDegradation]) -> bool | None:
    """Whether the SDK left something out; ``None`` where nothing says so."""
    dropped = any(r.span.dropped_attributes or r.span.dropped_events for r in readings)
    if dropped:
        notes.add(SourceDegradation.ATTRIBUTES_DROPPED)
    return True if dropped or SourceDegradation.VALUE_LIMIT_SUSPECTED in notes else None


def _candidate(
    document: Document, kind: Any, *, is_rerank: bool, notes: set[SourceDegradation]
) -> dict[str, Any]:
    facts = document.facts
    score, name = document.score, document.score_name
    if score is None:
        for name in ("relevance_score", "score"):
            score = number_of(facts.get(name))
            if score is not None:
                break
    url = document.url or first_text(facts, "source_url", "url")
    source = first_text(facts, "source", "file_path")
    if not url and "://" in source:
        url, source = source, ""
    candidate = {
        "chunk_id": _chunk_id(document, notes),
        "document_id": _id(first_text(facts, "document_id", "doc_id", "ref_doc_id", "file_path")),
        "document_version": first_text(facts, "document_version", "version")[:MAX_NAME_LENGTH],
        "document_updated_at": _instant(facts),
        "source": source,
        "source_url": url,
        "title": document.title or first_text(facts, "title"),
        "excerpt": document.content,
        **_score(score, name, kind, is_rerank=is_rerank, notes=notes),
        "metadata": document.metadata,
    }
    if document.is_redacted:
        notes.add(SourceDegradation.CANDIDATES_REDACTED)
    elif document.content is None:
        notes.add(SourceDegradation.CONTENT_UNKNOWN)
    if document.unreadable:
        notes.add(SourceDegradation.METADATA_UNPARSABLE)
    return {key: value for key, value in candidate.items() if value not in (None, "")}


def _chunk_id(document: Document, notes: set[SourceDegradation]) -> str | None:
    found = document.id or first_text(document.facts, "chunk_id", "id")
    if found:
        return _id(found)
    # A cut text has another hash than the whole one, and so would be another chunk.
    if document.content and SourceDegradation.VALUE_LIMIT_SUSPECTED not in notes:
        return _hash(document.content)
    return None


def _id(text: str) -> str | None:
    return (text if len(text) <= _MAX_CHUNK_ID else _hash(text)) or None


def _hash(text: str) -> str:
    return "sha256:" + hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _instant(facts: dict[str, Any]) -> str | None:
    """When the document changed, where that is a moment; a bare date is not one."""
    text = first_text(facts, "document_updated_at", "updated_at")
    if "T" not in text:
        return None
    try:
        return format_instant(parse_instant(text))
    except (PydanticCustomError, ValueError, OverflowError):
        return None


def _score(
    score: float | None, name: str, kind: Any, *, is_rerank: bool, notes: set[SourceDegradation]
) -> dict[str, Any]:
    """A score as the field of its kind; of an unknown kind it is only a ``score``."""
    if score is None:
        notes.add(SourceDegradation.SCORE_UNKNOWN)
        return {}
    if not math.isfinite(score):
        notes.add(SourceDegradation.SCORE_NOT_FINITE)
        return {}
    if is_rerank:
        return {"score": score, "score_label": "rerank", "rerank_score": score}
    if not isinstance(kind, str) or kind in ("", "unknown"):
        notes.add(SourceDegradation.SCORE_KIND_UNKNOWN)
        return {"score": score, "score_label": "distance" if name == "distance" else ""}
    members: dict[str, Any] = {"score": score, "score_label": kind[:MAX_NAME_LENGTH]}
    if kind == "cosine" and -1 <= score <= 1:
        members["similarity_score"] = score
    elif kind == "l2_distance" and score >= 0:
        members["dense_distance"] = score
    elif kind == "rrf" and score >= 0:
        members["rrf_score"] = score
    elif kind == "cross_encoder":
        members["rerank_score"] = score
    return members


def _apply_last_stage(
    retrieval: Retrieval, stages: _Stages, listing: Listing, notes: set[SourceDegradation]
) -> None:
    """Mark what the last stage kept and dropped, and its moves; nothing where it cannot be told."""
    left = stages.left or []
    by_key: dict[str, int] = {}
    for index, document in enumerate(stages.found or []):
        if by_key.setdefault(_key(document), index) != index:
            listing.candidates[index] |= {"kept": False, "drop_reason": "the same chunk again"}
    if "" in by_key or any(not _key(document) for document in left):
        for candidate in listing.candidates:
            candidate.pop("kept", None)
            candidate.pop("drop_reason", None)
        return
    for document in left:
        if _key(document) not in by_key:
            # The list it came from was cut: its rank is unknown.
            listing.ranks_known = False
            by_key[_key(document)] = len(listing.candidates)
            listing.candidates.append(_candidate(document, None, is_rerank=True, notes=notes))
    listing.rerank_trace = {"moves": _moves(stages, listing, by_key), **_about(retrieval.reranker)}
    chosen = [listing.candidates[by_key[_key(document)]].get("chunk_id") for document in left]
    if all(chosen):
        listing.selected = [chunk for chunk in dict.fromkeys(chosen) if chunk]


def _moves(stages: _Stages, listing: Listing, by_key: Mapping[str, int]) -> list[dict[str, Any]]:
    """Each candidate's move through the last stage, which also marks it as kept or dropped."""
    left = stages.left or []
    after: dict[str, int] = {}
    for number, document in enumerate(left, 1):
        after.setdefault(_key(document), number)
    given = None if stages.given is None else set(map(_key, stages.given))
    moves: list[dict[str, Any]] = []
    for key, index in by_key.items():
        candidate, place = listing.candidates[index], after.get(key)
        candidate["kept"] = place is not None
        if place is None:
            was_given = given is None or key in given
            reason = "left out by the last stage" if was_given else "filtered before"
            candidate["drop_reason"] = reason
            if not was_given:
                continue
        score = _last_score(left[place - 1]) if place else None
        if score is not None:
            candidate.setdefault("rerank_score", score)
        move = {
            "chunk_id": candidate.get("chunk_id"),
            "rank_before": candidate.get("original_rank"),
            "rank_after": place,
            "score": score,
        }
        moves.append({name: value for name, value in move.items() if value is not None})
    return sorted(
        moves, key=lambda move: (move.get("rank_after", math.inf), move.get("rank_before", 0))
    )


def _about(reranker: Reading | None) -> dict[str, Any]:
    """Model and latency of a reranker span, where there is one."""
    if reranker is None:
        return {}
    about: dict[str, Any] = {}
    if reranker.model:
        about["model"] = reranker.model[:MAX_NAME_LENGTH]
    span = reranker.span
    if 0 < span.start_ns <= span.end_ns:
        about["latency_ms"] = (span.end_ns - span.start_ns) / 1e6
    return about


def _key(document: Document) -> str:
    found = document.id or first_text(document.facts, "chunk_id", "id")
    return found or document.content or ""


def _last_score(document: Document) -> float | None:
    score = document.score
    if score is None:
        score = number_of(document.facts.get("relevance_score"))
    return score if score is not None and math.isfinite(score) else None


def _choose_selected(own: Attributes, listing: Listing) -> None:
    told = own.get("lookup_audit.retrieval.selected_ids")
    if isinstance(told, list):
        ids = [_id(chunk) for chunk in told if isinstance(chunk, str)]
        listing.selected = [chunk for chunk in ids if chunk]
