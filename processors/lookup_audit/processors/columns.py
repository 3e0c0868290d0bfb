"""Accepted events as Arrow columns, one table of columns a kind.

Each column is named once, with its type and where its value comes from. Unknown text becomes
``""``, an unknown number stays null: a distance of 0 would be a perfect hit.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Any, Generic, NamedTuple, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from lookup_audit.processors.batch import Message, storable_ms
from lookup_audit.schemas import records
from lookup_audit.schemas.decode import Decoded
from lookup_audit.schemas.level import has_l0_hit, is_kept
from lookup_audit.schemas.timeliness import is_storable_time
from lookup_audit.schemas.verdict import AuditedLookup

TIME = pa.timestamp("us", tz="UTC")
MILLIS = pa.timestamp("ms", tz="UTC")
TEXT, BYTES, FLOAT, BOOL = pa.string(), pa.binary(), pa.float64(), pa.bool_()
COUNT, SMALL = pa.uint64(), pa.uint32()
TEXTS = pa.list_(TEXT)

T = TypeVar("T")


class Row(NamedTuple, Generic[T]):
    """One event on its way into columns.

    Args:
        event: The event, audited where it is a lookup.
        message: Where it came from.
        late: It came more than 24 hours after it happened.
    """

    event: T
    message: Message
    late: bool


Column = tuple[pa.DataType, Callable[[Any], Any]]

_ABSENT_SERVICE = records.Service()
_ABSENT_VERSIONS = records.Versions()
_ABSENT_TRACE = records.RetrievalTrace()
_ABSENT_BUDGET = records.ContextBudget()
_ABSENT_QUERY = records.Query()

# A getter sees (audited, record, service, versions, trace, budget, query) of one lookup.
_AUDIT, _RECORD, _SERVICE, _VERSIONS, _TRACE, _BUDGET, _QUERY = range(7)

LOOKUP_COLUMNS: Mapping[str, Column] = {
    "event_id": (TEXT, lambda v: v[_RECORD].event_id),
    "occurred_at": (TIME, lambda v: v[_RECORD].occurred_at),
    "tenant": (TEXT, lambda v: v[_RECORD].tenant or ""),
    "service": (TEXT, lambda v: v[_SERVICE].name or ""),
    "service_version": (TEXT, lambda v: v[_SERVICE].version or ""),
    "service_instance": (TEXT, lambda v: v[_SERVICE].instance_id or ""),
    "service_sequence": (COUNT, lambda v: v[_SERVICE].sequence),
    "run_id": (TEXT, lambda v: v[_RECORD].run_id or ""),
    "tool_call_id": (TEXT, lambda v: v[_RECORD].tool_call_id or ""),
    "trace_id": (TEXT, lambda v: v[_RECORD].trace_id or ""),
    "span_id": (TEXT, lambda v: v[_RECORD].span_id or ""),
    "mode": (TEXT, lambda v: v[_RECORD].mode),
    "model_version": (TEXT, lambda v: v[_RECORD].model_version),
    "reranker_version": (TEXT, lambda v: v[_VERSIONS].reranker or ""),
    "index_version": (TEXT, lambda v: v[_VERSIONS].index or ""),
    "chunker_version": (TEXT, lambda v: v[_VERSIONS].chunker or ""),
    "answer_model": (TEXT, lambda v: v[_VERSIONS].answer_model or ""),
    "top_k": (COUNT, lambda v: v[_RECORD].top_k),
    "query_text": (TEXT, lambda v: v[_QUERY].text or ""),
    "query_language": (TEXT, lambda v: v[_QUERY].language or ""),
    "category_filter": (TEXT, lambda v: v[_TRACE].category_filter or ""),
    "unfiltered_retry": (BOOL, lambda v: v[_TRACE].unfiltered_retry),
    "reported_level": (TEXT, lambda v: v[_AUDIT].reported_level),
    "recomputed_level": (TEXT, lambda v: v[_AUDIT].recomputed_level),
    "reported_quality": (FLOAT, lambda v: v[_RECORD].quality_score),
    "quality_score": (FLOAT, lambda v: v[_AUDIT].quality_score),
    "quality_basis": (TEXT, lambda v: v[_AUDIT].quality_basis or ""),
    "ruleset_id": (TEXT, lambda v: v[_AUDIT].ruleset_id or ""),
    "stated_ruleset_id": (TEXT, lambda v: v[_AUDIT].stated_ruleset_id or ""),
    "level_check": (TEXT, lambda v: v[_AUDIT].level_check),
    "level_mismatch": (TEXT, lambda v: v[_AUDIT].level_mismatch or ""),
    "failed_checks": (TEXTS, lambda v: v[_AUDIT].failed_checks),
    "failures": (TEXTS, lambda v: v[_AUDIT].failures),
    "unverifiable": (TEXTS, lambda v: v[_AUDIT].unverifiable),
    "degradations": (TEXTS, lambda v: v[_AUDIT].degradations),
    "unknown_fields": (TEXTS, lambda v: v[_AUDIT].decoded.unknown_fields),
    "evidence_status": (TEXT, lambda v: v[_RECORD].evidence_status or ""),
    "returned_count": (COUNT, lambda v: v[_RECORD].returned_count),
    "truncated": (BOOL, lambda v: v[_RECORD].truncated),
    "selected_chunk_ids": (TEXTS, lambda v: v[_RECORD].selected_chunk_ids or ()),
    "context_limit_tokens": (COUNT, lambda v: v[_BUDGET].limit_tokens),
    "context_used_tokens": (COUNT, lambda v: v[_BUDGET].used_tokens),
    "top_similarity": (FLOAT, lambda v: v[_RECORD].top_similarity),
    "latency_ms": (FLOAT, lambda v: v[_RECORD].latency_ms),
    "source_format": (TEXT, lambda v: "native"),
}

# A getter sees one candidate.
CANDIDATE_COLUMNS: Mapping[str, Column] = {
    "chunk_id": (TEXT, lambda c: c.chunk_id or ""),
    "document_id": (TEXT, lambda c: c.document_id or ""),
    "document_version": (TEXT, lambda c: c.document_version or ""),
    "document_updated_at": (
        TIME,
        lambda c: c.document_updated_at if is_storable_time(c.document_updated_at) else None,
    ),
    "source_url": (TEXT, lambda c: c.source_url or ""),
    "original_rank": (SMALL, lambda c: c.original_rank),
    "dense_distance": (FLOAT, lambda c: c.dense_distance),
    "rrf_score": (FLOAT, lambda c: c.rrf_score),
    "rerank_score": (FLOAT, lambda c: c.rerank_score),
    "similarity_score": (FLOAT, lambda c: c.similarity_score),
    "reported_quality": (FLOAT, lambda c: c.quality_score),
    "l0_hit": (BOOL, has_l0_hit),
    "tokens": (COUNT, lambda c: c.tokens),
    "reported_layer": (TEXT, lambda c: c.layer or ""),
    "kept": (BOOL, is_kept),
    "drop_reason": (TEXT, lambda c: c.drop_reason or ""),
}

# A getter sees one outcome or judgement record.
OUTCOME_COLUMNS: Mapping[str, Column] = {
    "outcome_id": (TEXT, lambda o: o.outcome_id),
    "occurred_at": (TIME, lambda o: o.occurred_at),
    "tenant": (TEXT, lambda o: o.tenant or ""),
    "run_id": (TEXT, lambda o: o.run_id or ""),
    "trace_id": (TEXT, lambda o: o.trace_id or ""),
    "lookup_event_ids": (TEXTS, lambda o: o.lookup_event_ids),
    "action": (TEXT, lambda o: o.action),
    "stance": (TEXT, lambda o: o.stance or ""),
    "refusal_reason": (TEXT, lambda o: (o.refusal.reason if o.refusal else None) or ""),
    "refusal_text": (TEXT, lambda o: (o.refusal.text if o.refusal else None) or ""),
    "answer_model": (TEXT, lambda o: o.answer_model or ""),
    "claims.claim_id": (TEXTS, lambda o: [c.claim_id or "" for c in o.claims or ()]),
    "claims.text": (TEXTS, lambda o: [c.text or "" for c in o.claims or ()]),
    "claims.cited_chunk_ids": (
        pa.list_(TEXTS),
        lambda o: [c.cited_chunk_ids or () for c in o.claims or ()],
    ),
    "claims.cited_source_urls": (
        pa.list_(TEXTS),
        lambda o: [c.cited_source_urls or () for c in o.claims or ()],
    ),
}

JUDGEMENT_COLUMNS: Mapping[str, Column] = {
    "judgement_id": (TEXT, lambda j: j.judgement_id),
    "occurred_at": (TIME, lambda j: j.occurred_at),
    "tenant": (TEXT, lambda j: j.tenant or ""),
    "outcome_id": (TEXT, lambda j: j.outcome_id),
    "verdict": (TEXT, lambda j: j.verdict),
    "source": (TEXT, lambda j: j.source),
    "judge_id": (TEXT, lambda j: (j.judge.id if j.judge else None) or ""),
    "judge_version": (TEXT, lambda j: (j.judge.version if j.judge else None) or ""),
    "comment": (TEXT, lambda j: j.comment or ""),
}


def lookup_batch(rows: Sequence[Row[AuditedLookup]]) -> pa.RecordBatch:
    """Columns of audited lookups, candidates as parallel arrays."""
    views: list[tuple[Any, ...]] = []
    for audited, _, _ in rows:
        record = audited.decoded.record
        views.append(
            (
                audited,
                record,
                record.service or _ABSENT_SERVICE,
                record.versions or _ABSENT_VERSIONS,
                record.retrieval_trace or _ABSENT_TRACE,
                record.context_budget or _ABSENT_BUDGET,
                record.query or _ABSENT_QUERY,
            )
        )
    columns = _columns(LOOKUP_COLUMNS, views)
    candidates = [c for view in views for c in view[_RECORD].candidates]
    offsets = _offsets([len(view[_RECORD].candidates) for view in views])
    parts = _columns(CANDIDATE_COLUMNS, candidates)
    audits = [row.event for row in rows]
    parts["quality_score"] = pa.array(chain.from_iterable(a.qualities for a in audits), FLOAT)
    parts["layer"] = pa.array((la or "" for a in audits for la in a.layers), TEXT)
    parts["duplicate"] = pa.array(chain.from_iterable(a.duplicates for a in audits), BOOL)
    for name, values in parts.items():
        columns[f"candidates.{name}"] = pa.ListArray.from_arrays(offsets, values)
    return _with_origin(columns, rows, [a.decoded.raw for a in audits])


def record_batch(
    columns: Mapping[str, Column], rows: Sequence[Row[Decoded[Any]]]
) -> pa.RecordBatch:
    """Columns of outcomes or judgements."""
    arrays = _columns(columns, [row.event.record for row in rows])
    arrays["unknown_fields"] = pa.array([row.event.unknown_fields for row in rows], TEXTS)
    return _with_origin(arrays, rows, [row.event.raw for row in rows])


def _columns(columns: Mapping[str, Column], views: Sequence[Any]) -> dict[str, Any]:
    return {name: _array(list(map(get, views)), kind) for name, (kind, get) in columns.items()}


def _array(values: list[Any], kind: pa.DataType) -> Any:
    if kind == TIME:
        # Times travel as RFC 3339 text; Arrow reads them a column at a time.
        return pc.cast(pa.array(values, TEXT), TIME)
    return pa.array(values, kind)


def _offsets(lengths: Sequence[int]) -> Any:
    offsets, total = [0], 0
    for length in lengths:
        total += length
        offsets.append(total)
    return pa.array(offsets, pa.int32())


def _with_origin(
    columns: dict[str, Any], rows: Sequence[Row[Any]], raw: list[bytes]
) -> pa.RecordBatch:
    """Add what every stored event carries: where it came from and its bytes."""
    messages = [row.message for row in rows]
    columns["late"] = pa.array([row.late for row in rows], BOOL)
    columns["kafka_topic"] = pa.array([m.topic for m in messages], TEXT)
    columns["kafka_partition"] = pa.array([m.partition for m in messages], SMALL)
    columns["kafka_offset"] = pa.array([m.offset for m in messages], COUNT)
    columns["kafka_timestamp"] = pa.array([storable_ms(m.timestamp_ms) for m in messages], MILLIS)
    columns["raw"] = pa.array(raw, BYTES)
    return pa.RecordBatch.from_pydict(columns)
