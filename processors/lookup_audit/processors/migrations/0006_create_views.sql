CREATE OR REPLACE VIEW audit.lookups AS
SELECT
    event_id, occurred_at, ingested_at, tenant, service, service_version, service_instance,
    service_sequence, run_id, tool_call_id, trace_id, span_id, mode, model_version,
    reranker_version, index_version, chunker_version, answer_model, top_k, query_text,
    query_language, category_filter, reported_level, recomputed_level, reported_quality,
    quality_score, quality_basis, ruleset_id, stated_ruleset_id, level_check, level_mismatch,
    failed_checks, failures, unverifiable, evidence_status, returned_count, truncated,
    (tenant, event_id) IN (
        SELECT tenant, arrayJoin(lookup_event_ids) FROM audit_store.outcomes WHERE action = 'refused'
    ) AS refused,
    unfiltered_retry, selected_chunk_ids, context_limit_tokens, context_used_tokens,
    top_similarity, latency_ms, late, source_format, degradations, unknown_fields,
    kafka_cluster, kafka_topic, kafka_partition, kafka_offset, kafka_timestamp, raw,
    lower(hex(payload_sha256)) AS payload_sha256
FROM audit_store.lookups;

CREATE OR REPLACE VIEW audit.candidates AS
SELECT
    event_id, occurred_at, tenant, service, mode, model_version,
    c.chunk_id AS chunk_id,
    c.document_id AS document_id,
    c.original_rank AS original_rank,
    c.dense_distance AS dense_distance,
    c.rrf_score AS rrf_score,
    c.rerank_score AS rerank_score,
    c.similarity_score AS similarity_score,
    c.reported_quality AS reported_quality,
    c.quality_score AS quality_score,
    c.reported_layer AS reported_layer,
    c.layer AS layer,
    c.kept AS kept,
    c.drop_reason AS drop_reason,
    has(selected_chunk_ids, c.chunk_id)::Bool AS selected,
    c.source_url AS source_url,
    c.document_version AS document_version,
    c.document_updated_at AS document_updated_at,
    c.tokens AS tokens
FROM audit_store.lookups
ARRAY JOIN candidates AS c
WHERE NOT c.duplicate;

CREATE OR REPLACE VIEW audit.outcomes AS
SELECT
    outcome_id, occurred_at, ingested_at, tenant, run_id, trace_id, lookup_event_ids, action,
    stance, refusal_reason, refusal_text, claims.claim_id AS claim_ids,
    claims.text AS claim_texts, claims.cited_chunk_ids AS cited_chunk_ids,
    claims.cited_source_urls AS cited_source_urls, answer_model, unknown_fields, late,
    kafka_cluster, kafka_topic, kafka_partition, kafka_offset, kafka_timestamp, raw
FROM audit_store.outcomes;

-- Of several judgements of one answer the best source counts, then the newest.
CREATE OR REPLACE VIEW audit.judgements AS
SELECT
    judgement_id, occurred_at, ingested_at, tenant, outcome_id, verdict, source, judge_id,
    judge_version, comment,
    row_number() OVER (
        PARTITION BY tenant, outcome_id
        ORDER BY
            indexOf(['gold', 'human', 'user_feedback', 'llm'], source),
            occurred_at DESC,
            judgement_id DESC
    ) = 1 AS counts,
    unknown_fields, late, kafka_cluster, kafka_topic, kafka_partition, kafka_offset,
    kafka_timestamp, raw
FROM audit_store.judgements;

CREATE OR REPLACE VIEW audit.dead_letters AS
SELECT * FROM audit_store.dead_letters FINAL;

CREATE OR REPLACE VIEW audit.duplicates AS
SELECT
    kind, tenant, id AS event_id, seen_at, first_topic, first_partition, first_offset,
    kafka_cluster, kafka_topic, kafka_partition, kafka_offset, kafka_timestamp
FROM audit_store.repeats FINAL
WHERE NOT conflict;

CREATE OR REPLACE VIEW audit.id_conflicts AS
SELECT
    kind, tenant, id AS event_id, seen_at, first_topic, first_partition, first_offset,
    kafka_cluster, kafka_topic, kafka_partition, kafka_offset, kafka_timestamp, raw
