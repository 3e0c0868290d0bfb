"""A retrieval into a LookupResult: what the spans told, and the name of what they did not.

Nothing is guessed without a mark: a mode from a class name is ``mode_inferred``, a number of
unknown meaning stays a plain ``score``, and a list that was not told is not an empty one.
"""

import re
import uuid
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from lookup_audit.collector.otlp.candidates import Listing, list_candidates
from lookup_audit.collector.otlp.documents import read_json
from lookup_audit.collector.otlp.grouping import Retrieval
from lookup_audit.collector.otlp.reading import Reading, facts_of, first_text
from lookup_audit.collector.otlp.spans import Attributes, Span, number_of
from lookup_audit.schemas.fields import MAX_NAME_LENGTH
from lookup_audit.schemas.names import LEVELS, SourceDegradation

# Names every id that is made from span ids; never change it: a retried export must make the same.
NAMESPACE: Final = uuid.UUID("6f1c43a8-54c2-5f0e-9d4b-0c1a7be3f9a1")
_UNKNOWN: Final = "unknown"
_MODES: Final = (
    ("hybrid", re.compile(r"ensemble|fusion|hybrid|joiner", re.IGNORECASE)),
    ("lexical", re.compile(r"bm25|tfidf|keyword|lexical|full_?text", re.IGNORECASE)),
    (
        "dense",
        re.compile(r"vector|embedding|dense|chroma|faiss|qdrant|milvus|pinecone", re.IGNORECASE),
    ),
)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def make_id(trace_id: str, span_id: str, kind: str) -> str:
    """The id of what was made from a span: the same for every resend of it."""
    return str(uuid.uuid5(NAMESPACE, f"{trace_id}:{span_id}:{kind}"))


def lookup_id(retrieval: Retrieval) -> str:
    """The event id of a retrieval's lookup."""
    span = retrieval.top.span
    return make_id(span.trace_id, span.span_id, "lookup")


