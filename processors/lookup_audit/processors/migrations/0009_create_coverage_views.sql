-- One row an outcome and a lookup of its run: those the outcome refers to, and those that only
-- share its run_id. A lookup that is not stored yet has no row.
CREATE OR REPLACE VIEW audit_store.outcome_lookups AS
SELECT
    o.tenant AS tenant, o.outcome_id AS outcome_id, true AS referred,
    l.event_id AS event_id, l.occurred_at AS occurred_at, l.mode AS mode,
    l.model_version AS model_version, l.reported_level AS reported_level,
    l.evidence_status AS evidence_status, l.selected_chunk_ids AS selected_chunk_ids,
    l.chunk_ids AS chunk_ids, l.source_urls AS source_urls, l.kept AS kept
FROM (
    SELECT
        tenant, event_id, occurred_at, mode, model_version, reported_level, evidence_status,
        selected_chunk_ids, candidates.chunk_id AS chunk_ids,
        candidates.source_url AS source_urls, candidates.kept AS kept
    FROM audit_store.lookups
    WHERE id_hash IN (
        SELECT cityHash64('lookup', tenant, arrayJoin(lookup_event_ids)) FROM audit_store.outcomes
    )
) AS l
INNER JOIN (
    SELECT tenant, outcome_id, arrayJoin(arrayDistinct(lookup_event_ids)) AS event_id
    FROM audit_store.outcomes
) AS o ON l.tenant = o.tenant AND l.event_id = o.event_id
UNION ALL
SELECT
    o.tenant, o.outcome_id, false, l.event_id, l.occurred_at, l.mode, l.model_version,
    l.reported_level, l.evidence_status, l.selected_chunk_ids, l.chunk_ids, l.source_urls, l.kept
FROM (
    SELECT
        tenant, run_id, event_id, occurred_at, mode, model_version, reported_level,
        evidence_status, selected_chunk_ids, candidates.chunk_id AS chunk_ids,
        candidates.source_url AS source_urls, candidates.kept AS kept
    FROM audit_store.lookups
    WHERE run_id IN (SELECT run_id FROM audit_store.outcomes WHERE run_id != '')
) AS l
INNER JOIN (
    SELECT tenant, outcome_id, run_id, lookup_event_ids
    FROM audit_store.outcomes
    WHERE run_id != ''
) AS o ON l.tenant = o.tenant AND l.run_id = o.run_id
WHERE NOT has(o.lookup_event_ids, l.event_id);

-- The stratum of an outcome. Lookups of several modes or versions make a stratum of their own,
-- such as dense+hybrid, so that no figure pools them; missing counts lookups not stored (yet).
CREATE OR REPLACE VIEW audit_store.outcome_strata AS
SELECT
    o.tenant AS tenant, o.outcome_id AS outcome_id, o.run_id AS run_id,
    o.occurred_at AS occurred_at, toDate(o.occurred_at) AS day, o.action AS action,
    o.stance AS stance, o.lookup_event_ids AS lookup_event_ids,
    s.mode AS mode, s.model_version AS model_version,
    length(arrayDistinct(o.lookup_event_ids)) - s.stored AS missing
FROM audit_store.outcomes AS o
LEFT JOIN (
    SELECT
        tenant, outcome_id, count() AS stored,
        arrayStringConcat(arraySort(groupUniqArray(mode)), '+') AS mode,
        arrayStringConcat(arraySort(groupUniqArray(model_version)), '+') AS model_version
    FROM audit_store.outcome_lookups
    WHERE referred
    GROUP BY tenant, outcome_id
) AS s ON s.tenant = o.tenant AND s.outcome_id = o.outcome_id;

-- What the lookups of a run say of each chunk id and each url, at best. Nearness to support:
-- 4 selected in a lookup the outcome refers to, with a link; 3 the same without a link; 2 kept in
-- the run; 1 retrieved and dropped. Returned: kept or selected by a lookup that found evidence.
CREATE OR REPLACE VIEW audit_store.outcome_evidence AS
SELECT
    tenant, outcome_id, thing.1 AS kind, thing.2 AS name,
    max(thing.3) AS nearness, max(thing.4) AS returned
