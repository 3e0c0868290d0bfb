"""The table of the peers that neither validate nor check nor keep raw: what the event states, flat.

Same types, sort key, partitions and indexes as ``audit_store.lookups``; every column that an audit
fills is left out.
"""

TABLE = "audit_store.flat"

TEXTS = {
    "event_id": ("event_id",),
    "tenant": ("tenant",),
    "service": ("service", "name"),
    "service_version": ("service", "version"),
    "service_instance": ("service", "instance_id"),
    "run_id": ("run_id",),
    "tool_call_id": ("tool_call_id",),
    "trace_id": ("trace_id",),
    "span_id": ("span_id",),
    "mode": ("mode",),
    "model_version": ("model_version",),
    "reranker_version": ("versions", "reranker"),
    "index_version": ("versions", "index"),
    "chunker_version": ("versions", "chunker"),
    "query_text": ("query", "text"),
    "query_language": ("query", "language"),
    "category_filter": ("retrieval_trace", "category_filter"),
    "reported_level": ("relevance_level",),
    "evidence_status": ("evidence_status",),
}
COUNTS = {
    "service_sequence": ("service", "sequence"),
    "top_k": ("top_k",),
    "returned_count": ("returned_count",),
    "context_limit_tokens": ("context_budget", "limit_tokens"),
    "context_used_tokens": ("context_budget", "used_tokens"),
}
FLOATS = {"reported_quality": ("quality_score",), "latency_ms": ("latency_ms",)}
CANDIDATE_TEXTS = ("chunk_id", "document_id", "document_version", "source_url", "layer")
CANDIDATE_FLOATS = ("dense_distance", "similarity_score", "quality_score")
CANDIDATE_COUNTS = ("original_rank", "tokens")

_UNIQUE = ("event_id", "run_id", "tool_call_id", "trace_id", "span_id", "query_text")


def ddl() -> str:
    """Statement that creates the table."""
    columns = ["occurred_at DateTime64(6, 'UTC')", "truncated Nullable(Bool)"]
    for name in TEXTS:
        columns.append(f"{name} {'String' if name in _UNIQUE else 'LowCardinality(String)'}")
    columns += [f"{name} Nullable(UInt64)" for name in COUNTS]
    columns += [f"{name} Nullable(Float64)" for name in FLOATS]
    columns += ["selected_chunk_ids Array(String)"]
    columns += [f"`candidates.{name}` Array({kind})" for name, kind in _candidate_types()]
    columns += [
        "INDEX by_event_id event_id TYPE bloom_filter(0.001) GRANULARITY 1",
        "INDEX by_trace_id trace_id TYPE bloom_filter(0.01) GRANULARITY 1",
        "INDEX by_run_id run_id TYPE bloom_filter(0.01) GRANULARITY 1",
    ]
    return (
        f"CREATE TABLE {TABLE} ({', '.join(columns)}) ENGINE = MergeTree "
        "PARTITION BY toMonday(occurred_at) "
        "ORDER BY (tenant, toStartOfHour(occurred_at), mode, model_version, event_id)"
    )


def _candidate_types() -> list[tuple[str, str]]:
    low = ("document_version", "layer")
    return [
        *((n, "LowCardinality(String)" if n in low else "String") for n in CANDIDATE_TEXTS),
        *((n, "Nullable(Float64)") for n in CANDIDATE_FLOATS),
        *((n, "Nullable(UInt64)") for n in CANDIDATE_COUNTS),
        ("kept", "Nullable(Bool)"),
        ("document_updated_at", "Nullable(DateTime64(6, 'UTC'))"),
    ]
