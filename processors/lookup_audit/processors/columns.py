"""Accepted events as Arrow columns, one table of columns a kind.

Each column is named once, with its type and where its value comes from. Unknown text becomes
``""``, an unknown number stays null: a distance of 0 would be a perfect hit.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import accumulate, chain
from operator import attrgetter
from typing import Any, Generic, NamedTuple, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from lookup_audit.processors.batch import Message, storable_ms
from lookup_audit.schemas import records
from lookup_audit.schemas.decode import Decoded
from lookup_audit.schemas.level import has_l0_hit, is_kept
from lookup_audit.schemas.names import SOURCE_FORMATS
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


class Column(NamedTuple):
    """Where one column's values come from.

    Args:
        kind: Arrow type.
        part: Which part of the event holds the value.
        attribute: Its name there.
        nullable: Unknown stays null; else it becomes ``""`` or an empty list.
    """

    kind: pa.DataType
    part: str
    attribute: str
    nullable: bool = False


def _text(part: str, attribute: str) -> Column:
    return Column(TEXT, part, attribute)


def _number(part: str, attribute: str, kind: pa.DataType = FLOAT) -> Column:
    return Column(kind, part, attribute, nullable=True)


LOOKUP_COLUMNS: Mapping[str, Column] = {
    "event_id": _text("record", "event_id"),
    "occurred_at": Column(TIME, "record", "occurred_at"),
    "tenant": _text("record", "tenant"),
    "service": _text("service", "name"),
    "service_version": _text("service", "version"),
    "service_instance": _text("service", "instance_id"),
    "service_sequence": _number("service", "sequence", COUNT),
    "run_id": _text("record", "run_id"),
    "tool_call_id": _text("record", "tool_call_id"),
    "trace_id": _text("record", "trace_id"),
    "span_id": _text("record", "span_id"),
    "mode": _text("record", "mode"),
    "model_version": _text("record", "model_version"),
    "reranker_version": _text("versions", "reranker"),
    "index_version": _text("versions", "index"),
    "chunker_version": _text("versions", "chunker"),
    "answer_model": _text("versions", "answer_model"),
    "top_k": _number("record", "top_k", COUNT),
    "query_text": _text("query", "text"),
    "query_language": _text("query", "language"),
    "category_filter": _text("trace", "category_filter"),
    "unfiltered_retry": _number("trace", "unfiltered_retry", BOOL),
    "reported_level": _text("audit", "reported_level"),
    "recomputed_level": Column(TEXT, "audit", "recomputed_level", nullable=True),
    "reported_quality": _number("record", "quality_score"),
    "quality_score": _number("audit", "quality_score"),
    "quality_basis": _text("audit", "quality_basis"),
    "ruleset_id": _text("audit", "ruleset_id"),
    "stated_ruleset_id": _text("audit", "stated_ruleset_id"),
    "level_check": _text("audit", "level_check"),
    "level_mismatch": _text("audit", "level_mismatch"),
    "failed_checks": Column(TEXTS, "audit", "failed_checks"),
    "failures": Column(TEXTS, "audit", "failures"),
    "unverifiable": Column(TEXTS, "audit", "unverifiable"),
    "degradations": Column(TEXTS, "audit", "degradations"),
    "unknown_fields": Column(TEXTS, "decoded", "unknown_fields"),
    "evidence_status": _text("record", "evidence_status"),
    "returned_count": _number("record", "returned_count", COUNT),
    "truncated": _number("record", "truncated", BOOL),
    "selected_chunk_ids": Column(TEXTS, "record", "selected_chunk_ids"),
    "context_limit_tokens": _number("budget", "limit_tokens", COUNT),
    "context_used_tokens": _number("budget", "used_tokens", COUNT),
    "top_similarity": _number("record", "top_similarity"),
    "latency_ms": _number("record", "latency_ms"),
}

CANDIDATE_COLUMNS: Mapping[str, Column] = {
    "chunk_id": _text("candidate", "chunk_id"),
    "document_id": _text("candidate", "document_id"),
    "document_version": _text("candidate", "document_version"),
    "document_updated_at": Column(TIME, "candidate", "document_updated_at", nullable=True),
    "source_url": _text("candidate", "source_url"),
    "original_rank": _number("candidate", "original_rank", SMALL),
    "dense_distance": _number("candidate", "dense_distance"),
    "rrf_score": _number("candidate", "rrf_score"),
    "rerank_score": _number("candidate", "rerank_score"),
    "similarity_score": _number("candidate", "similarity_score"),
    "reported_quality": _number("candidate", "quality_score"),
    "tokens": _number("candidate", "tokens", COUNT),
    "reported_layer": _text("candidate", "layer"),
    "drop_reason": _text("candidate", "drop_reason"),
}

OUTCOME_COLUMNS: Mapping[str, Column] = {
    "outcome_id": _text("record", "outcome_id"),
    "occurred_at": Column(TIME, "record", "occurred_at"),
    "tenant": _text("record", "tenant"),
    "run_id": _text("record", "run_id"),
    "trace_id": _text("record", "trace_id"),
    "lookup_event_ids": Column(TEXTS, "record", "lookup_event_ids"),
    "action": _text("record", "action"),
    "stance": _text("record", "stance"),
    "refusal_reason": _text("refusal", "reason"),
    "refusal_text": _text("refusal", "text"),
    "answer_model": _text("record", "answer_model"),
    "unknown_fields": Column(TEXTS, "decoded", "unknown_fields"),
}

CLAIM_COLUMNS: Mapping[str, Column] = {
    "claim_id": _text("claim", "claim_id"),
    "text": _text("claim", "text"),
    "cited_chunk_ids": Column(TEXTS, "claim", "cited_chunk_ids"),
    "cited_source_urls": Column(TEXTS, "claim", "cited_source_urls"),
}

JUDGEMENT_COLUMNS: Mapping[str, Column] = {
    "judgement_id": _text("record", "judgement_id"),
    "occurred_at": Column(TIME, "record", "occurred_at"),
    "tenant": _text("record", "tenant"),
    "outcome_id": _text("record", "outcome_id"),
    "verdict": _text("record", "verdict"),
    "source": _text("record", "source"),
    "judge_id": _text("judge", "id"),
    "judge_version": _text("judge", "version"),
    "comment": _text("record", "comment"),
    "unknown_fields": Column(TEXTS, "decoded", "unknown_fields"),
}

_SERVICE, _VERSIONS, _QUERY = records.Service(), records.Versions(), records.Query()
_TRACE, _BUDGET = records.RetrievalTrace(), records.ContextBudget()
_REFUSAL, _JUDGE = records.Refusal(), records.Judge()


def lookup_table(rows: Sequence[Row[AuditedLookup]]) -> pa.Table:
    """Columns of audited lookups, candidates as parallel arrays."""
    audits = [row.event for row in rows]
    decoded = [audited.decoded for audited in audits]
    lookups = [one.record for one in decoded]
    columns = _columns(
        LOOKUP_COLUMNS,
        {
            "audit": audits,
            "decoded": decoded,
            "record": lookups,
            "service": [r.service or _SERVICE for r in lookups],
            "versions": [r.versions or _VERSIONS for r in lookups],
            "trace": [r.retrieval_trace or _TRACE for r in lookups],
            "budget": [r.context_budget or _BUDGET for r in lookups],
            "query": [r.query or _QUERY for r in lookups],
        },
    )
    columns["source_format"] = pa.array([_source_format(r.source_format) for r in lookups], TEXT)
    candidates = [c for r in lookups for c in r.candidates]
    parts = _columns(CANDIDATE_COLUMNS, {"candidate": candidates})
    parts["l0_hit"] = pa.array(map(has_l0_hit, candidates), BOOL)
    parts["kept"] = pa.array(map(is_kept, candidates), BOOL)
    for name, kind in (("quality_score", FLOAT), ("layer", TEXT), ("duplicate", BOOL)):
        computed = map(attrgetter(_PER_CANDIDATE[name]), audits)
        parts[name] = pa.array(chain.from_iterable(computed), kind)
    parts["layer"] = pc.fill_null(parts["layer"], "")
    offsets = _offsets(len(r.candidates) for r in lookups)
    for name, values in parts.items():
        columns[f"candidates.{name}"] = pa.ListArray.from_arrays(offsets, values)
    return _with_origin(columns, rows, [one.raw for one in decoded])


def _source_format(stated: str | None) -> str:
    """A known way in, else ``native``: the column is one of few words."""
    return stated if stated in SOURCE_FORMATS else "native"


_PER_CANDIDATE = {"quality_score": "qualities", "layer": "layers", "duplicate": "duplicates"}


def outcome_table(rows: Sequence[Row[Decoded[records.AnswerOutcome]]]) -> pa.Table:
    """Columns of outcomes, claims as parallel arrays."""
    decoded = [row.event for row in rows]
    outcomes = [one.record for one in decoded]
    refusals = [o.refusal or _REFUSAL for o in outcomes]
    columns = _columns(
        OUTCOME_COLUMNS, {"decoded": decoded, "record": outcomes, "refusal": refusals}
    )
    claims = [claim for o in outcomes for claim in o.claims or ()]
    offsets = _offsets(len(o.claims or ()) for o in outcomes)
    for name, values in _columns(CLAIM_COLUMNS, {"claim": claims}).items():
        columns[f"claims.{name}"] = pa.ListArray.from_arrays(offsets, values)
    return _with_origin(columns, rows, [one.raw for one in decoded])


def judgement_table(rows: Sequence[Row[Decoded[records.Judgement]]]) -> pa.Table:
    """Columns of judgements."""
    decoded = [row.event for row in rows]
    judgements = [one.record for one in decoded]
    judges = [j.judge or _JUDGE for j in judgements]
    columns = _columns(
        JUDGEMENT_COLUMNS, {"decoded": decoded, "record": judgements, "judge": judges}
    )
    return _with_origin(columns, rows, [one.raw for one in decoded])


def _columns(columns: Mapping[str, Column], parts: Mapping[str, Sequence[Any]]) -> dict[str, Any]:
    return {
        name: _array(list(map(attrgetter(column.attribute), parts[column.part])), column)
        for name, column in columns.items()
    }


def _array(values: list[Any], column: Column) -> Any:
    if column.kind is TIME:
        return _times(values)
    if column.kind is TEXTS:
        return pa.array([value or () for value in values], TEXTS)
    array = pa.array(values, column.kind)
    return array if column.nullable else pc.fill_null(array, "")


def _times(texts: list[str | None]) -> Any:
    """RFC 3339 texts as times, read a column at a time; what the store cannot hold is null."""
    times = pc.cast(pa.array(texts, TEXT), TIME)
    storable = pc.and_(pc.greater_equal(times, _EARLIEST), pc.less(times, _LATEST))
    return pc.if_else(storable, times, pa.scalar(None, TIME))


_EARLIEST = pa.scalar(datetime(1900, 1, 1, tzinfo=UTC), TIME)
_LATEST = pa.scalar(datetime(2299, 1, 1, tzinfo=UTC), TIME)


def _offsets(lengths: Iterable[int]) -> Any:
    return pa.array(chain((0,), accumulate(lengths)), pa.int32())


def _with_origin(columns: dict[str, Any], rows: Sequence[Row[Any]], raw: list[bytes]) -> pa.Table:
    """Add what every stored event carries: where it came from and its bytes."""
    messages = [row.message for row in rows]
    columns["late"] = pa.array([row.late for row in rows], BOOL)
    columns["kafka_topic"] = pa.array([m.topic for m in messages], TEXT)
    columns["kafka_partition"] = pa.array([m.partition for m in messages], SMALL)
    columns["kafka_offset"] = pa.array([m.offset for m in messages], COUNT)
    columns["kafka_timestamp"] = pa.array([storable_ms(m.timestamp_ms) for m in messages], MILLIS)
    columns["raw"] = pa.array(raw, BYTES)
    return pa.table(columns)
