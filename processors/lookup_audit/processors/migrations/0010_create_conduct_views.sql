-- One row an occasion on which an agent could go wrong, and whether it did:
-- wasted_lookup: every lookup of a run that has a query;
-- over_confident: every outcome whose lookups all reported NONE, the run's last one too;
-- fabricated_citation, unsupported_claim: every claim that cites something.
-- An outcome of which a lookup is missing is no occasion: it cannot be verified.
CREATE OR REPLACE VIEW audit_store.conduct_occasions AS
WITH
    asked AS (
        SELECT
            tenant, run_id, event_id, occurred_at, mode, model_version, reported_level, id_hash,
            replaceRegexpAll(
                replaceRegexpAll(
                    lowerUTF8(normalizeUTF8NFKC(query_text)),
                    '[\\p{Z}\\t-\\r\\x1c-\\x1f\\x{85}]+', ' '
                ),
                '^[ ¿¡]+|[ .,;:!?؟。、]+$', ''
            ) AS query
        FROM audit_store.lookups
        WHERE query_text != '' AND query != ''
    ),
    -- A lookup is of the run it names, and of that of each outcome that refers to it.
    in_run AS (
        SELECT
            tenant, event_id, occurred_at, mode, model_version, reported_level,
            run_id AS run, '' AS outcome_id,
            sipHash128(tenant, run_id, outcome_id, mode, query) AS same_query
        FROM asked
        WHERE run_id != ''
        UNION ALL
        SELECT
            l.tenant, l.event_id, l.occurred_at, l.mode, l.model_version, l.reported_level,
            o.run_id AS run, if(o.run_id = '', o.outcome_id, '') AS outcome_id,
            sipHash128(l.tenant, run, outcome_id, l.mode, l.query)
        FROM (
            SELECT * FROM asked WHERE id_hash IN (
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
    first_precise AS (
        SELECT same_query, min((occurred_at, event_id)) AS earlier
        FROM in_run
        WHERE reported_level = 'PRECISE'
        GROUP BY same_query
    ),
    lookup_occasion AS (
        SELECT
            i.tenant AS tenant, i.event_id AS event_id,
            i.occurred_at AS occurred_at, i.mode AS mode,
            i.model_version AS model_version,
            f.earlier.2 != '' AND f.earlier.1 < i.occurred_at AS is_repeat,
            -- The repeat first, then the run of that name, so that one row a lookup remains.
            (NOT is_repeat, i.run = '', i.run, i.outcome_id, f.earlier.2) AS choice
        FROM in_run AS i
        LEFT JOIN first_precise AS f ON f.same_query = i.same_query
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
    'wasted_lookup' AS finding, tenant, chosen.3 AS run_id, event_id, chosen.4 AS outcome_id,
    toUInt64(0) AS claim_number, at AS occurred_at, toDate(at) AS day, the_mode AS mode,
    the_version AS model_version, NOT chosen.1 AS found,
    if(found, toJSONString(map('earlier_precise_lookup', chosen.5)), '') AS evidence
FROM (
    SELECT
        tenant, event_id, any(occurred_at) AS at, any(mode) AS the_mode,
        any(model_version) AS the_version, min(choice) AS chosen
    FROM lookup_occasion
    GROUP BY tenant, event_id
)
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
    'fabricated_citation', tenant, run_id, lookup_event_ids[-1], outcome_id, claim_number,
    occurred_at, day, mode, model_version, notEmpty(never_returned) AS found,
    if(found, toJSONString(map('never_returned', never_returned, 'claim', [text])), '')
FROM audit_store.claim_support
WHERE cites AND missing = 0
UNION ALL
SELECT
    'unsupported_claim', tenant, run_id, lookup_event_ids[-1], outcome_id, claim_number,
    occurred_at, day, mode, model_version, nearness = 3 AS found,
    if(found, toJSONString(map('without_link', cited_chunk_ids, 'claim', [text])), '')
FROM audit_store.claim_support
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
