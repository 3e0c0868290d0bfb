-- Counts of one period: a row a leaf and ruleset used, in 30 groups of whole agent runs.
SELECT
    [
        toString(tenant), toString(service), toString(language), toString(category),
        toString(model_version), toString(index_version), toString(reranker_version),
        toString(chunker_version), multiIf(isNull(retry), 'unknown', retry, 'yes', 'no'),
        if(is_rank, 'rank', 'other')
    ] AS fields,
    used, n, precise, under
FROM (
    WITH cityHash64(if(run_id != '', run_id, event_id)) % 30 AS run_group
    SELECT
        -- In place of each: the column, or (other) where its value is a rare one.
        {tenant} AS tenant, {service} AS service, {language} AS language, {category} AS category,
        model_version, index_version, reranker_version, chunker_version,
        unfiltered_retry AS retry,
        quality_basis = 'hybrid_rank' AS is_rank,
        -- What the service says it reckoned by; only then what it should have.
        if(stated_ruleset_id != '', stated_ruleset_id, ruleset_id) AS used,
        sumResample(0, 30, 1)(1, run_group) AS n,
        sumResample(0, 30, 1)(toUInt64(reported_level = 'PRECISE'), run_group) AS precise,
        -- A level that cannot be reckoned stays as it was reported.
        sumResample(0, 30, 1)(
            toUInt64(if(becomes = 'unverifiable', reported_level, becomes) = 'PRECISE'), run_group
        ) AS under
    FROM ({judged}) AS j
    WHERE {filter}
    GROUP BY
        tenant, service, language, category, model_version, index_version, reranker_version,
        chunker_version, retry, is_rank, used
)
ORDER BY fields, used
