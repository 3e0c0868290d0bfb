CREATE TABLE IF NOT EXISTS audit_store.outcomes
(
    outcome_id String,
    occurred_at DateTime64(6, 'UTC'),
    ingested_at DateTime64(6, 'UTC'),
    tenant LowCardinality(String),
    run_id String,
    trace_id String,
    lookup_event_ids Array(String),
    action LowCardinality(String),
    stance LowCardinality(String),
    refusal_reason LowCardinality(String),
    refusal_text String,
    answer_model LowCardinality(String),
    claims Nested
    (
        claim_id String,
        text String,
        cited_chunk_ids Array(String),
        cited_source_urls Array(String)
    ),
    unknown_fields Array(String),
    late Bool,
    kafka_cluster LowCardinality(String),
    kafka_topic LowCardinality(String),
    kafka_partition UInt32,
    kafka_offset UInt64,
    kafka_timestamp DateTime64(3, 'UTC'),
    insert_id UInt64,
    raw String CODEC(ZSTD(1)),
    payload_sha256 FixedString(32) MATERIALIZED SHA256(raw),
    INDEX by_outcome_id outcome_id TYPE bloom_filter(0.001) GRANULARITY 1,
    INDEX by_lookup_event_ids lookup_event_ids TYPE bloom_filter(0.001) GRANULARITY 1
)
ENGINE = MergeTree
PARTITION BY toMonday(occurred_at)
ORDER BY (tenant, toStartOfHour(occurred_at), outcome_id)
SETTINGS non_replicated_deduplication_window = 10000, ttl_only_drop_parts = 1;

CREATE TABLE IF NOT EXISTS audit_store.judgements
(
    judgement_id String,
    occurred_at DateTime64(6, 'UTC'),
    ingested_at DateTime64(6, 'UTC'),
    tenant LowCardinality(String),
    outcome_id String,
    verdict LowCardinality(String),
    source LowCardinality(String),
    judge_id LowCardinality(String),
    judge_version LowCardinality(String),
    comment String,
    unknown_fields Array(String),
    late Bool,
    kafka_cluster LowCardinality(String),
    kafka_topic LowCardinality(String),
    kafka_partition UInt32,
    kafka_offset UInt64,
    kafka_timestamp DateTime64(3, 'UTC'),
    insert_id UInt64,
    raw String CODEC(ZSTD(1)),
    payload_sha256 FixedString(32) MATERIALIZED SHA256(raw),
    INDEX by_outcome_id outcome_id TYPE bloom_filter(0.001) GRANULARITY 1
)
ENGINE = MergeTree
PARTITION BY toMonday(occurred_at)
ORDER BY (tenant, toStartOfHour(occurred_at), outcome_id, judgement_id)
SETTINGS non_replicated_deduplication_window = 10000, ttl_only_drop_parts = 1;
