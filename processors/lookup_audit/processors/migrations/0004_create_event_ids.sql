-- Where each id was stored: asked before every insert whether an event is new. Small granules, as
-- the ids of one batch are spread over the whole table.
CREATE TABLE IF NOT EXISTS audit_store.event_ids
(
    id_hash UInt64,
    kind LowCardinality(String),
    tenant LowCardinality(String),
    id String,
    occurred_at DateTime64(6, 'UTC'),
    payload_sha256 FixedString(32),
    kafka_cluster LowCardinality(String),
    kafka_topic LowCardinality(String),
    kafka_partition UInt32,
    kafka_offset UInt64,
    kafka_timestamp DateTime64(3, 'UTC'),
    insert_id UInt64
)
ENGINE = MergeTree
PARTITION BY toMonday(occurred_at)
ORDER BY id_hash
SETTINGS index_granularity = 512, non_replicated_deduplication_window = 10000, ttl_only_drop_parts = 1;

CREATE MATERIALIZED VIEW IF NOT EXISTS audit_store.lookup_ids TO audit_store.event_ids AS
SELECT
    cityHash64('lookup', tenant, event_id) AS id_hash,
    'lookup' AS kind,
    tenant,
    event_id AS id,
    occurred_at,
    payload_sha256,
    kafka_cluster, kafka_topic, kafka_partition, kafka_offset, kafka_timestamp, insert_id
FROM audit_store.lookups;

CREATE MATERIALIZED VIEW IF NOT EXISTS audit_store.outcome_ids TO audit_store.event_ids AS
SELECT
    cityHash64('outcome', tenant, outcome_id) AS id_hash,
    'outcome' AS kind,
    tenant,
    outcome_id AS id,
    occurred_at,
    payload_sha256,
    kafka_cluster, kafka_topic, kafka_partition, kafka_offset, kafka_timestamp, insert_id
FROM audit_store.outcomes;

CREATE MATERIALIZED VIEW IF NOT EXISTS audit_store.judgement_ids TO audit_store.event_ids AS
SELECT
    cityHash64('judgement', tenant, judgement_id) AS id_hash,
    'judgement' AS kind,
    tenant,
    judgement_id AS id,
    occurred_at,
    payload_sha256,
    kafka_cluster, kafka_topic, kafka_partition, kafka_offset, kafka_timestamp, insert_id
FROM audit_store.judgements;
