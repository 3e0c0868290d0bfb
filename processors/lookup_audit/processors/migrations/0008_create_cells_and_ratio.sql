-- An outcome's lookups, to be found by a lookup's hash when that lookup is stored.
CREATE TABLE IF NOT EXISTS audit_store.outcome_links
(
    id_hash UInt64,
    tenant LowCardinality(String),
    event_id String,
    outcome_id String,
    outcome_at DateTime64(6, 'UTC'),
    action LowCardinality(String),
    stance LowCardinality(String),
    refusal_reason LowCardinality(String),
    insert_id UInt64
)
ENGINE = ReplacingMergeTree
PARTITION BY toMonday(outcome_at)
ORDER BY (id_hash, tenant, event_id, outcome_id, insert_id)
SETTINGS index_granularity = 512, non_replicated_deduplication_window = 10000, ttl_only_drop_parts = 1;

CREATE MATERIALIZED VIEW IF NOT EXISTS audit_store.new_outcome_links TO audit_store.outcome_links AS
SELECT
    cityHash64('lookup', tenant, event_id) AS id_hash,
    tenant,
    arrayJoin(arrayDistinct(lookup_event_ids)) AS event_id,
    outcome_id,
    occurred_at AS outcome_at,
    action,
    stance,
    refusal_reason,
    insert_id
FROM audit_store.outcomes;

-- A lookup with the outcome that counts: the latest one. Keys and versions are halves of SHA-256,
-- as nobody can make two of them equal; the version's low bits settle equal times.
CREATE TABLE IF NOT EXISTS audit_store.answered_lookups
(
    event_key UInt128 MATERIALIZED
        reinterpretAsUInt128(substring(SHA256(concat(toString(length(tenant)), ':', tenant, event_id)), 1, 16)),
    answer_key UInt128 MATERIALIZED
        reinterpretAsUInt128(substring(SHA256(concat(toString(length(tenant)), ':', tenant, outcome_id)), 1, 16)),
    tenant LowCardinality(String),
    event_id String,
    occurred_at DateTime64(6, 'UTC'),
    service LowCardinality(String),
    run_id String,
    mode LowCardinality(String),
    model_version LowCardinality(String),
    level LowCardinality(String),
    quality_basis LowCardinality(String),
    layer LowCardinality(String),
    outcome_id String,
    outcome_at DateTime64(6, 'UTC'),
    action LowCardinality(String),
    stance LowCardinality(String),
    refusal_reason LowCardinality(String),
    lookup_insert_id UInt64,
    outcome_insert_id UInt64,
    version UInt128 MATERIALIZED
        bitShiftLeft(toUInt128(toUnixTimestamp64Micro(outcome_at)), 64)
        + reinterpretAsUInt64(substring(SHA256(outcome_id), 1, 8))
)
ENGINE = ReplacingMergeTree(version)
PARTITION BY toMonday(occurred_at)
ORDER BY event_key
SETTINGS non_replicated_deduplication_window = 10000, ttl_only_drop_parts = 1;

-- What a cell needs of a lookup. Its layer is that of the candidate its level comes from.
CREATE OR REPLACE VIEW audit_store.lookup_facts AS
SELECT
    id_hash, tenant, event_id, occurred_at, service, run_id, mode, model_version,
    reported_level AS level, quality_basis,
    arraySort(
        c -> c.1,
        arrayFilter(
            c -> c.3 AND NOT c.4,
            arrayZip(
                arrayMap(r -> ifNull(r, 4294967295), candidates.original_rank),
                candidates.layer, candidates.kept, candidates.duplicate
            )
        )
    )[1].2 AS layer,
    kafka_timestamp, kafka_topic, kafka_partition, kafka_offset, insert_id
FROM audit_store.lookups;

-- Of several judgements of one answer the best source counts, then the newest.
CREATE TABLE IF NOT EXISTS audit_store.counting_judgements
(
    answer_key UInt128 MATERIALIZED
        reinterpretAsUInt128(substring(SHA256(concat(toString(length(tenant)), ':', tenant, outcome_id)), 1, 16)),
    tenant LowCardinality(String),
    outcome_id String,
    judgement_id String,
    judged_at DateTime64(6, 'UTC'),
    verdict LowCardinality(String),
    source LowCardinality(String),
    insert_id UInt64,
    version UInt128 MATERIALIZED
        bitShiftLeft(toUInt128(indexOf(['llm', 'user_feedback', 'human', 'gold'], source)), 96)
        + bitShiftLeft(toUInt128(toUnixTimestamp64Micro(judged_at)), 32)
        + reinterpretAsUInt32(substring(SHA256(judgement_id), 1, 4))
)
ENGINE = ReplacingMergeTree(version)
ORDER BY answer_key
SETTINGS non_replicated_deduplication_window = 10000, ttl_only_drop_parts = 1;

