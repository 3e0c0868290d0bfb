"""The cells under another ruleset: levels that would have been, beside answers as they were.

What an agent would have answered under another level cannot be known; its answers stay.
"""

from dataclasses import dataclass

from lookup_audit.processors.reading import Reader, rows
from lookup_audit.processors.replay.scope import Scope, judged_sql
from lookup_audit.schemas.ruleset import Ruleset

# Answers come from the same view as every other figure about cells.
_CELLS = """
SELECT model_version, mode, level, answer, sum(was) AS was, sum(becomes) AS becomes
FROM (
    SELECT
        c.model_version AS model_version, c.mode AS mode, c.answer AS answer,
        arrayJoin([(j.was, 1, 0), (j.becomes, 0, 1)]) AS side,
        side.1 AS level, side.2 AS was, side.3 AS becomes
    FROM (SELECT tenant, event_id, model_version, mode, answer FROM audit.cells) AS c
    INNER JOIN (
        SELECT tenant, event_id, was, becomes FROM ({judged})
    ) AS j ON c.tenant = j.tenant AND c.event_id = j.event_id
)
GROUP BY model_version, mode, level, answer
ORDER BY model_version, mode, level, answer
"""

_JUDGED = ("wrong", "right", "partly")


@dataclass(frozen=True, slots=True)
class CellCount:
    """Lookups with an outcome of one stratum, level and answer, then and under the ruleset.

    Args:
        model_version: Model version.
        mode: Retrieval mode.
        level: Level, or ``unverifiable``.
        answer: ``wrong``, ``right``, ``partly``, ``refused`` or ``unjudged``.
        was: How many had the level then.
        becomes: How many have it under the ruleset replayed.
    """

    model_version: str
    mode: str
    level: str
    answer: str
    was: int
    becomes: int


def read_cells(reader: Reader, ruleset: Ruleset, scope: Scope) -> list[CellCount]:
    """Counts of all cells; a lookup counts once then and once under the ruleset."""
    sql = _CELLS.replace("{judged}", judged_sql(answered=True))
    return [CellCount(**row) for row in rows(reader, sql, scope.parameters(ruleset))]


@dataclass(frozen=True, slots=True)
class CellRates:
    """The headline figures of one stratum on one side, as counts.

    Args:
        outcomes: Lookups with an outcome.
        high_score_errors: PRECISE and judged wrong.
        judged_high: PRECISE, answered and judged.
        low_score_refusals: NONE and refused.
        low_with_outcome: NONE with an outcome whose cell is known.
    """

    outcomes: int
    high_score_errors: int
    judged_high: int
    low_score_refusals: int
    low_with_outcome: int

    @property
    def ratio(self) -> float | None:
        """Errors per refusal; no value where nothing was refused."""
        if self.low_score_refusals == 0:
            return None
        return self.high_score_errors / self.low_score_refusals


def cell_rates(counts: list[CellCount], *, becomes: bool) -> CellRates:
    """The headline figures of one stratum's counts.

    Args:
        counts: Of one model version and mode.
        becomes: Under the ruleset replayed, or else as it was.
    """

    def total(level: str | None = None, answers: tuple[str, ...] = ()) -> int:
        return sum(
            count.becomes if becomes else count.was
            for count in counts
            if level in (None, count.level) and (not answers or count.answer in answers)
        )

    return CellRates(
        outcomes=total(),
        high_score_errors=total("PRECISE", ("wrong",)),
        judged_high=total("PRECISE", _JUDGED),
        low_score_refusals=total("NONE", ("refused",)),
        low_with_outcome=total("NONE"),
    )
