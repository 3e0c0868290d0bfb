-- The drift watcher's ledger. A step closes some minutes; it counts once its row in drift_steps
-- is written. Of two leaders that closed the same step, the one with the higher epoch holds, so
-- that a leader who does not know yet that it was replaced changes nothing.
CREATE TABLE IF NOT EXISTS audit_store.drift_leases
(
    epoch UInt64,
    holder String,
    acquired_at DateTime64(3, 'UTC'),
    expires_at DateTime64(3, 'UTC')
)
ENGINE = ReplacingMergeTree(acquired_at)
ORDER BY (epoch, holder);

CREATE TABLE IF NOT EXISTS audit_store.drift_steps
(
    step UInt64,
    epoch UInt64,
    holder String,
    closed_from DateTime('UTC'),
    closed_to DateTime('UTC'),
    seen_from DateTime64(6, 'UTC'),
    seen_to DateTime64(6, 'UTC'),
    acceptances Array(String),
    settings String,
    checkpoint Bool,
    written_at DateTime64(3, 'UTC')
)
ENGINE = MergeTree
ORDER BY (step, epoch)
SETTINGS non_replicated_deduplication_window = 10000;

-- A closed minute of one rate, counted once. What came for it later is a row of a later step with
-- n = 0: late by Kafka's clock, or on time there and stored after the minute was closed (missed).
CREATE TABLE IF NOT EXISTS audit_store.drift_minutes
(
    step UInt64,
    epoch UInt64,
    minute DateTime('UTC'),
    metric LowCardinality(String),
    tenant LowCardinality(String),
    service LowCardinality(String),
    mode LowCardinality(String),
    model_version LowCardinality(String),
    quality_basis LowCardinality(String),
    n UInt64,
    k UInt64,
    late UInt64,
    missed UInt64
)
ENGINE = MergeTree
ORDER BY (step, epoch, minute, metric, tenant, service, mode, model_version, quality_basis)
SETTINGS non_replicated_deduplication_window = 10000;

-- Everything the watcher knows after a step, written now and then: a restart reads the newest one
-- and folds in the minutes since.
CREATE TABLE IF NOT EXISTS audit_store.drift_states
(
    step UInt64,
    epoch UInt64,
    kind LowCardinality(String),
    state String CODEC(ZSTD(1)),
    written_at DateTime('UTC') DEFAULT now()
)
ENGINE = MergeTree
ORDER BY (step, epoch)
TTL written_at + toIntervalDay(14)
SETTINGS non_replicated_deduplication_window = 10000;

CREATE TABLE IF NOT EXISTS audit_store.drift_strata
(
    metric LowCardinality(String),
    tenant LowCardinality(String),
    service LowCardinality(String),
    mode LowCardinality(String),
    model_version LowCardinality(String),
    quality_basis LowCardinality(String),
    step UInt64,
    epoch UInt64,
    phase LowCardinality(String),
    first_call DateTime('UTC'),
    last_call DateTime('UTC'),
    reference_calls Float64,
    calls_needed UInt64,
    reference_rate Nullable(Float64),
    reference_error Nullable(Float64),
    compared_to LowCardinality(String),
    ignore_points Float64,
    design_effect Float64,
    has_season Bool,
    evidence Float64,
    alarm_id String,
    updated_at DateTime64(3, 'UTC')
)
ENGINE = ReplacingMergeTree(step)
ORDER BY (metric, mode, tenant, service, model_version, quality_basis);

CREATE TABLE IF NOT EXISTS audit_store.drift_alarms
(
    alarm_id String,
    revision UInt64,
    step UInt64,
    epoch UInt64,
    state LowCardinality(String),
    metric LowCardinality(String),
    tenant LowCardinality(String),
    service LowCardinality(String),
    mode LowCardinality(String),
    model_version LowCardinality(String),
    quality_basis LowCardinality(String),
    direction LowCardinality(String),
    started_at DateTime64(6, 'UTC'),
    detected_at DateTime64(6, 'UTC'),
    closed_at Nullable(DateTime64(6, 'UTC')),
    reference_rate Float64,
    observed_rate Float64,
    change_points Float64,
    change_low Float64,
    change_high Float64,
    calls UInt64,
    successes UInt64,
    reference_calls UInt64,
    design_effect Float64,
    compared_to String,
    accepted_by String,
    summary String,
    board_url String,
    event String CODEC(ZSTD(1))
)
ENGINE = ReplacingMergeTree
ORDER BY (alarm_id, revision, step, epoch)
SETTINGS non_replicated_deduplication_window = 10000;

