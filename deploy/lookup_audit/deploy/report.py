"""The headline: how often a high score was wrong against how often a low score was refused.

Figures are per model version and mode, since the modes' levels are on different rulers. A rate
over zero events has no value. Intervals are Wilson's at 95 % (Wilson 1927, JASA 22:209).
"""

from typing import Any

from lookup_audit.deploy.cli.options import print_table
from lookup_audit.processors.reading import Reader, rows

HEADLINE_SQL = """
WITH
    1.959964 AS z,
    counted AS (
        SELECT
            model_version,
            mode,
            count() AS lookups,
            countIf(cell = 'high_score_error') AS errors,
            countIf(level = 'PRECISE' AND answer IN ('wrong', 'partly', 'right')) AS judged_high,
            countIf(cell = 'low_score_refusal') AS refusals,
            countIf(level = 'NONE') AS low_with_outcome
        FROM audit.cells
        GROUP BY model_version, mode
    )
SELECT
    model_version,
    mode,
    lookups,
    errors,
    judged_high,
    if(judged_high = 0, NULL, errors / judged_high) AS error_rate,
    (error_rate + z * z / (2 * judged_high)) / (1 + z * z / judged_high) AS error_centre,
    z * sqrt(error_rate * (1 - error_rate) / judged_high
             + z * z / (4 * judged_high * judged_high)) / (1 + z * z / judged_high) AS error_half,
    refusals,
    low_with_outcome,
    if(low_with_outcome = 0, NULL, refusals / low_with_outcome) AS refusal_rate,
    (refusal_rate + z * z / (2 * low_with_outcome)) / (1 + z * z / low_with_outcome)
        AS refusal_centre,
    z * sqrt(refusal_rate * (1 - refusal_rate) / low_with_outcome
             + z * z / (4 * low_with_outcome * low_with_outcome))
        / (1 + z * z / low_with_outcome) AS refusal_half,
    if(refusals = 0, NULL, errors / refusals) AS ratio
FROM counted
ORDER BY model_version, mode
"""

_LEVELS = """
SELECT
    model_version, mode, count() AS lookups,
    countIf(reported_level = 'PRECISE') AS precise,
    countIf(reported_level = 'REFERENCE') AS reference,
    countIf(reported_level = 'NONE') AS none,
    countIf(level_check = 'fail') AS level_fails,
    countIf(level_check = 'unverifiable') AS unverifiable,
    countIf(quality_basis = 'hybrid_rank') AS rank_fallback
FROM audit.lookups
GROUP BY model_version, mode
ORDER BY model_version, mode
"""

_EXAMPLES = """
SELECT event_id, why FROM (
    SELECT event_id, 'a high-score error' AS why, 1 AS place FROM audit.cells
    WHERE cell = 'high_score_error' ORDER BY event_id LIMIT 1
    UNION ALL
    SELECT event_id, 'a level that breaks the rule in force', 2 FROM audit.lookups
    WHERE level_check = 'fail' ORDER BY event_id LIMIT 1
    UNION ALL
    SELECT event_id, 'a low score, refused', 3 FROM audit.cells
    WHERE cell = 'low_score_refusal' ORDER BY event_id LIMIT 1
)
ORDER BY place
"""


def print_headline(reader: Reader) -> None:
    """The headline table, then the levels behind it."""
    print("High-score errors against low-score refusals\n")
    print_table(
        (
            "model version",
            "mode",
            "n",
            "wrong/judged PRECISE",
            "error rate, 95 %",
            "refused/NONE",
            "refusal rate, 95 %",
            "ratio",
        ),
        [_headline_row(row) for row in rows(reader, HEADLINE_SQL)],
    )
    print("\nLevels, as reported and as recomputed\n")
    found = rows(reader, _LEVELS)
    columns = (
        "model_version",
        "mode",
        "lookups",
        "precise",
        "reference",
        "none",
        "level_fails",
        "unverifiable",
        "rank_fallback",
    )
    print_table(
        [name.replace("_", " ") for name in columns],
        [[row[name] for name in columns] for row in found],
    )


def _headline_row(row: dict[str, Any]) -> list[object]:
    return [
        row["model_version"],
        row["mode"],
        row["lookups"],
        f"{row['errors']}/{row['judged_high']}",
        _rate(row["error_rate"], row["error_centre"], row["error_half"]),
        f"{row['refusals']}/{row['low_with_outcome']}",
        _rate(row["refusal_rate"], row["refusal_centre"], row["refusal_half"]),
        "no value" if row["ratio"] is None else f"{row['ratio']:.2f}",
    ]


def _rate(rate: float | None, centre: float | None, half: float | None) -> str:
    if rate is None or centre is None or half is None:
        return "no value"
    return f"{rate:.2f} ({max(0.0, centre - half):.2f}-{min(1.0, centre + half):.2f})"


def example_lookups(reader: Reader) -> list[tuple[str, str]]:
    """Up to three lookups worth a look: (event id, why)."""
    return [(row["event_id"], row["why"]) for row in rows(reader, _EXAMPLES)]