def format_ns(nanoseconds: int) -> str:
    """Nanoseconds since 1970 as RFC 3339; below the microsecond they are cut.

    >>> format_ns(1796040000120000999)
    '2026-11-30T12:00:00.120000Z'
    """
    moment = _EPOCH + timedelta(microseconds=nanoseconds // 1000)
    return moment.isoformat(timespec="microseconds").removesuffix("+00:00") + "Z"


def make_lookup(retrieval: Retrieval) -> dict[str, Any]:
    """The native event of a retrieval, canonical names, nothing that is unknown."""
    top, span = retrieval.top, retrieval.top.span
    tellings = [top, *retrieval.twins]
    notes: set[SourceDegradation] = {SourceDegradation.LEVEL_UNKNOWN}
    for reading in (*tellings, *retrieval.children):
        notes |= reading.notes
    own = _own_attributes(retrieval)
    listing = list_candidates(retrieval, own, notes)
    last = max([top, *([retrieval.reranker] if retrieval.reranker else [])], key=_end).span
    event: dict[str, Any] = {
        # Only a newer version than 1.0 may leave a rank open.
        "schema_version": "1.0" if listing.ranks_known else "1.1",
        "event_id": lookup_id(retrieval),
        "occurred_at": format_ns(last.end_ns),
        "tenant": _tenant(retrieval),
        "service": _service(span),
        "trace_id": span.trace_id,
        "span_id": span.span_id,
        "run_id": _run_id(retrieval),
        "tool_call_id": _tool_call_id(retrieval.tool),
        "query": _query(retrieval, notes),
        "mode": _mode(retrieval, own, notes),
        "model_version": _model(retrieval, notes),
        "versions": _versions(retrieval),
        "top_k": next((r.top_k for r in tellings if r.top_k is not None), None),
        "retrieval_trace": _routes(retrieval),
        "rerank_trace": listing.rerank_trace,
        "candidates": listing.candidates,
        "selected_chunk_ids": listing.selected,
        "evidence_status": listing.evidence_status,
        "returned_count": listing.returned_count,
        "truncated": listing.truncated,
        "latency_ms": _latency(span.start_ns, last.end_ns),
        "source_format": top.dialect,
        "origin": _origin(retrieval, listing),
    }
    _add_reported(event, own, notes)
    event["degradations"] = sorted(notes | _circumstances(retrieval))
    return {name: value for name, value in event.items() if value is not None}


def _circumstances(retrieval: Retrieval) -> set[SourceDegradation]:
    """What is unusual about how the retrieval was told."""
    top, span = retrieval.top, retrieval.top.span
    found = {
        SourceDegradation.RETRIEVAL_FAILED: span.failed,
        SourceDegradation.RETRIEVER_NOT_SEEN: retrieval.reranker is top,
        SourceDegradation.PARENT_NOT_SEEN: bool(retrieval.missing_parent),
        SourceDegradation.INSTRUMENTED_TWICE: any(
            twin.span.source.scope != span.source.scope for twin in retrieval.twins
        ),
    }
    return {name for name, is_so in found.items() if is_so}


def _end(reading: Reading) -> int:
    return reading.span.end_ns


def _own_attributes(retrieval: Retrieval) -> Attributes:
    """Our own attributes, from the spans of the retrieval; the outermost span's word counts."""
    own: Attributes = {}
    for reading in (*retrieval.twins, retrieval.top):
        for key, value in reading.span.attributes.items():
            if key.startswith("lookup_audit."):
                own[key] = value
    return own


def _name(text: str) -> str | None:
    return text[:MAX_NAME_LENGTH] or None


def _tenant(retrieval: Retrieval) -> str | None:
    for span in (retrieval.top.span, *retrieval.ancestors):
        attributes = span.attributes
        tenant = first_text(
            attributes, "lookup_audit.tenant", "traceloop.association.properties.tenant"
        ) or first_text(facts_of(attributes, "metadata"), "tenant", "tenant_id")
        if tenant:
            return _name(tenant)
    return _name(first_text(retrieval.top.span.source.resource, "lookup_audit.tenant"))


def _run_id(retrieval: Retrieval) -> str | None:
    for span in (retrieval.top.span, *retrieval.ancestors):
        found = first_text(
            span.attributes,
            "session.id",
            "gen_ai.conversation.id",
            "traceloop.association.properties.session_id",
        )
        if found:
            return _name(found)
    return None


def _service(span: Span) -> dict[str, Any] | None:
    resource = span.source.resource
    service = {
        "name": _name(first_text(resource, "service.name")),
        "version": _name(first_text(resource, "service.version")),
        "instance_id": _name(first_text(resource, "service.instance.id")),
    }
    return {name: value for name, value in service.items() if value} or None


def _tool_call_id(tool: Span | None) -> str | None:
    if tool is None:
        return None
    attributes = tool.attributes
    found = first_text(attributes, "gen_ai.tool.call.id", "tool_call.id", "tool.id")
    if not found:
        # LangChain tells it nowhere else.
        output = read_json(attributes.get("output.value"))
        data = output.get("data") if isinstance(output, dict) else None
        found = first_text(data, "tool_call_id") if isinstance(data, dict) else ""
    return _name(found)


def _query(retrieval: Retrieval, notes: set[SourceDegradation]) -> dict[str, Any] | None:
    readings = [retrieval.top, *retrieval.twins]
    if any(reading.query_redacted for reading in readings):
        notes.add(SourceDegradation.QUERY_REDACTED)
        return None
    more = (retrieval.reranker, retrieval.embedding)
    readings += [reading for reading in more if reading is not None]
    text = next((reading.query for reading in readings if reading.query), None)
    if any(reading.query_redacted for reading in readings) and not retrieval.top.query:
        notes.add(SourceDegradation.QUERY_REDACTED)
        return None
    if text is None:
        notes.add(SourceDegradation.QUERY_UNKNOWN)
        return None
    return {"text": text}


def _mode(retrieval: Retrieval, own: Attributes, notes: set[SourceDegradation]) -> str:
    told = own.get("lookup_audit.retrieval.mode")
    if told in ("dense", "hybrid", "lexical"):
        return str(told)
    modes = {_guess(child) for child in retrieval.children}
    guess = _guess(retrieval.top)
    if guess != "hybrid" and modes:
        modes.discard("")
        guess = modes.pop() if len(modes) == 1 else "hybrid" if len(modes) > 1 else guess
    if not guess and retrieval.twins:
        guess = next(filter(None, map(_guess, retrieval.twins)), "")
    if told is None and guess:
        notes.add(SourceDegradation.MODE_INFERRED)
        return guess
    notes.add(SourceDegradation.MODE_UNKNOWN)
    return _UNKNOWN


def _guess(reading: Reading) -> str:
    names = f"{reading.class_name} {reading.data_source}"
    return next((mode for mode, pattern in _MODES if pattern.search(names)), "")


def _model(retrieval: Retrieval, notes: set[SourceDegradation]) -> str:
    is_alone = retrieval.reranker is retrieval.top
    readings = [] if is_alone else [retrieval.top, *retrieval.twins, *retrieval.children]
    embedding = retrieval.embedding
    own = first_text(retrieval.top.span.attributes, "lookup_audit.model.version")
    told = [own, embedding.model if embedding else "", *(r.model for r in readings)]
    model = next(filter(None, told), "")
    if not model:
        notes.add(SourceDegradation.MODEL_VERSION_UNKNOWN)
    return model[:MAX_NAME_LENGTH] or _UNKNOWN


def _versions(retrieval: Retrieval) -> dict[str, Any] | None:
    reranker = retrieval.reranker
    model = _name(reranker.model) if reranker is not None else None
    return {"reranker": model} if model else None


def _routes(retrieval: Retrieval) -> dict[str, Any] | None:
    if not retrieval.children:
        return None
    routes = []
    for child in retrieval.children:
        route: dict[str, Any] = {"name": _name(child.class_name or child.span.name)}
        if child.documents is not None:
            route["hits"] = len(child.documents)
        latency = _latency(child.span.start_ns, child.span.end_ns)
        if latency is not None:
            route["latency_ms"] = latency
        routes.append(route)
    return {"routes": routes}


def _latency(start_ns: int, end_ns: int) -> float | None:
    # A clock that was set back between the two tells nothing.
    return (end_ns - start_ns) / 1e6 if 0 < start_ns <= end_ns else None


def _origin(retrieval: Retrieval, listing: Listing) -> dict[str, Any]:
    span = retrieval.top.span
    failure = ""
    if span.failed:
        kind = first_text(span.attributes, "error.type")
        failure = ": ".join(filter(None, (kind, span.status_message)))[:1024]
    sources = (r.data_source for r in (retrieval.top, *retrieval.twins, *retrieval.children))
    origin = {
        "scope": _name(span.source.scope),
        "scope_version": _name(span.source.scope_version),
        "data_source": _name(next(filter(None, sources), "")),
        "failure": failure or None,
        "dropped_attributes": span.dropped_attributes or None,
        "missing_documents": listing.missing or None,
    }
    return {name: value for name, value in origin.items() if value is not None}


def _add_reported(event: dict[str, Any], own: Attributes, notes: set[SourceDegradation]) -> None:
    """What only our own attributes tell: level, quality, thresholds, truncation."""
    level = own.get("lookup_audit.retrieval.relevance.level")
    if isinstance(level, str) and level in LEVELS:
        event["relevance_level"] = level
        notes.discard(SourceDegradation.LEVEL_UNKNOWN)
    quality = number_of(own.get("lookup_audit.retrieval.quality.score"))
    if quality is not None and 0 <= quality <= 1:
        event["quality_score"] = quality
    truncated = own.get("lookup_audit.retrieval.truncated")
    if isinstance(truncated, bool):
        event["truncated"] = True if event["truncated"] else truncated
    status = own.get("lookup_audit.evidence.status")
    if status in ("EVIDENCE_FOUND", "NO_EVIDENCE"):
        event["evidence_status"] = status
    thresholds = {
        name: value
        for name in ("highly_relevant_threshold", "reference_threshold", "max_l2_distance")
        if (value := _finite(own.get(f"lookup_audit.thresholds.{name}"))) is not None
    }
    if thresholds:
        event["thresholds"] = thresholds


def _finite(value: Any) -> float | None:
    number = number_of(value)
    return number if number is not None and 0 < number < 1e300 else None