CREATE MATERIALIZED VIEW IF NOT EXISTS audit_store.new_counting_judgements
TO audit_store.counting_judgements AS
SELECT tenant, outcome_id, judgement_id, occurred_at AS judged_at, verdict, source, insert_id
FROM audit_store.judgements;

-- What was stored before these tables were there.
INSERT INTO audit_store.outcome_links
    (id_hash, tenant, event_id, outcome_id, outcome_at, action, stance, refusal_reason, insert_id)
SELECT
    cityHash64('lookup', tenant, event_id), tenant,
    arrayJoin(arrayDistinct(lookup_event_ids)) AS event_id, outcome_id, occurred_at, action, stance,
    refusal_reason, insert_id
FROM audit_store.outcomes;

INSERT INTO audit_store.counting_judgements
    (tenant, outcome_id, judgement_id, judged_at, verdict, source, insert_id)
SELECT tenant, outcome_id, judgement_id, occurred_at, verdict, source, insert_id
FROM audit_store.judgements;

INSERT INTO audit_store.answered_lookups
    (tenant, event_id, occurred_at, service, run_id, mode, model_version, level, quality_basis,
     layer, outcome_id, outcome_at, action, stance, refusal_reason, lookup_insert_id,
     outcome_insert_id)
SELECT
    l.tenant, l.event_id, l.occurred_at, l.service, l.run_id, l.mode, l.model_version, l.level,
    l.quality_basis, l.layer, o.outcome_id, o.outcome_at, o.action, o.stance, o.refusal_reason,
    l.insert_id, o.insert_id
FROM audit_store.outcome_links AS o
INNER JOIN audit_store.lookup_facts AS l ON l.tenant = o.tenant AND l.event_id = o.event_id
WHERE l.id_hash IN (SELECT id_hash FROM audit_store.outcome_links);

-- How many lookups a day had, without reading them.
ALTER TABLE audit_store.lookups MODIFY SETTING lightweight_mutation_projection_mode = 'rebuild';

ALTER TABLE audit_store.lookups ADD PROJECTION IF NOT EXISTS per_day
(
    SELECT toDate(occurred_at), tenant, mode, model_version, reported_level, count()
    GROUP BY toDate(occurred_at), tenant, mode, model_version, reported_level
);

ALTER TABLE audit_store.lookups MATERIALIZE PROJECTION per_day;

-- One row a lookup with an outcome. An answer counts by its judgement, a refusal by itself. An
-- answer judged partly right is judged, and neither an error nor sound.
CREATE OR REPLACE VIEW audit.cells AS
SELECT
    tenant, event_id, occurred_at, service, run_id, mode, model_version, level, layer,
    quality_basis, outcome_id, outcome_at, action, stance, refusal_reason, judgement, judged_by,
    answer,
    multiIf(
        answer = 'unjudged', 'unjudged',
        level = 'PRECISE',
            multiIf(answer = 'wrong', 'high_score_error', answer = 'right', 'sound',
                    answer = 'partly', 'high_score_partly', 'over_refusal'),
        level = 'NONE',
            multiIf(answer = 'wrong', 'low_score_error', answer = 'right', 'lucky_answer',
                    answer = 'partly', 'low_score_partly', 'low_score_refusal'),
        concat(lower(level), '_', answer)
    ) AS cell,
    event_key, answer_key