FROM (
    SELECT
        tenant, outcome_id,
        arrayJoin(arrayConcat(
            arrayMap(
                (chunk, url, is_kept) -> (
                    'chunk', chunk,
                    multiIf(
                        referred AND has(selected_chunk_ids, chunk), if(url = '', 3, 4),
                        is_kept OR has(selected_chunk_ids, chunk), 2,
                        1
                    ),
                    evidence_status != 'NO_EVIDENCE'
                        AND (is_kept OR has(selected_chunk_ids, chunk))
                ),
                chunk_ids, source_urls, kept
            ),
            arrayMap(
                (chunk, url, is_kept) -> (
                    'url', url,
                    multiIf(
                        referred AND has(selected_chunk_ids, chunk), 4,
                        is_kept OR has(selected_chunk_ids, chunk), 2,
                        1
                    ),
                    evidence_status != 'NO_EVIDENCE'
                        AND (is_kept OR has(selected_chunk_ids, chunk))
                ),
                chunk_ids, source_urls, kept
            ),
            -- Selected, and no candidate: a fault of the event, but the agent was given it.
            arrayMap(
                chunk -> (
                    'chunk', chunk, if(referred, 3, 2), evidence_status != 'NO_EVIDENCE'
                ),
                arrayFilter(chunk -> NOT has(chunk_ids, chunk), selected_chunk_ids)
            )
        )) AS thing
    FROM audit_store.outcome_lookups
)
WHERE name != ''
GROUP BY tenant, outcome_id, kind, name;

-- One row a claim of an answer. A claim counts as supported by what is nearest to support among
-- all it cites; never_returned are its citations that no lookup of the run returned.
CREATE OR REPLACE VIEW audit_store.claim_support AS
WITH
    claim AS (
        SELECT
            tenant, outcome_id, claim_number, claim_id, text, cited_chunk_ids, cited_source_urls
        FROM audit_store.outcomes
        ARRAY JOIN
            arrayEnumerate(claims.claim_id) AS claim_number,
            claims.claim_id AS claim_id,
            claims.text AS text,
            claims.cited_chunk_ids AS cited_chunk_ids,
            claims.cited_source_urls AS cited_source_urls
        WHERE action = 'answered'
    ),
    citation AS (
        SELECT
            tenant, outcome_id, claim_number, empty(cited_chunk_ids) AS by_url_only,
            arrayJoin(arrayConcat(
                arrayMap(name -> ('chunk', name), cited_chunk_ids),
                arrayMap(name -> ('url', name), cited_source_urls)
            )) AS cited,
            cited.1 AS kind, cited.2 AS name
        FROM claim
    ),
    weighed AS (
        SELECT
            c.tenant AS tenant, c.outcome_id AS outcome_id, c.claim_number AS claim_number,
            max(e.nearness) AS nearness,
            arraySort(groupUniqArrayIf(
                c.name, NOT e.returned AND (c.kind = 'chunk' OR c.by_url_only)
            )) AS never_returned
        FROM citation AS c
        LEFT JOIN audit_store.outcome_evidence AS e
            ON e.tenant = c.tenant AND e.outcome_id = c.outcome_id AND e.kind = c.kind
            AND e.name = c.name
        WHERE c.name != ''
        GROUP BY c.tenant, c.outcome_id, c.claim_number
    )
SELECT
    c.tenant AS tenant, c.outcome_id AS outcome_id, c.claim_number AS claim_number,
    c.claim_id AS claim_id, c.text AS text, o.run_id AS run_id, o.occurred_at AS occurred_at,
    o.day AS day, o.mode AS mode, o.model_version AS model_version,
    o.lookup_event_ids AS lookup_event_ids, o.missing AS missing,
    w.claim_number != 0 AS cites,
    w.nearness AS nearness, w.never_returned AS never_returned,
    c.cited_chunk_ids AS cited_chunk_ids, c.cited_source_urls AS cited_source_urls
