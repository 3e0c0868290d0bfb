-- The score band and what a small move of a threshold would do, per model version, mode and basis.
-- Each lookup is held against the thresholds of the ruleset that its verdict was computed by.
-- Parameters: tenant, model_version, mode ('' is any), since, shift.
WITH ruleset AS (
    SELECT
        ruleset_id,
        any(JSONExtractFloat(content, 'highly_relevant_threshold')) AS high,
        any(JSONExtractFloat(content, 'reference_threshold')) AS low
    FROM audit_store.rulesets
    GROUP BY ruleset_id
)
SELECT
    model_version, mode, basis,
    count() AS lookups,
    countIf(q IS NOT NULL) AS scored,
    min(q) AS lowest,
    quantileExact(0.05)(q) AS p5,
    quantileExact(0.95)(q) AS p95,
    max(q) AS highest,
    countIf(q IS NOT NULL AND known) AS held,
    countIf(known AND q >= high) AS precise,
    countIf(known AND q < high AND q >= low) AS reference,
    countIf(known AND q >= high AND q < high + {shift:Float64}) AS high_up,
    countIf(known AND q < high AND q >= high - {shift:Float64}) AS high_down,
    countIf(known AND q < high AND q >= low AND q < low + {shift:Float64}) AS low_up,
    countIf(known AND q < high AND q < low AND q >= low - {shift:Float64}) AS low_down,
    countIf(known AND (
        (q >= high AND q < high + {shift:Float64})
        OR (q < high AND q >= high - {shift:Float64})
        OR (q < high AND q >= low AND q < low + {shift:Float64})
        OR (q < high AND q < low AND q >= low - {shift:Float64})
    )) AS flips,
    arraySort(groupUniqArrayIf(8)((high, low), known)) AS thresholds
FROM
(
    SELECT
        l.model_version AS model_version, l.mode AS mode, l.quality_basis AS basis,
        l.quality_score AS q, r.high AS high, r.low AS low, r.ruleset_id != '' AS known
    FROM audit_store.lookups AS l
    LEFT JOIN ruleset AS r ON r.ruleset_id = l.ruleset_id
    WHERE
        ({tenant:String} = '' OR l.tenant = {tenant:String})
        AND ({model_version:String} = '' OR l.model_version = {model_version:String})
        AND ({mode:String} = '' OR l.mode = {mode:String})
        AND l.occurred_at >= parseDateTime64BestEffort({since:String}, 6, 'UTC')
)
GROUP BY model_version, mode, basis
ORDER BY model_version, mode, basis