FROM (
    SELECT
        l.tenant AS tenant, l.event_id AS event_id, l.occurred_at AS occurred_at,
        l.service AS service, l.run_id AS run_id, l.mode AS mode,
        l.model_version AS model_version, l.level AS level, l.layer AS layer,
        l.quality_basis AS quality_basis, l.outcome_id AS outcome_id, l.outcome_at AS outcome_at,
        l.action AS action, l.stance AS stance, l.refusal_reason AS refusal_reason,
        j.verdict AS judgement, j.source AS judged_by,
        multiIf(
            l.action = 'refused', 'refused',
            j.verdict = 'incorrect', 'wrong',
            j.verdict = 'correct', 'right',
            j.verdict = 'partly', 'partly',
            'unjudged'
        ) AS answer,
        l.event_key AS event_key, l.answer_key AS answer_key
    FROM audit_store.answered_lookups AS l FINAL
    LEFT JOIN (
        SELECT answer_key, verdict, source FROM audit_store.counting_judgements FINAL
    ) AS j ON j.answer_key = l.answer_key
)
SETTINGS
    -- A lookup's week never changes, and the table is small: both only spread the work.
    do_not_merge_across_partitions_select_final = 1,
    merge_tree_min_rows_for_concurrent_read = 8192,
    merge_tree_min_bytes_for_concurrent_read = 0;

-- Refused is what the outcome that counts says, as in the cells.
CREATE OR REPLACE VIEW audit.lookups AS
SELECT
    event_id, occurred_at, ingested_at, tenant, service, service_version, service_instance,
    service_sequence, run_id, tool_call_id, trace_id, span_id, mode, model_version,
    reranker_version, index_version, chunker_version, answer_model, top_k, query_text,
    query_language, category_filter, reported_level, recomputed_level, reported_quality,
    quality_score, quality_basis, ruleset_id, stated_ruleset_id, level_check, level_mismatch,
    failed_checks, failures, unverifiable, evidence_status, returned_count, truncated,
    (tenant, event_id) IN (
        SELECT tenant, event_id FROM audit_store.answered_lookups FINAL WHERE action = 'refused'
    ) AS refused,
    unfiltered_retry, selected_chunk_ids, context_limit_tokens, context_used_tokens,
    top_similarity, latency_ms, late, source_format, degradations, unknown_fields,
    kafka_cluster, kafka_topic, kafka_partition, kafka_offset, kafka_timestamp, raw,
    lower(hex(payload_sha256)) AS payload_sha256
FROM audit_store.lookups;

CREATE OR REPLACE VIEW audit.judgements AS
SELECT
    judgement_id, occurred_at, ingested_at, tenant, outcome_id, verdict, source, judge_id,
    judge_version, comment,
    (tenant, outcome_id, judgement_id) IN (
        SELECT tenant, outcome_id, judgement_id FROM audit_store.counting_judgements FINAL
    ) AS counts,
    unknown_fields, late, kafka_cluster, kafka_topic, kafka_partition, kafka_offset,
    kafka_timestamp, raw
FROM audit_store.judgements;

-- The sampled lookups with an outcome. Of a day that was sampled those that were drawn count, each
-- for 1 / inclusion probability; of another day all, each for one.
CREATE OR REPLACE VIEW audit.sampled_cells AS
SELECT
    toDate(c.occurred_at) AS day, if(s.probability > 0, 1 / s.probability, 1.) AS weight, c.*
FROM audit.cells AS c
LEFT JOIN (
    SELECT
        reinterpretAsUInt128(
            substring(SHA256(concat(toString(length(tenant)), ':', tenant, event_id)), 1, 16)
        ) AS event_key,
        inclusion_probability AS probability
    FROM audit_store.samples FINAL
    WHERE inclusion_probability > 0 AND inclusion_probability <= 1
        AND (tenant, day) IN (SELECT tenant, day FROM audit_store.sample_plans)
) AS s ON s.event_key = c.event_key
WHERE
    s.probability > 0
    OR (c.tenant, toDate(c.occurred_at)) NOT IN (SELECT tenant, day FROM audit_store.sample_plans);

-- All sampled lookups, counted and weighted.
CREATE OR REPLACE VIEW audit.sampled_traffic AS
WITH planned AS (SELECT tenant, day FROM audit_store.sample_plans)
SELECT
    toDate(occurred_at) AS day, tenant, model_version, mode, reported_level AS level,
    false AS drawn, count() AS sampled, toFloat64(count()) AS weight,
    toFloat64(count()) AS weight_squares
FROM audit_store.lookups
WHERE (tenant, toDate(occurred_at)) NOT IN planned
GROUP BY toDate(occurred_at), tenant, mode, model_version, reported_level
UNION ALL
SELECT
    day, tenant, model_version, mode, level, true, count(), sum(1 / inclusion_probability),
    sum(1 / (inclusion_probability * inclusion_probability))
FROM audit_store.samples FINAL
WHERE (tenant, day) IN planned AND inclusion_probability > 0 AND inclusion_probability <= 1
GROUP BY day, tenant, model_version, mode, level;

