-- How a day was drawn: a row a stratum and size. The first row of a day fixes its seed; the
-- probability in force is the highest of a stratum's rows, so that a larger draw holds the smaller.
CREATE TABLE IF NOT EXISTS audit_store.sample_plans
(
    tenant LowCardinality(String),
    day Date,
    mode LowCardinality(String),
    model_version LowCardinality(String),
    level LowCardinality(String),
    class LowCardinality(String),
    size UInt64,
    seed String,
    population UInt64,
    inclusion_probability Float64,
    scale Float64,
    drawn_at DateTime64(6, 'UTC')
)
ENGINE = ReplacingMergeTree(drawn_at)
PARTITION BY toMonday(day)
ORDER BY (tenant, day, mode, model_version, level, class, size)
SETTINGS non_replicated_deduplication_window = 1000, ttl_only_drop_parts = 1;

-- Which lookups were drawn. A larger draw writes a row again with its new probability.
CREATE TABLE IF NOT EXISTS audit_store.samples
(
    tenant LowCardinality(String),
    day Date,
    event_id String,
    occurred_at DateTime64(6, 'UTC'),
    mode LowCardinality(String),
    model_version LowCardinality(String),
    level LowCardinality(String),
    class LowCardinality(String),
    inclusion_probability Float64,
    draw Float64,
    seed String,
    drawn_at DateTime64(6, 'UTC')
)
ENGINE = ReplacingMergeTree(drawn_at)
PARTITION BY toMonday(day)
ORDER BY (tenant, day, event_id)
SETTINGS non_replicated_deduplication_window = 1000, ttl_only_drop_parts = 1;

CREATE OR REPLACE VIEW audit.samples AS
SELECT
    tenant, day, event_id, occurred_at, mode, model_version, level, class, inclusion_probability,
    draw, seed, drawn_at
FROM audit_store.samples FINAL;

CREATE OR REPLACE VIEW audit.sample_plans AS
SELECT
    tenant, day, mode, model_version, level, class, size, seed, population, inclusion_probability,
    scale, drawn_at
FROM audit_store.sample_plans FINAL;
