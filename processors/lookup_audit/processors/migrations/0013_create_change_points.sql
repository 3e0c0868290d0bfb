-- When something else began to serve a stratum: a ruleset, or a version of the model, index,
-- reranker or chunker. Versions that run side by side are one change, when the new one is first
-- seen. One that was gone (for a whole day and a thousand lookups of others) and returns, as after
-- a rollback, is a change again. The first value of a stratum is none, nor is silence about it.
CREATE OR REPLACE VIEW audit.change_points AS
WITH
    served AS (
        SELECT
            tenant, service, mode, toDate(occurred_at) AS day,
            ruleset_id, stated_ruleset_id, model_version, index_version, reranker_version,
            chunker_version,
            min(occurred_at) AS first,
            -- One number to compare by: a pair would take four times as long.
            argMin(
                l.event_id,
                bitShiftLeft(toUInt128(toUnixTimestamp64Micro(l.occurred_at)), 64) + l.id_hash
            ) AS event_id,
            count() AS n
        FROM audit_store.lookups AS l
        GROUP BY
            tenant, service, mode, day, ruleset_id, stated_ruleset_id, model_version,
            index_version, reranker_version, chunker_version
    ),
    -- One row a stratum, subject, value and day.
    present AS (
        SELECT
            tenant, service, mode, subject.1 AS what, subject.2 AS value, day,
            min(served.first) AS first,
            argMin(served.event_id, (served.first, served.event_id)) AS event_id,
            sum(served.n) AS n
        FROM served
        ARRAY JOIN [
            ('ruleset', ruleset_id),
            -- What the service says of itself is a change of its own only where it differs.
            ('stated_ruleset', if(stated_ruleset_id = ruleset_id, '', stated_ruleset_id)),
            ('model', model_version),
            ('index', index_version),
            ('reranker', reranker_version),
            ('chunker', chunker_version)
        ] AS subject
        WHERE value != ''
        GROUP BY tenant, service, mode, what, value, day
    ),
    -- All lookups of the stratum and subject up to the end of each day.
    totals AS (
        SELECT
            tenant, service, mode, what, day,
            sum(sum(n)) OVER (PARTITION BY tenant, service, mode, what ORDER BY day) AS upto,
            upto - sum(n) AS before_day
        FROM present
        GROUP BY tenant, service, mode, what, day
    ),
    seen AS (
        SELECT
            p.tenant AS tenant, p.service AS service, p.mode AS mode, p.what AS what,
            p.value AS value, p.day AS day, p.first AS first, p.event_id AS event_id,
            row_number() OVER spells AS spell,
            lagInFrame(p.day) OVER spells AS last_day,
            t.before_day - lagInFrame(t.upto) OVER spells AS others
        FROM present AS p
        INNER JOIN totals AS t
            ON p.tenant = t.tenant AND p.service = t.service AND p.mode = t.mode
                AND p.what = t.what AND p.day = t.day
        WINDOW spells AS (
            PARTITION BY p.tenant, p.service, p.mode, p.what, p.value ORDER BY p.day
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        )
    ),
    began AS (
        SELECT
            tenant, service, mode, what, value, first, event_id,
            row_number() OVER changes AS place,
            lagInFrame(value) OVER changes AS predecessor
        FROM seen
        WHERE spell = 1 OR (day > last_day + 1 AND others >= 1000)
        WINDOW changes AS (
            PARTITION BY tenant, service, mode, what ORDER BY first, value
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        )
    )
SELECT
    tenant, service, mode, first AS at, what, predecessor AS before, value AS after, event_id
FROM began
WHERE place > 1 AND predecessor != value;
