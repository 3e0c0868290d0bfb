WITH
    ruleset AS (
        SELECT
            ruleset_id,
            any(JSONExtractString(content, 'rule')) AS rule,
            any(JSONExtractFloat(content, 'max_l2_distance')) AS max_l2,
            any(JSONExtractFloat(content, 'highly_relevant_threshold')) AS high,
            any(JSONExtractFloat(content, 'reference_threshold')) AS low,
            any(JSONExtractString(content, 'distance_metric')) AS metric,
            any(JSONExtractBool(content, 'normalized')) AS normalized,
            any(JSONExtractString(content, 'rank_fallback')) AS fallback
        FROM audit_store.rulesets
        GROUP BY ruleset_id
    ),
    -- The kept candidate with the smallest rank, the first of equals; of several candidates, one
    -- without a rank could be any.
    best AS (
        SELECT
            tenant, event_id, mode, recomputed_level, ruleset_id, degradations,
            arrayFilter(i -> candidates.kept[i], arrayEnumerate(candidates.kept)) AS kept,
            arrayMap(i -> candidates.original_rank[i], kept) AS ranks,
            length(candidates.kept) AS candidate_count,
            multiIf(
                length(kept) = 1, kept[1],
                arrayExists(r -> isNull(r), ranks), 0,
                kept[indexOf(ranks, arrayMin(ranks))]
            ) AS i,
            candidates.dense_distance[i] AS distance,
            candidates.similarity_score[i] AS similarity,
            candidates.original_rank[i] AS rank,
            candidates.l0_hit[i] AS hit
        FROM audit_store.lookups
    ),
    reckoned AS (
        SELECT
            b.*, r.* EXCEPT ruleset_id,
            multiIf(
                r.metric = 'l2_squared', sqrt(b.distance),
                r.metric = 'cosine_distance', sqrt(2 * b.distance),
                b.distance
            ) AS l2,
            -- No two vectors are this far apart.
            b.distance > 2 AND (
                (r.metric = 'cosine_distance' AND b.distance > 2 + 1e-6)
                OR (r.normalized AND l2 > 2 + 1e-6)
            ) AS impossible,
            -- Declared plain, but only as a square does it fit the cosine.
            ifNull(
                r.normalized AND r.metric = 'l2'
                AND abs(b.similarity - (1 - b.distance / 2)) <= 1e-3
                AND abs(b.similarity - (1 - b.distance * b.distance / 2)) > 1e-3,
                false
            ) AS squared,
            multiIf(
                b.distance IS NOT NULL,
                    if(impossible OR squared, NULL, least(greatest(1 - l2 / r.max_l2, 0), 1)),
                b.mode != 'hybrid' OR b.rank IS NULL, NULL,
                r.fallback = 'reciprocal', 1 / b.rank,
                greatest(0, 1 - (b.rank - 1) / b.candidate_count)
            ) AS quality
        FROM best AS b
        LEFT JOIN ruleset AS r ON r.ruleset_id = b.ruleset_id
    )
SELECT
    tenant, event_id, recomputed_level AS stored_level, quality,
    multiIf(
        mode NOT IN ('dense', 'hybrid'), NULL,
        -- What a source could not tell is not recomputed from what it did.
        has(degradations, 'candidates_unknown'), NULL,
        empty(kept), 'NONE',
        ruleset_id = '' OR i = 0 OR quality IS NULL, NULL,
        has(degradations, 'documents_missing') AND ifNull(rank != 1, true), NULL,
        has(degradations, 'mode_inferred') AND distance IS NULL, NULL,
        quality >= high, if(rule = 'l0-hint/1' AND NOT hit, 'HIGHLY_RELEVANT', 'PRECISE'),
        quality >= low, 'REFERENCE',
        'NONE'
    ) AS sql_level
FROM reckoned
