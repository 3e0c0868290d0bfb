-- Counts of one period: a row a leaf and ruleset used, in 30 groups of whole agent runs.
WITH cityHash64(if(run_id != '', run_id, event_id)) % 30 AS run_group
SELECT
    [
        if(has(JSONExtract({keep_tenant:String}, 'Array(String)'), tenant), tenant, '(other)'),
        if(has(JSONExtract({keep_service:String}, 'Array(String)'), service), service, '(other)'),
        if(has(JSONExtract({keep_language:String}, 'Array(String)'), query_language),
           query_language, '(other)'),
        if(has(JSONExtract({keep_category:String}, 'Array(String)'), category_filter),
           category_filter, '(other)'),
        toString(model_version), toString(index_version), toString(reranker_version),
        toString(chunker_version),
        multiIf(isNull(unfiltered_retry), 'unknown', unfiltered_retry, 'yes', 'no'),
        if(quality_basis = 'hybrid_rank', 'rank', 'other')
    ] AS fields,
    -- What the service says it reckoned by; only then what it should have.
    if(stated_ruleset_id != '', stated_ruleset_id, ruleset_id) AS used,
    sumResample(0, 30, 1)(1, run_group) AS n,
    sumResample(0, 30, 1)(toUInt64(reported_level = 'PRECISE'), run_group) AS precise,
    -- A level that cannot be reckoned stays as it was reported.
    sumResample(0, 30, 1)(
        toUInt64(if(becomes = 'unverifiable', reported_level, becomes) = 'PRECISE'), run_group
    ) AS under
FROM ({judged})
WHERE {filter}
GROUP BY fields, used
ORDER BY fields, used