FROM audit_store.repeats FINAL
WHERE conflict;

CREATE OR REPLACE VIEW audit.rulesets AS
SELECT ruleset_id, service, mode, effective_from, registered, added_at, added_by, content
FROM audit_store.rulesets FINAL;

-- Per minute and stratum. Modes are different rulers: a query over it groups by mode.
CREATE OR REPLACE VIEW audit.precise_rate AS
SELECT
    toStartOfMinute(occurred_at) AS minute,
    tenant, service, mode, model_version, quality_basis,
    count() AS n,
    countIf(reported_level = 'PRECISE') AS precise,
    countIf(reported_level = 'HIGHLY_RELEVANT') AS highly_relevant,
    countIf(reported_level = 'REFERENCE') AS reference,
    countIf(reported_level = 'NONE') AS none,
    countIf(quality_basis = 'hybrid_rank') AS rank_fallback
FROM audit_store.lookups
GROUP BY minute, tenant, service, mode, model_version, quality_basis;

-- One row a lookup with an outcome. An answer counts by its judgement, a refusal by itself. An
-- answer judged partly right is judged, and neither an error nor sound.
CREATE OR REPLACE VIEW audit.cells AS
WITH
    outcome AS (
        SELECT
            tenant,
            arrayJoin(lookup_event_ids) AS event_id,
            outcome_id,
            action,
            refusal_reason,
            occurred_at
        FROM audit_store.outcomes
    ),
    -- An answer's latest outcome decides where a lookup has several.
    decided AS (
        SELECT
            tenant,
            event_id,
            argMax(outcome_id, (occurred_at, outcome_id)) AS outcome_id,
            argMax(action, (occurred_at, outcome.outcome_id)) AS action,
            argMax(refusal_reason, (occurred_at, outcome.outcome_id)) AS refusal_reason
        FROM outcome
        GROUP BY tenant, event_id
    ),
    judged AS (
        SELECT
            tenant,
            outcome_id,
            argMin(
                verdict,
                (indexOf(['gold', 'human', 'user_feedback', 'llm'], source),
                 -toUnixTimestamp64Micro(occurred_at), judgement_id)
            ) AS judgement
        FROM audit_store.judgements
        GROUP BY tenant, outcome_id
    )
SELECT
    l.tenant AS tenant, l.event_id AS event_id, l.occurred_at AS occurred_at,
    l.service AS service, l.mode AS mode, l.model_version AS model_version,
    l.reported_level AS level, l.quality_basis AS quality_basis,
    d.outcome_id AS outcome_id, d.action AS action, d.refusal_reason AS refusal_reason,
    j.judgement AS judgement,
    multiIf(
        d.action = 'refused', 'refused',
        j.judgement = 'incorrect', 'wrong',
        j.judgement = 'correct', 'right',
        j.judgement = 'partly', 'partly',
        'unjudged'
    ) AS answer,
    multiIf(
        answer = 'unjudged', 'unjudged',
        level = 'PRECISE',
            multiIf(answer = 'wrong', 'high_score_error', answer = 'right', 'sound',
                    answer = 'partly', 'high_score_partly', 'over_refusal'),
        level = 'NONE',
            multiIf(answer = 'wrong', 'low_score_error', answer = 'right', 'lucky_answer',
                    answer = 'partly', 'low_score_partly', 'low_score_refusal'),
        concat(lower(level), '_', answer)
    ) AS cell
FROM (
    SELECT
        tenant, event_id, occurred_at, service, mode, model_version, reported_level, quality_basis
    FROM audit_store.lookups
    WHERE id_hash IN (
        SELECT cityHash64('lookup', tenant, arrayJoin(lookup_event_ids)) FROM audit_store.outcomes
    )
) AS l
INNER JOIN decided AS d ON l.tenant = d.tenant AND l.event_id = d.event_id
LEFT JOIN judged AS j ON j.tenant = d.tenant AND j.outcome_id = d.outcome_id;