FROM claim AS c
INNER JOIN audit_store.outcome_strata AS o
    ON o.tenant = c.tenant AND o.outcome_id = c.outcome_id
LEFT JOIN weighed AS w
    ON w.tenant = c.tenant AND w.outcome_id = c.outcome_id AND w.claim_number = c.claim_number;

-- A claim that is not supported by what is stored says why: its nearest miss. While a lookup of
-- the outcome is missing nothing is held against a claim that cites something.
CREATE OR REPLACE VIEW audit.claims AS
SELECT
    tenant, outcome_id, claim_number, claim_id, text, run_id, occurred_at, day, mode,
    model_version, (cites AND nearness = 4)::Bool AS supported,
    multiIf(
        supported, '',
        NOT cites, 'no_citation',
        missing > 0, 'lookup_missing',
        nearness = 3, 'no_link',
        nearness = 2, 'unselected_chunk',
        nearness = 1, 'dropped_chunk',
        'unknown_chunk'
    ) AS reason,
    cited_chunk_ids, cited_source_urls, never_returned, lookup_event_ids
FROM audit_store.claim_support;

-- One row an answer. Coverage has no value without claims, or while a lookup is missing on which
-- a claim may rest.
CREATE OR REPLACE VIEW audit.answer_coverage AS
SELECT
    o.tenant AS tenant, o.outcome_id AS outcome_id, o.run_id AS run_id,
    o.occurred_at AS occurred_at, o.day AS day, o.mode AS mode,
    o.model_version AS model_version, c.claims AS claims, c.supported AS supported,
    c.unverifiable AS unverifiable,
    if(c.claims = 0 OR c.unverifiable > 0, NULL, c.supported / c.claims) AS coverage
FROM audit_store.outcome_strata AS o
LEFT JOIN (
    SELECT
        tenant, outcome_id, count() AS claims, countIf(supported) AS supported,
        countIf(reason = 'lookup_missing') AS unverifiable
    FROM audit.claims
    GROUP BY tenant, outcome_id
) AS c ON c.tenant = o.tenant AND c.outcome_id = o.outcome_id
WHERE o.action = 'answered';

-- Coverage of a day is over the claims that can be verified; modes are never pooled.
CREATE OR REPLACE VIEW audit.coverage_daily AS
SELECT
    day, tenant, model_version, mode, count() AS answers, sum(claims) AS claims,
    sum(supported) AS supported, sum(unverifiable) AS unverifiable,
    if(claims = unverifiable, NULL, supported / (claims - unverifiable)) AS coverage
FROM audit.answer_coverage
GROUP BY day, tenant, model_version, mode;