CREATE TABLE IF NOT EXISTS audit_store.drift_acceptances
(
    alarm_id String,
    accepted_at DateTime64(6, 'UTC'),
    accepted_by String,
    comment String
)
ENGINE = ReplacingMergeTree
ORDER BY (alarm_id, accepted_at, accepted_by)
SETTINGS non_replicated_deduplication_window = 10000;

CREATE TABLE IF NOT EXISTS audit_store.drift_deliveries
(
    channel LowCardinality(String),
    alarm_id String,
    revision UInt64,
    delivered_at DateTime64(3, 'UTC')
)
ENGINE = ReplacingMergeTree
ORDER BY (channel, alarm_id, revision);

-- Arrival is what a step asks for: nearly in the order of storing, so a few marks answer.
ALTER TABLE audit_store.lookups ADD INDEX IF NOT EXISTS by_ingested_at ingested_at TYPE minmax GRANULARITY 4;

ALTER TABLE audit_store.outcomes ADD INDEX IF NOT EXISTS by_ingested_at ingested_at TYPE minmax GRANULARITY 4;

ALTER TABLE audit_store.judgements ADD INDEX IF NOT EXISTS by_ingested_at ingested_at TYPE minmax GRANULARITY 4;

CREATE OR REPLACE VIEW audit.drift_minutes AS
SELECT
    minute, metric, tenant, service, mode, model_version, quality_basis,
    sum(n) AS n, sum(k) AS k, sum(late) AS late, sum(missed) AS missed
FROM audit_store.drift_minutes
WHERE (step, epoch) IN (SELECT step, max(epoch) FROM audit_store.drift_steps GROUP BY step)
GROUP BY minute, metric, tenant, service, mode, model_version, quality_basis;

-- One row an alarm, as it is now. An acceptance shows at once; the watcher takes it up with the next
-- minute it closes.
CREATE OR REPLACE VIEW audit.drift_alarms AS
SELECT
    alarm_id, revision,
    if(a.state = 'open' AND b.by != '', 'accepted', a.state) AS state,
    metric, tenant, service, mode, model_version, quality_basis, direction,
    started_at, detected_at, closed_at,
    reference_rate, observed_rate, change_points, change_low, change_high,
    calls, successes, reference_calls, design_effect, compared_to,
    if(a.accepted_by != '', a.accepted_by, b.by) AS accepted_by,
    b.comment AS accepted_comment,
    summary, board_url
FROM (
    SELECT * FROM audit_store.drift_alarms
    WHERE (step, epoch) IN (SELECT step, max(epoch) FROM audit_store.drift_steps GROUP BY step)
    ORDER BY revision DESC, step DESC
    LIMIT 1 BY alarm_id
) AS a
LEFT JOIN (
    SELECT
        alarm_id,
        argMin(accepted_by, (accepted_at, accepted_by)) AS by,
        argMin(comment, (accepted_at, accepted_by)) AS comment
    FROM audit_store.drift_acceptances
    GROUP BY alarm_id
) AS b USING (alarm_id);

-- State of every watched rate. Rates are of one mode each; no value before there is a reference.
CREATE OR REPLACE VIEW audit.drift_strata AS
SELECT
    metric, tenant, service, mode, model_version, quality_basis,
    multiIf(alarm_id != '', 'alarm', phase = 'warming', 'not watching yet', 'watching') AS status,
    phase, first_call, last_call, reference_calls, calls_needed, reference_rate, reference_error,
    compared_to, ignore_points, design_effect, has_season, evidence, alarm_id, updated_at
FROM audit_store.drift_strata FINAL;
