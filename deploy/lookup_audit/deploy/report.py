"""The headline: how often a high score was wrong against how often a low score was refused.

Figures are per mode, since the modes' levels are on different rulers. A rate over zero events has
no value.
"""

from collections.abc import Sequence

from lookup_audit.deploy.cli.options import print_table
from lookup_audit.deploy.figures import NO_VALUE, with_interval
from lookup_audit.processors.ratio import Headline
from lookup_audit.processors.reading import Reader, rows
from lookup_audit.processors.statistics.proportions import Estimate

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


def print_headline(found: Sequence[Headline]) -> None:
    """The headline table: one row a stratum, no value where there is none."""
    print("High-score errors against low-score refusals\n")
    names = [name.replace("_", " ") for name in found[0].stratum] if found else []
    print_table(
        (
            *names,
            "n",
            "wrong/judged PRECISE",
            "error rate, 95 %",
            "refused/NONE",
            "refusal rate, 95 %",
            "ratio",
        ),
        [_headline_row(row) for row in found],
    )


def print_levels(reader: Reader) -> None:
    """What the levels were, as reported and as recomputed."""
    print("Levels, as reported and as recomputed\n")
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


def _headline_row(row: Headline) -> list[object]:
    return [
        *row.stratum.values(),
        row.counts["sampled"],
        f"{row.counts['high_score_errors']}/{row.counts['judged_high']}",
        rate(row.rates["high_score_error_rate"]),
        f"{row.counts['low_score_refusals']}/{row.counts['low_with_outcome']}",
        rate(row.rates["low_score_refusal_rate"]),
        ratio_text(row.ratio),
    ]


def _written(found: Estimate | None, form: str) -> str:
    if found is None:
        return NO_VALUE
    return with_interval(found.value, (found.low, found.high), form=form)


def rate(found: Estimate | None) -> str:
    """A rate with its interval."""
    return _written(found, ".2f")


def percent(found: Estimate | None) -> str:
    """A share with its interval, in per cent."""
    return _written(found, ".1%")


def ratio_text(found: tuple[float, float, float | None] | None) -> str:
    """A ratio with its interval."""
    if found is None:
        return NO_VALUE
    value, low, high = found
    return f"{value:.2f} ({low:.2f}-{'no bound' if high is None else f'{high:.2f}'})"


def example_lookups(reader: Reader) -> list[tuple[str, str]]:
    """Up to three lookups worth a look: (event id, why)."""
    return [(row["event_id"], row["why"]) for row in rows(reader, _EXAMPLES)]
