-- One row an occasion on which an agent could go wrong, and whether it did:
-- wasted_lookup: every lookup of a run that has a query;
-- over_confident: every outcome whose lookups all reported NONE, the run's last one too;
-- fabricated_citation, unsupported_claim: every claim that cites something.
-- An outcome of which a lookup is missing is no occasion: it cannot be verified.
CREATE OR REPLACE VIEW audit_store.conduct_occasions AS
WITH
    -- A lookup is of the run it names, and of that of each outcome that refers to it; modes are
    -- different rulers, so what another mode found makes no repeat.
    member AS (
        SELECT
            tenant, event_id, occurred_at, reported_level, query_text, run_id AS run,
            '' AS outcome_id, sipHash128(tenant, run, outcome_id, mode) AS run_key
        FROM audit_store.lookups
        WHERE run_id != '' AND query_text != ''
        UNION ALL
        SELECT
            l.tenant, l.event_id, l.occurred_at, l.reported_level, l.query_text, o.run_id AS run,
            if(o.run_id = '', o.outcome_id, '') AS outcome_id,
            sipHash128(l.tenant, run, outcome_id, l.mode)
        FROM (
            SELECT tenant, event_id, occurred_at, reported_level, query_text, run_id, mode
            FROM audit_store.lookups
            WHERE query_text != '' AND id_hash IN (
                SELECT cityHash64('lookup', tenant, arrayJoin(lookup_event_ids))
                FROM audit_store.outcomes
            )
        ) AS l
        INNER JOIN (
            SELECT
                tenant, run_id, outcome_id, arrayJoin(arrayDistinct(lookup_event_ids)) AS event_id
            FROM audit_store.outcomes
        ) AS o ON o.tenant = l.tenant AND o.event_id = l.event_id
        WHERE l.run_id != o.run_id OR o.run_id = ''
    ),
    -- Queries are brought into one form only where a run can hold a repeat at all.
    asked AS (
        SELECT
            tenant, event_id, occurred_at, reported_level, run, outcome_id,
            replaceRegexpAll(
                replaceRegexpAll(
                    lowerUTF8(normalizeUTF8NFKC(query_text)),
                    '[\\p{Z}\\t-\\r\\x1c-\\x1f\\x{85}]+', ' '
                ),
                '^[ ¿¡]+|[ .,;:!?؟。、]+$', ''
            ) AS query,
            sipHash128(run_key, query) AS same_query
        FROM member
        WHERE run_key IN (
            SELECT run_key FROM member
            GROUP BY run_key
            HAVING count() > 1 AND countIf(reported_level = 'PRECISE') > 0
        ) AND query != ''
    ),
    first_precise AS (
        SELECT same_query, min((occurred_at, event_id)) AS earlier
        FROM asked
        WHERE reported_level = 'PRECISE'
        GROUP BY same_query
    ),
    -- One row a lookup; of several runs the one with a name counts.
    wasted AS (
        SELECT
            a.tenant AS tenant, a.event_id AS event_id,
            min((a.run = '', a.run, a.outcome_id, f.earlier.2)) AS chosen
        FROM asked AS a
        INNER JOIN first_precise AS f ON f.same_query = a.same_query
        WHERE f.earlier.1 < a.occurred_at
        GROUP BY a.tenant, a.event_id
    ),
    outcome_state AS (
        SELECT
            tenant, outcome_id,
            countIf(referred AND reported_level != 'NONE') AS above_none,
            max((occurred_at, event_id)) AS last_lookup,
            argMax(reported_level, (occurred_at, event_id)) AS last_level
        FROM audit_store.outcome_lookups
        GROUP BY tenant, outcome_id
    )
SELECT
    'wasted_lookup' AS finding, l.tenant AS tenant, if(found, w.chosen.2, l.run_id) AS run_id,
    l.event_id AS event_id, w.chosen.3 AS outcome_id, toUInt64(0) AS claim_number,
    l.occurred_at AS occurred_at, toDate(l.occurred_at) AS day, l.mode AS mode,
    l.model_version AS model_version, w.event_id != '' AS found,
    if(found, toJSONString(map('earlier_precise_lookup', w.chosen.4)), '') AS evidence
FROM (
    SELECT tenant, event_id, occurred_at, mode, model_version, run_id
    FROM audit_store.lookups
    WHERE query_text != '' AND (
        run_id != '' OR id_hash IN (
            SELECT cityHash64('lookup', tenant, arrayJoin(lookup_event_ids))
            FROM audit_store.outcomes
        )
    )
) AS l
LEFT JOIN wasted AS w ON w.tenant = l.tenant AND w.event_id = l.event_id
UNION ALL
SELECT
    'over_confident', o.tenant, o.run_id, s.last_lookup.2, o.outcome_id, 0, o.occurred_at, o.day,
    o.mode, o.model_version, o.action = 'answered' AND o.stance = 'firm' AS found,
    if(found, toJSONString(map('lookups', o.lookup_event_ids, 'last', [s.last_lookup.2])), '')
FROM audit_store.outcome_strata AS o
INNER JOIN outcome_state AS s ON s.tenant = o.tenant AND s.outcome_id = o.outcome_id
WHERE o.missing = 0 AND s.above_none = 0 AND s.last_level = 'NONE'
    AND (o.action = 'refused' OR o.stance != '')
UNION ALL
SELECT
    check.1, tenant, run_id, lookup_event_ids[-1], outcome_id, claim_number, occurred_at, day, mode,
    model_version, check.2 AS found,
    if(found, toJSONString(map(check.3, check.4, 'claim', [text])), '')
FROM audit_store.claim_support
ARRAY JOIN [
    ('fabricated_citation', notEmpty(never_returned), 'never_returned', never_returned),
    ('unsupported_claim', nearness = 3, 'without_link', cited_chunk_ids)
] AS check
WHERE cites AND missing = 0;

-- One row a finding, with what to look at. A lookup or a claim is found at most once by each check.
CREATE OR REPLACE VIEW audit.conduct_findings AS
SELECT
    tenant, run_id, finding, event_id, outcome_id, claim_number, mode, model_version, occurred_at,
    day, evidence
FROM audit_store.conduct_occasions
WHERE found;

-- Occasions, findings and their share. A rate without an occasion has no value.
CREATE OR REPLACE VIEW audit.conduct_daily AS
SELECT
    day, tenant, model_version, mode,
    countIf(finding = 'wasted_lookup') AS lookups_in_runs,
    countIf(finding = 'wasted_lookup' AND found) AS wasted_lookups,
    if(lookups_in_runs = 0, NULL, wasted_lookups / lookups_in_runs) AS wasted_lookup_rate,
    countIf(finding = 'over_confident') AS outcomes_on_none,
    countIf(finding = 'over_confident' AND found) AS over_confident,
    if(outcomes_on_none = 0, NULL, over_confident / outcomes_on_none) AS over_confident_rate,
    countIf(finding = 'fabricated_citation') AS citing_claims,
    countIf(finding = 'fabricated_citation' AND found) AS fabricated_citations,
    if(citing_claims = 0, NULL, fabricated_citations / citing_claims) AS fabricated_citation_rate,
    countIf(finding = 'unsupported_claim' AND found) AS unsupported_claims,
    if(citing_claims = 0, NULL, unsupported_claims / citing_claims) AS unsupported_claim_rate
FROM audit_store.conduct_occasions
GROUP BY day, tenant, model_version, mode;