-- One row a selected chunk: is it known, kept, of a layer above low, and said only once? Two
-- chunks with the same document, version, url and breadcrumb say the same. Only the raw event has
-- the breadcrumb, so it is read for the few lookups where it decides.
CREATE OR REPLACE VIEW audit.selections AS
WITH
    picked AS (
        SELECT
            tenant, event_id, occurred_at, service, mode, model_version, id_hash,
            selected_chunk_ids, context_limit_tokens, context_used_tokens,
            -- The place of each selected chunk: of a chunk listed twice, the copy that was kept.
            arrayMap(
                chunk -> if(
                    arrayFirstIndex(
                        (id, is_kept) -> id = chunk AND is_kept,
                        candidates.chunk_id, candidates.kept
                    ) AS in_kept > 0,
                    in_kept,
                    indexOf(candidates.chunk_id, chunk)
                ),
                selected_chunk_ids
            ) AS places,
            arrayMap(i -> candidates.document_id[i], places) AS document_ids,
            arrayMap(i -> candidates.document_version[i], places) AS versions,
            arrayMap(i -> candidates.source_url[i], places) AS urls,
            arrayMap(i -> candidates.kept[i], places) AS kept,
            arrayMap(i -> candidates.layer[i], places) AS layers,
            arrayMap(i -> candidates.reported_layer[i], places) AS reported_layers,
            arrayMap(i -> candidates.tokens[i], places) AS tokens,
            arrayMap((d, v, u) -> (d, v, u), document_ids, versions, urls) AS sources,
            length(arrayDistinct(arrayFilter(s -> s.1 != '', sources)))
                < length(arrayFilter(s -> s.1 != '', sources)) AS same_source
        FROM audit_store.lookups
        WHERE notEmpty(selected_chunk_ids)
    ),
    breadcrumb AS (
        SELECT
            tenant, event_id,
            arrayMap(
                candidate -> JSONExtractString(candidate, 'breadcrumb'),
                JSONExtractArrayRaw(raw, arrayFirst(
                    name -> JSONType(raw, name) = 'Array',
                    ['candidates', 'evidence_blocks', 'evidenceBlocks']
                ))
            ) AS breadcrumbs
        FROM audit_store.lookups
        WHERE id_hash IN (SELECT id_hash FROM picked WHERE same_source)
    ),
    weighed AS (
        SELECT
            p.tenant AS tenant, p.event_id AS event_id, p.occurred_at AS occurred_at,
            p.service AS service, p.mode AS mode, p.model_version AS model_version,
            p.selected_chunk_ids AS chunk_ids, p.places AS places,
            p.document_ids AS document_ids, p.versions AS versions, p.urls AS urls,
            p.kept AS kept, p.layers AS layers, p.reported_layers AS reported_layers,
            p.tokens AS tokens, p.context_limit_tokens AS context_limit_tokens,
            p.context_used_tokens AS context_used_tokens,
            arrayMap(
                (chunk, source, i) -> if(
                    source.1 = '' OR (source.3 = '' AND b.breadcrumbs[i] = ''),
                    ('', '', '', chunk),
                    (source.1, source.2, source.3, b.breadcrumbs[i])
                ),
                chunk_ids, p.sources, places
            ) AS citations,
            arrayMap(
                (chunk, citation, n) ->
                    indexOf(chunk_ids, chunk) < n OR indexOf(citations, citation) < n,
                chunk_ids, citations, arrayEnumerate(chunk_ids)
            ) AS repeated,
            arraySum(arrayMap(
                (chunk, n, t) -> if(indexOf(chunk_ids, chunk) < n, 0, ifNull(t, 0)),
                chunk_ids, arrayEnumerate(chunk_ids), tokens
            )) AS selected_tokens
        FROM picked AS p
        LEFT JOIN breadcrumb AS b ON b.tenant = p.tenant AND b.event_id = p.event_id
    )
SELECT
    tenant, event_id, occurred_at, service, mode, model_version, position, chunk_id,
    document_id, document_version, source_url, layer, chunk_tokens AS tokens,
    arrayFilter(finding -> finding != '', [
        if(place = 0, 'unknown_chunk', ''),
        if(place > 0 AND NOT is_kept, 'dropped_chunk', ''),
        if(layer = 'low' OR (layer = '' AND reported_layer = 'low'), 'low_layer', ''),
        if(place > 0 AND layer = '' AND reported_layer != 'low', 'unknown_layer', ''),
        if(is_repeated, 'duplicate', '')
    ]) AS findings,
    selected_tokens, context_used_tokens, context_limit_tokens,
    ifNull(
        greatest(selected_tokens, ifNull(context_used_tokens, 0)) > context_limit_tokens, false
    )::Bool AS over_budget
FROM weighed
ARRAY JOIN
    arrayEnumerate(chunk_ids) AS position, chunk_ids AS chunk_id, places AS place,
    document_ids AS document_id, versions AS document_version, urls AS source_url,
    layers AS layer, reported_layers AS reported_layer, tokens AS chunk_tokens,
    kept AS is_kept, repeated AS is_repeated;