-- What a stratum's rates need, as sums that add up over days. Lookups that share an answer share
-- its judgement, so products are of each answer's sums. a_b is the sum of a * b over answers.
CREATE OR REPLACE VIEW audit.ratio_sums AS
WITH
    answers AS (
        SELECT
            day, tenant, model_version, mode, answer_key,
            count() AS lookups, sum(weight) AS w, sum(weight * weight) AS ww,
            countIf(level = 'PRECISE' AND answer = 'wrong') AS errors,
            sumIf(weight, level = 'PRECISE' AND answer = 'wrong') AS e,
            countIf(level = 'PRECISE' AND answer IN ('wrong', 'partly', 'right')) AS highs,
            sumIf(weight, level = 'PRECISE' AND answer IN ('wrong', 'partly', 'right')) AS h,
            countIf(level = 'NONE' AND answer = 'refused') AS refusals,
            sumIf(weight, level = 'NONE' AND answer = 'refused') AS r,
            countIf(level = 'NONE') AS lows,
            sumIf(weight, level = 'NONE') AS l
        FROM audit.sampled_cells
        GROUP BY day, tenant, model_version, mode, answer_key
    ),
    answered AS (
        SELECT
            day, tenant, model_version, mode,
            sum(lookups) AS with_outcome,
            sum(errors) AS high_score_errors, sum(highs) AS judged_high,
            sum(refusals) AS low_score_refusals, sum(lows) AS low_with_outcome,
            sum(e) AS error, sum(h) AS high, sum(r) AS refusal, sum(l) AS low,
            sum(e * e) AS error_error, sum(e * h) AS error_high, sum(h * h) AS high_high,
            countIf(h > 0) AS high_answers,
            sum(r * r) AS refusal_refusal, sum(r * l) AS refusal_low, sum(l * l) AS low_low,
            countIf(l > 0) AS low_answers,
            sum(e * w) AS error_any, sum(r * w) AS refusal_any,
            sum(w * w - ww) AS shared_any, sum(lookups - 1) AS shared_lookups,
            sum(e * r) AS error_refusal, countIf(e + r > 0) AS either_answers
        FROM answers
        GROUP BY day, tenant, model_version, mode
    ),
    traffic AS (
        SELECT
            day, tenant, model_version, mode, max(drawn) AS drawn, sum(sampled) AS sampled,
            sum(weight) AS weight, sum(weight_squares) AS weight_squares
        FROM audit.sampled_traffic
        GROUP BY day, tenant, model_version, mode
    )
SELECT
    t.day AS day, t.tenant AS tenant, t.model_version AS model_version, t.mode AS mode,
    t.drawn AS drawn, t.sampled AS sampled, a.with_outcome AS with_outcome,
    a.high_score_errors AS high_score_errors, a.judged_high AS judged_high,
    a.low_score_refusals AS low_score_refusals, a.low_with_outcome AS low_with_outcome,
    a.error AS error, a.high AS high, a.refusal AS refusal, a.low AS low, t.weight AS any,
    a.error_error AS error_error, a.error_high AS error_high, a.high_high AS high_high,
    toFloat64(a.high_answers) AS high_answers, a.refusal_refusal AS refusal_refusal,
    a.refusal_low AS refusal_low, a.low_low AS low_low, toFloat64(a.low_answers) AS low_answers,
    a.error_any AS error_any, a.refusal_any AS refusal_any,
    t.weight_squares + a.shared_any AS any_any, toFloat64(t.sampled) - a.shared_lookups AS any_answers,
    a.error_refusal AS error_refusal, toFloat64(a.either_answers) AS either_answers
FROM traffic AS t
LEFT JOIN answered AS a
    ON a.day = t.day AND a.tenant = t.tenant AND a.model_version = t.model_version
    AND a.mode = t.mode;

