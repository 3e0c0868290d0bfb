"""Peer: the bare embedded engine, given the same bytes as JSONEachRow, on every core.

No Kafka, no checks, no raw; the engine parses the JSON into typed, nested columns of the same kind
as ours, in the same order, with the same indexes.
"""

import logging
from itertools import islice
from typing import Any

import clickhouse_connect

from tests.bench.load import events
from tests.bench.measure import Start, report, task, wait_for_rows

_BATCH = 10_000

_TABLE = """
CREATE TABLE audit.bare
(
    event_id String,
    occurred_at DateTime64(6, 'UTC'),
    tenant LowCardinality(String),
    service Tuple(name LowCardinality(String), version LowCardinality(String),
                  instance_id LowCardinality(String), sequence Nullable(UInt64)),
    run_id String,
    tool_call_id String,
    trace_id String,
    span_id String,
    mode LowCardinality(String),
    model_version LowCardinality(String),
    versions Tuple(reranker LowCardinality(String), index LowCardinality(String),
                   chunker LowCardinality(String)),
    top_k Nullable(UInt64),
    query Tuple(text String, language LowCardinality(String)),
    retrieval_trace Tuple(category_filter LowCardinality(String), unfiltered_retry Nullable(Bool)),
    relevance_level LowCardinality(String),
    quality_score Nullable(Float64),
    evidence_status LowCardinality(String),
    returned_count Nullable(UInt64),
    truncated Nullable(Bool),
    selected_chunk_ids Array(String),
    context_budget Tuple(limit_tokens Nullable(UInt64), used_tokens Nullable(UInt64)),
    latency_ms Nullable(Float64),
    candidates Array(Tuple
    (
        chunk_id String,
        document_id String,
        document_version LowCardinality(String),
        document_updated_at Nullable(DateTime64(6, 'UTC')),
        source_url String,
        original_rank Nullable(UInt32),
        dense_distance Nullable(Float64),
        similarity_score Nullable(Float64),
        quality_score Nullable(Float64),
        tokens Nullable(UInt64),
        layer LowCardinality(String),
        kept Nullable(Bool)
    )),
    INDEX by_event_id event_id TYPE bloom_filter(0.001) GRANULARITY 1,
    INDEX by_trace_id trace_id TYPE bloom_filter(0.01) GRANULARITY 1,
    INDEX by_run_id run_id TYPE bloom_filter(0.01) GRANULARITY 1
)
ENGINE = MergeTree
PARTITION BY toMonday(occurred_at)
ORDER BY (tenant, toStartOfHour(occurred_at), mode, model_version, event_id)
"""

_SETTINGS: dict[str, Any] = {
    "async_insert": 0,
    "input_format_skip_unknown_fields": 1,
    "input_format_parallel_parsing": 1,
    "min_chunk_bytes_for_parallel_parsing": 4 * 2**20,
    "date_time_input_format": "best_effort",
}


def main() -> None:
    """Store the events."""
    given = task()
    client = clickhouse_connect.get_client(interface="chdb", path=given.engine)
    client.command("CREATE DATABASE audit")
    client.command(_TABLE)
    values = events(given.events)
    blocks = []
    while block := b"\n".join(islice(values, _BATCH)):
        blocks.append(block)
    start = Start(logging.getLogger().name, "")
    start.now()
    for block in blocks:
        client.raw_insert("audit.bare", insert_block=block, fmt="JSONEachRow", settings=_SETTINGS)
    wait_for_rows(given.engine, "audit.bare", given.events, lambda: True)
    report(start.stop())


if __name__ == "__main__":
    main()
