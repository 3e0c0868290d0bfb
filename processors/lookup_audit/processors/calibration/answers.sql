-- What became of lookups: the newest outcome of each, with its claims and how many of them cite a
-- chunk that was selected in one of the outcome's lookups and has a source_url.
-- Parameters: ids (a JSON array of event ids), tenant ('' is any).
WITH
    decided AS (
        SELECT
            tenant, event_id,
            argMax(
                (action, lookup_event_ids, cited),
                (occurred_at, outcome_id)
            ) AS outcome
        FROM
        (
            SELECT
                tenant, occurred_at, outcome_id, action, lookup_event_ids,
                claims.cited_chunk_ids AS cited,
                arrayJoin(lookup_event_ids) AS event_id
            FROM audit_store.outcomes
            WHERE
                ({tenant:String} = '' OR tenant = {tenant:String})
                AND hasAny(lookup_event_ids, JSONExtract({ids:String}, 'Array(String)'))
        )
        WHERE has(JSONExtract({ids:String}, 'Array(String)'), event_id)
        GROUP BY tenant, event_id
    ),
    used AS (
        SELECT DISTINCT tenant, event_id, arrayJoin(outcome.2) AS lookup_id FROM decided
    ),
    citable AS (
        SELECT
            u.tenant AS tenant, u.event_id AS event_id, groupUniqArrayArray(l.chunks) AS chunks
        FROM used AS u
        INNER JOIN
        (
            SELECT
                tenant, event_id,
                arrayFilter(
                    (chunk, url) -> url != '' AND has(selected_chunk_ids, chunk),
                    candidates.chunk_id, candidates.source_url
                ) AS chunks
            FROM audit_store.lookups
            WHERE id_hash IN (SELECT cityHash64('lookup', tenant, lookup_id) FROM used)
        ) AS l ON l.tenant = u.tenant AND l.event_id = u.lookup_id
        GROUP BY u.tenant, u.event_id
    )
SELECT
    d.tenant AS tenant, d.event_id AS event_id,
    d.outcome.1 = 'refused' AS refused,
    length(d.outcome.3) AS claims,
    arrayCount(cited -> hasAny(cited, c.chunks), d.outcome.3) AS supported_claims
FROM decided AS d
LEFT JOIN citable AS c ON c.tenant = d.tenant AND c.event_id = d.event_id
