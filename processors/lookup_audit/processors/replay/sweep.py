"""A grid over the threshold for PRECISE: what each value would give, from one pass.

Every lookup is put between two values of the grid once; the figure at a value is the sum of what
lies above it. Comparisons are those of the rule: IEEE double, inclusive.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from lookup_audit.processors.reading import Reader, rows
from lookup_audit.processors.replay.scope import UNVERIFIABLE, Scope, judged_sql
from lookup_audit.schemas.errors import ConfigError
from lookup_audit.schemas.ruleset import Ruleset

_MOST_STEPS = 1000

_LEVELS = """
SELECT
    model_version, mode,
    if(may_be_precise, arrayCount(t -> quality >= t, {grid:Array(Float64)}), 0) AS passed,
    count() AS n
FROM ({judged})
WHERE becomes != {unverifiable:String}
GROUP BY model_version, mode, passed
"""

_ANSWERS = """
SELECT
    c.model_version AS model_version, c.mode AS mode, j.passed AS passed,
    countIf(c.answer IN ('wrong', 'right', 'partly')) AS n, countIf(c.answer = 'wrong') AS wrong
FROM (SELECT tenant, event_id, model_version, mode, answer FROM audit.cells) AS c
INNER JOIN (
    SELECT
        tenant, event_id,
        if(may_be_precise, arrayCount(t -> quality >= t, {grid:Array(Float64)}), 0) AS passed
    FROM ({judged})
    WHERE becomes != {unverifiable:String}
) AS j ON c.tenant = j.tenant AND c.event_id = j.event_id
GROUP BY model_version, mode, passed
"""


@dataclass(frozen=True, slots=True)
class GridPoint:
    """One stratum at one threshold.

    Args:
        model_version: Model version.
        mode: Retrieval mode.
        threshold: ``highly_relevant_threshold``.
        lookups: Lookups with a level.
        precise: Of them, PRECISE.
        judged_high: Answered and judged lookups among the PRECISE.
        high_score_errors: Of them, judged wrong.
    """

    model_version: str
    mode: str
    threshold: float
    lookups: int
    precise: int
    judged_high: int
    high_score_errors: int


def grid(start: float, stop: float, step: float) -> list[float]:
    """Thresholds from start to stop, reckoned in decimals so that 0.7 is 0.7.

    >>> grid(0.6, 0.8, 0.1)
    [0.6, 0.7, 0.8]

    Raises:
        ConfigError: The three make no grid.
    """
    first, last, width = (Decimal(repr(value)) for value in (start, stop, step))
    if not (0 <= first <= last <= 1):
        raise ConfigError("the sweep must go from a lower to a higher threshold within 0 to 1")
    if width <= 0 or (last - first) / width > _MOST_STEPS:
        raise ConfigError(
            f"the step of the sweep must be above 0 and make at most {_MOST_STEPS} steps, "
            "such as 0.05"
        )
    return [float(first + width * i) for i in range(int((last - first) / width) + 1)]


def read_sweep(
    reader: Reader, ruleset: Ruleset, scope: Scope, thresholds: Sequence[float]
) -> list[GridPoint]:
    """The grid's figures per model version and mode, in order.

    Args:
        reader: Where the lookups are.
        ruleset: Everything but the threshold for PRECISE.
        scope: Which lookups.
        thresholds: Ascending.
    """
    parameters = scope.parameters(ruleset) | {
        "grid": list(thresholds),
        "unverifiable": UNVERIFIABLE,
    }
    sums: dict[tuple[str, str], list[list[int]]] = defaultdict(
        lambda: [[0] * (len(thresholds) + 1) for _ in range(3)]
    )

    def add(row: dict[str, Any], places: dict[str, int]) -> None:
        for name, place in places.items():
            sums[row["model_version"], row["mode"]][place][row["passed"]] += row[name]

    for row in rows(reader, _LEVELS.replace("{judged}", judged_sql()), parameters):
        add(row, {"n": 0})
    for row in rows(reader, _ANSWERS.replace("{judged}", judged_sql(answered=True)), parameters):
        add(row, {"n": 1, "wrong": 2})
    return [
        GridPoint(model_version, mode, threshold, sum(n), *(sum(part[i + 1 :]) for part in parts))
        for (model_version, mode), parts in sorted(sums.items())
        for n in (parts[0],)
        for i, threshold in enumerate(thresholds)
    ]
