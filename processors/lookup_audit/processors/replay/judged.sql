-- One row a lookup: the level it has (was) and the level under {ruleset:String} (becomes), both
-- 'unverifiable' where there is none. The same rule as recompute.sql, over the columns of the
-- candidate that decides.
WITH
    JSONExtractString({ruleset:String}, 'rule') AS rule,
    JSONExtractFloat({ruleset:String}, 'max_l2_distance') AS max_l2,
    JSONExtractFloat({ruleset:String}, 'highly_relevant_threshold') AS high,
    JSONExtractFloat({ruleset:String}, 'reference_threshold') AS low,
    JSONExtractString({ruleset:String}, 'distance_metric') AS metric,
    JSONExtractBool({ruleset:String}, 'normalized') AS normalized,
    JSONExtractString({ruleset:String}, 'rank_fallback') AS fallback,
    multiIf(
        metric = 'l2_squared', sqrt(best_distance),
        metric = 'cosine_distance', sqrt(2 * best_distance),
        best_distance
    ) AS l2,
    -- No two vectors are this far apart.
    best_distance > 2 AND (
        (metric = 'cosine_distance' AND best_distance > 2 + 1e-6)
        OR (normalized AND l2 > 2 + 1e-6)
    ) AS impossible,
    -- Declared plain, but only as a square does it fit the cosine.
    ifNull(
        normalized AND metric = 'l2'
        AND abs(best_similarity - (1 - best_distance / 2)) <= 1e-3
        AND abs(best_similarity - (1 - best_distance * best_distance / 2)) > 1e-3,
        false
    ) AS squared
SELECT
    tenant, service, mode, model_version, index_version, reranker_version, chunker_version,
    category_filter, query_language, unfiltered_retry, occurred_at, event_id, run_id, id_hash,
    reported_level, ruleset_id, stated_ruleset_id, quality_basis, level_mismatch,
    quality_score AS quality_was,
    toLowCardinality(ifNull(recomputed_level, 'unverifiable')) AS was,
    if(
        mode NOT IN ('dense', 'hybrid') OR best_place = 0, NULL,
        multiIf(
            best_distance IS NOT NULL,
                if(impossible OR squared, NULL, least(greatest(1 - l2 / max_l2, 0), 1)),
            mode != 'hybrid' OR best_rank IS NULL, NULL,
            fallback = 'reciprocal', 1 / best_rank,
            greatest(0, 1 - (best_rank - 1) / candidate_count)
        )
    ) AS quality,
    rule != 'l0-hint/1' OR best_l0_hit AS may_be_precise,
    multiIf(
        mode NOT IN ('dense', 'hybrid'), 'unverifiable',
        -- What a source could not tell is not recomputed from what it did.
        has(degradations, 'candidates_unknown'), 'unverifiable',
        kept_count = 0, 'NONE',
        quality IS NULL, 'unverifiable',
        has(degradations, 'documents_missing') AND ifNull(best_rank != 1, true), 'unverifiable',
        has(degradations, 'mode_inferred') AND best_distance IS NULL, 'unverifiable',
        quality >= high, if(may_be_precise, 'PRECISE', 'HIGHLY_RELEVANT'),
        quality >= low, 'REFERENCE',
        'NONE'
    ) AS becomes
FROM audit_store.lookups
-- only
WHERE occurred_at >= {since:DateTime64(6, 'UTC')} AND occurred_at < {until:DateTime64(6, 'UTC')}
    AND {tenant:String} IN ('', tenant)