-- The headline, a row a day and stratum. Each rate has its 95 % interval: Wilson's on the effective
-- size, as statistics/proportions.py explains, which computes the same.
CREATE OR REPLACE VIEW audit.ratio_daily AS
SELECT
    day, tenant, model_version, mode, drawn, sampled, with_outcome,
    high_score_errors, judged_high, low_score_refusals, low_with_outcome,
    values[1] AS high_score_error_rate,
    lows[1] AS high_score_error_rate_low,
    highs[1] AS high_score_error_rate_high,
    values[2] AS low_score_refusal_rate,
    lows[2] AS low_score_refusal_rate_low,
    highs[2] AS low_score_refusal_rate_high,
    values[3] AS high_score_error_share,
    lows[3] AS high_score_error_share_low,
    highs[3] AS high_score_error_share_high,
    values[4] AS low_score_refusal_share,
    lows[4] AS low_score_refusal_share_low,
    highs[4] AS low_score_refusal_share_high,
    if(refusal > 0, error / refusal, NULL) AS ratio,
    if(refusal > 0, lows[5] / (1 - lows[5]), NULL) AS ratio_low,
    if(refusal > 0 AND highs[5] < 1, highs[5] / (1 - highs[5]), NULL) AS ratio_high
FROM (
    SELECT
        *,
        -- A rate over nothing has no value.
        arrayMap(p -> if(isNaN(p), NULL, p), rates) AS values,
        arrayMap((p, c, h) -> if(isNaN(p), NULL, greatest(0., c - h)), rates, centres, halves) AS lows,
        arrayMap((p, c, h) -> if(isNaN(p), NULL, least(1., c + h)), rates, centres, halves) AS highs
    FROM (
        SELECT
            *,
            1.959963984540054 AS z,
            arrayMap((p, n) -> (p + z * z / (2 * n)) / (1 + z * z / n), rates, sizes) AS centres,
            arrayMap(
                (p, n) -> z * sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / (1 + z * z / n),
                rates, sizes
            ) AS halves
        FROM (
            SELECT
                *,
                arrayMap(
                    (s, p) -> s.3 * s.3 * (s.1 * p * (1 - p) + 10)
                        / (s.1 * greatest(0., s.4 - 2 * p * s.5 + p * p * s.6) + 10 * s.6),
                    sums, rates
                ) AS sizes
            FROM (
                SELECT
                    *, arrayMap(s -> if(s.3 > 0, least(1., s.2 / s.3), nan), sums) AS rates
                FROM (
                    SELECT
                        *,
                        -- (clusters, a, b, aa, ab, bb) of each rate.
                        [
                            (high_answers, error, high, error_error, error_high, high_high),
                            (low_answers, refusal, low, refusal_refusal, refusal_low, low_low),
                            (any_answers, error, any, error_error, error_any, any_any),
                            (any_answers, refusal, any, refusal_refusal, refusal_any, any_any),
                            (either_answers, error, error + refusal, error_error,
                             error_error + error_refusal,
                             error_error + 2 * error_refusal + refusal_refusal)
                        ] AS sums
                    FROM audit.ratio_sums
                )
            )
        )
    )
);

-- Cells by level and by layer, a row a day and stratum, with the sums of their intervals.
CREATE OR REPLACE VIEW audit.cells_daily AS
WITH answers AS (
    SELECT
        day, tenant, model_version, mode, part.1 AS by, part.2 AS value, answer_key,
        count() AS lookups, sum(weight) AS w,
        countIf(answer = 'wrong') AS wrongs, sumIf(weight, answer = 'wrong') AS e,
        countIf(answer = 'partly') AS partlys, countIf(answer = 'right') AS rights,
        sumIf(weight, answer IN ('wrong', 'partly', 'right')) AS j,
        countIf(answer = 'refused') AS refusals, sumIf(weight, answer = 'refused') AS r
    FROM audit.sampled_cells
    ARRAY JOIN [('level', level), ('layer', layer)] AS part
    GROUP BY day, tenant, model_version, mode, by, value, answer_key
)
SELECT
    day, tenant, model_version, mode, by, value,
    sum(lookups) AS with_outcome, sum(wrongs) AS wrong, sum(partlys) AS partly,
    sum(rights) AS right, sum(refusals) AS refused, wrong + partly + right AS judged,
    if(judged > 0, sum(e) / sum(j), NULL) AS error_rate,
    sum(r) / sum(w) AS refusal_rate,
    sum(e) AS error, sum(j) AS judged_weight, sum(e * e) AS error_error,
    sum(e * j) AS error_judged, sum(j * j) AS judged_judged,
    toFloat64(countIf(j > 0)) AS judged_answers,
    sum(r) AS refusal, sum(w) AS any, sum(r * r) AS refusal_refusal, sum(r * w) AS refusal_any,
    sum(w * w) AS any_any, toFloat64(count()) AS any_answers
FROM answers
GROUP BY day, tenant, model_version, mode, by, value;
