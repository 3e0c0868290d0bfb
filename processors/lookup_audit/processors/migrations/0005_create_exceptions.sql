-- What did not become a row of its own, keyed by where it came from: reading it again changes
-- nothing.
CREATE TABLE IF NOT EXISTS audit_store.dead_letters
(
    kafka_cluster LowCardinality(String),
    kafka_topic LowCardinality(String),
    kafka_partition UInt32,
    kafka_offset UInt64,
    kafka_timestamp DateTime64(3, 'UTC'),
    dead_lettered_at DateTime64(6, 'UTC'),
    reason LowCardinality(String),
    field String,
    message String,
    event_id String,
    event_type LowCardinality(String),
    key Nullable(String),
    headers Map(String, String),
    value String CODEC(ZSTD(1))
)
ENGINE = ReplacingMergeTree
PARTITION BY toMonday(kafka_timestamp)
ORDER BY (kafka_cluster, kafka_topic, kafka_partition, kafka_offset, kafka_timestamp)
SETTINGS non_replicated_deduplication_window = 10000, ttl_only_drop_parts = 1;

CREATE TABLE IF NOT EXISTS audit_store.repeats
(
    kafka_cluster LowCardinality(String),
    kafka_topic LowCardinality(String),
    kafka_partition UInt32,
    kafka_offset UInt64,
    kafka_timestamp DateTime64(3, 'UTC'),
    seen_at DateTime64(6, 'UTC'),
    kind LowCardinality(String),
    tenant LowCardinality(String),
    id String,
    conflict Bool,
    first_topic LowCardinality(String),
    first_partition UInt32,
    first_offset UInt64,
    raw String CODEC(ZSTD(1))
)
ENGINE = ReplacingMergeTree
PARTITION BY toMonday(kafka_timestamp)
ORDER BY (kafka_cluster, kafka_topic, kafka_partition, kafka_offset, kafka_timestamp)
SETTINGS non_replicated_deduplication_window = 10000, ttl_only_drop_parts = 1;

CREATE TABLE IF NOT EXISTS audit_store.rulesets
(
    ruleset_id String,
    content String,
    service LowCardinality(String),
    mode LowCardinality(String),
    effective_from DateTime64(6, 'UTC'),
    registered Bool,
    added_at DateTime64(6, 'UTC'),
    added_by String
)
ENGINE = ReplacingMergeTree(added_at)
ORDER BY (registered, ruleset_id, service, mode, effective_from);
