-- Lookups with an outcome, counted by everything that may have made it bad. One row a combination.
WITH
    cell AS (
        SELECT
            tenant, event_id, occurred_at, mode, model_version, quality_basis, outcome_id,
            toDate(occurred_at) = {day:Date} AS on_day,
            if({kind:String} = 'errors', answer = 'wrong', answer = 'refused') AS bad
        FROM audit.cells
        WHERE toDate(occurred_at) >= {since:Date} AND toDate(occurred_at) <= {day:Date}
            AND (tenant = {tenant:String} OR {every_tenant:UInt8} = 1)
            AND (
                {kind:String} = 'refusals'
                OR (level = 'PRECISE' AND answer IN ('right', 'wrong', 'partly'))
            )
    ),
    answer AS (
        SELECT
            tenant, outcome_id, answer_model, arrayFlatten(claims.cited_chunk_ids) AS cited
        FROM audit_store.outcomes
        WHERE (tenant, outcome_id) IN (SELECT tenant, outcome_id FROM cell)
    ),
    judge AS (
        SELECT
            tenant, outcome_id,
            concat(judge_id, if(judge_version = '', '', '@'), judge_version) AS judge
        FROM audit.judgements
        WHERE {kind:String} = 'errors' AND counts
    ),
    looked AS (
        SELECT
            tenant, event_id, occurred_at, category_filter, unfiltered_retry, ruleset_id,
            index_version, chunker_version, reranker_version, top_k, quality_score,
            selected_chunk_ids, candidates.chunk_id AS chunk_ids,
            candidates.document_id AS document_ids, candidates.document_version AS versions,
            candidates.document_updated_at AS updates, candidates.source_url AS urls,
            candidates.kept AS kept
        FROM audit_store.lookups
        WHERE toDate(occurred_at) >= {since:Date} AND toDate(occurred_at) <= {day:Date}
            AND id_hash IN (SELECT cityHash64('lookup', tenant, event_id) FROM cell)
    ),
    newest AS (
        SELECT
            tenant, document_id, argMax(version, updated) AS newest_version,
            max(updated) AS newest_update
        FROM looked
        ARRAY JOIN document_ids AS document_id, versions AS version, updates AS updated
        WHERE document_id != '' AND version != '' AND updated IS NOT NULL
        GROUP BY tenant, document_id
    ),
    -- What the answer rests on: cited chunks, else selected, else kept. A refusal cites nothing, so
    -- among refusals nobody's citations count.
    basis AS (
        SELECT
            l.tenant AS tenant, l.event_id AS event_id, l.occurred_at AS occurred_at,
            arrayJoin(multiIf(
                {kind:String} = 'errors' AND hasAny(a.cited, l.chunk_ids),
                    arrayFilter(i -> has(a.cited, l.chunk_ids[i]), arrayEnumerate(l.chunk_ids)),
                hasAny(l.selected_chunk_ids, l.chunk_ids),
                    arrayFilter(
                        i -> has(l.selected_chunk_ids, l.chunk_ids[i]), arrayEnumerate(l.chunk_ids)
                    ),
                arrayFilter(i -> l.kept[i], arrayEnumerate(l.chunk_ids))
            )) AS i,
            l.document_ids[i] AS document_id, l.versions[i] AS version, l.updates[i] AS updated,
            l.urls[i] AS url
        FROM looked AS l
        INNER JOIN cell AS c ON c.tenant = l.tenant AND c.event_id = l.event_id
        LEFT JOIN answer AS a ON a.tenant = c.tenant AND a.outcome_id = c.outcome_id
    ),
    document AS (
        SELECT
            b.tenant AS tenant, b.event_id AS event_id,
            toUInt8(1) AS known,
            max(dateDiff('day', b.updated, b.occurred_at)) AS age_days,
            max(b.url = '') AS missing_link,
            max(b.version = '') AS missing_version,
            max(
                b.version != '' AND n.newest_version != '' AND n.newest_version != b.version
                AND n.newest_update <= b.occurred_at
            ) AS old_version
        FROM basis AS b
        LEFT JOIN newest AS n ON n.tenant = b.tenant AND n.document_id = b.document_id
        GROUP BY b.tenant, b.event_id
    )
SELECT
    c.tenant AS tenant, c.model_version AS model_version, c.mode AS mode,
    c.on_day AS on_day, c.bad AS bad,
    if(d.known = 1, d.age_days, NULL) AS age_days,
    if(d.known = 1, d.old_version, NULL) AS old_version,
    if(d.known = 1, d.missing_link, NULL) AS missing_link,
    if(d.known = 1, d.missing_version, NULL) AS missing_version,
    toUInt8(l.category_filter != '') AS category_filter,
    toUInt8(l.unfiltered_retry) AS unfiltered_retry,
    if(c.mode = 'hybrid' AND c.quality_basis != '', toUInt8(c.quality_basis = 'hybrid_rank'), NULL)
        AS rank_fallback,
    l.ruleset_id AS ruleset, l.index_version AS index_version,
    l.chunker_version AS chunker_version, l.reranker_version AS reranker_version,
    a.answer_model AS answer_model, j.judge AS judge,
    l.top_k AS top_k, round(l.quality_score, 3) AS quality, count() AS n
FROM cell AS c
INNER JOIN looked AS l ON l.tenant = c.tenant AND l.event_id = c.event_id
LEFT JOIN answer AS a ON a.tenant = c.tenant AND a.outcome_id = c.outcome_id
LEFT JOIN judge AS j ON j.tenant = c.tenant AND j.outcome_id = c.outcome_id
LEFT JOIN document AS d ON d.tenant = c.tenant AND d.event_id = c.event_id
GROUP BY ALL
ORDER BY ALL
