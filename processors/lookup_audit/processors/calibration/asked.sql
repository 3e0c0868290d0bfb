-- The lookups that may have asked a gold question: a digest of the letters that no case folding
-- changes narrows the search, the exact comparison of the text follows outside.
-- Parameters: digests (eight hex digits each, end to end), tenant, model_version, mode ('' is any), since.
SELECT
    tenant, event_id, service, occurred_at, mode, model_version,
    query_text, top_k, ruleset_id, selected_chunk_ids,
    has(unverifiable, 'selection:no_selection') AS no_selection, length(candidates.chunk_id) AS candidate_count,
    arrayMap(
        i -> (
            candidates.chunk_id[i], candidates.original_rank[i], candidates.dense_distance[i],
            candidates.similarity_score[i], candidates.source_url[i], candidates.l0_hit[i]
        ),
        arrayFilter(i -> candidates.kept[i], arrayEnumerate(candidates.kept))
    ) AS kept
FROM audit_store.lookups
WHERE
    ({tenant:String} = '' OR tenant = {tenant:String})
    AND ({model_version:String} = '' OR model_version = {model_version:String})
    AND ({mode:String} = '' OR mode = {mode:String})
    AND occurred_at >= parseDateTime64BestEffort({since:String}, 6, 'UTC')
    AND query_text != ''
    AND lower(substring(hex(MD5(replaceRegexpAll(
        normalizeUTF8NFKD(replaceAll(lowerUTF8(normalizeUTF8NFKC(query_text)), 'ß', 'ss')),
        '[^0-9a-z\\p{Lo}]', ''
    ))), 1, 8)) IN (
        SELECT substring({digests:String}, 8 * number + 1, 8)
        FROM numbers(intDiv(length({digests:String}), 8))
    )
ORDER BY tenant, occurred_at, event_id
