"""High-score errors against low-score refusals over any period, from the sums of its days.

The views count; here the sums of several days become rates with intervals. Modes are different
rulers: a figure over two of them is refused.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import date
from typing import Any

from lookup_audit.processors.reading import Reader, rows
from lookup_audit.processors.statistics.prediction_powered import prediction_powered
from lookup_audit.processors.statistics.proportions import Estimate, Sums, estimate, odds
from lookup_audit.schemas.errors import ConfigError

DIMENSIONS = ("day", "tenant", "model_version", "mode")
PARTS = ("level", "layer")

# Clusters, a, b, aa, ab, bb of each rate, as the view names them.
_RATES = {
    "high_score_error_rate": (
        "high_answers", "error", "high", "error_error", "error_high", "high_high",
    ),
    "low_score_refusal_rate": (
        "low_answers", "refusal", "low", "refusal_refusal", "refusal_low", "low_low",
    ),
    "high_score_error_share": (
        "any_answers", "error", "any", "error_error", "error_any", "any_any",
    ),
    "low_score_refusal_share": (
        "any_answers", "refusal", "any", "refusal_refusal", "refusal_any", "any_any",
    ),
}  # fmt: skip
_COUNTS = (
    "sampled",
    "with_outcome",
    "high_score_errors",
    "judged_high",
    "low_score_refusals",
    "low_with_outcome",
)
_PART_RATES = {
    "error_rate": (
        "judged_answers", "error", "judged_weight", "error_error", "error_judged", "judged_judged",
    ),
    "refusal_rate": (
        "any_answers", "refusal", "any", "refusal_refusal", "refusal_any", "any_any",
    ),
}  # fmt: skip
_PART_COUNTS = ("with_outcome", "judged", "wrong", "partly", "right", "refused")


@dataclass(frozen=True, slots=True)
class Period:
    """What to look at; ``None`` leaves it open.

    Args:
        first: First day, in UTC.
        last: Last day.
        tenant: Only this one.
    """

    first: date | None = None
    last: date | None = None
    tenant: str | None = None

    def condition(self) -> tuple[str, dict[str, Any]]:
        """A condition on rows of a view, with its parameters."""
        parts, parameters = ["1"], {}
        if self.first is not None:
            parts.append("day >= {first:Date}")
            parameters["first"] = self.first.isoformat()
        if self.last is not None:
            parts.append("day <= {last:Date}")
            parameters["last"] = self.last.isoformat()
        if self.tenant is not None:
            parts.append("tenant = {tenant:String}")
            parameters["tenant"] = self.tenant
        return " AND ".join(parts), parameters


@dataclass(frozen=True, slots=True)
class Headline:
    """One stratum: counts, the four rates, and the ratio as (value, low, high)."""

    stratum: Mapping[str, Any]
    counts: Mapping[str, int]
    rates: Mapping[str, Estimate | None]
    ratio: tuple[float, float, float | None] | None


@dataclass(frozen=True, slots=True)
class Part:
    """One level or layer of one stratum."""

    stratum: Mapping[str, Any]
    by: str
    value: str
    counts: Mapping[str, int]
    rates: Mapping[str, Estimate | None]


@dataclass(frozen=True, slots=True)
class Refusals:
    """How often one reason was given on one level."""

    stratum: Mapping[str, Any]
    level: str
    reason: str
    refused: int


@dataclass(frozen=True, slots=True)
class Sharpened:
    """The high-score-error rate by humans alone, and with a machine's help."""

    stratum: Mapping[str, Any]
    human_judged: int
    machine_judged: int
    by_humans: Estimate | None
    with_machine: Estimate | None


def check_dimensions(by: Sequence[str]) -> tuple[str, ...]:
    """The dimensions to group by, in the view's order.

    Raises:
        ConfigError: One is unknown, or the mode is not among them.
    """
    if unknown := [name for name in by if name not in DIMENSIONS]:
        raise ConfigError(f"--by {unknown[0]}: choose from {', '.join(DIMENSIONS)}")
    if "mode" not in by:
        raise ConfigError(
            "--by must include mode: the levels of dense and hybrid lookups are on different "
            "rulers, so a rate over both would say nothing of either"
        )
    return tuple(name for name in DIMENSIONS if name in by)


def headlines(reader: Reader, by: Sequence[str], period: Period) -> list[Headline]:
    """The headline of each stratum.

    Raises:
        ConfigError: See :func:`check_dimensions`.
    """
    by = check_dimensions(by)
    columns = {name for rate in _RATES.values() for name in rate}
    columns |= {"error_refusal", "either_answers", *_COUNTS}
    found = _summed(reader, "audit.ratio_sums", by, sorted(columns), period)
    return [_headline(by, row) for row in found]


def parts(reader: Reader, by: Sequence[str], part: str, period: Period) -> list[Part]:
    """Each level (or layer) of each stratum.

    Args:
        reader: Where to read.
        by: See :func:`check_dimensions`.
        part: ``level`` or ``layer``.
        period: What to look at.
    """
    by = check_dimensions(by)
    columns = sorted({n for rate in _PART_RATES.values() for n in rate} | set(_PART_COUNTS))
    found = _summed(reader, "audit.cells_daily", (*by, "by", "value"), columns, period)
    return [
        Part(
            stratum={name: row[name] for name in by},
            by=part,
            value=row["value"],
            counts={name: row[name] for name in _PART_COUNTS},
            rates={n: estimate(_sums(row, c)) for n, c in _PART_RATES.items()},
        )
        for row in found
        if row["by"] == part
    ]


def refusals(reader: Reader, by: Sequence[str], period: Period) -> list[Refusals]:
    """Why lookups of each level were refused, most frequent first."""
    by = check_dimensions(by)
    where, parameters = period.condition()
    columns = ", ".join(by)
    found = rows(
        reader,
        f"SELECT {columns}, level, refusal_reason, count() AS refused FROM audit.sampled_cells "
        f"WHERE {where} AND action = 'refused' GROUP BY {columns}, level, refusal_reason "
        f"ORDER BY {columns}, level, refused DESC, refusal_reason",
        parameters,
    )
    return [
        Refusals({n: row[n] for n in by}, row["level"], row["refusal_reason"], row["refused"])
        for row in found
    ]


_JUDGED_BY_BOTH = """
SELECT
    {columns}, any(weight) AS w, human, machine
FROM audit.sampled_cells AS c
INNER JOIN (
    SELECT
        tenant, outcome_id,
        -- Of people's judgements the one that counts for the cell; a machine's only where it is
        -- the one, or the newest beside a person's.
        anyIf(verdict, counts AND source != 'llm') AS human,
        argMaxIf(verdict, (counts, occurred_at, judgement_id), source = 'llm') AS machine
    FROM audit.judgements
    GROUP BY tenant, outcome_id
) AS j USING (tenant, outcome_id)
WHERE {where} AND level = 'PRECISE' AND action = 'answered'
GROUP BY {columns}, answer_key, human, machine
"""


def sharpened(reader: Reader, by: Sequence[str], period: Period) -> list[Sharpened]:
    """The high-score-error rate where a machine judged as well: an answer counts once.

    Which answers people judge must not depend on what the answers are; the reviewers' sheet is in
    random order, so that whoever stops half-way has judged a random part.
    """
    by = check_dimensions(by)
    where, parameters = period.condition()
    sql = _JUDGED_BY_BOTH.format(columns=", ".join(by), where=where)
    strata: dict[tuple[Any, ...], list[tuple[float, str, str]]] = {}
    for row in rows(reader, sql, parameters):
        key = tuple(row[name] for name in by)
        strata.setdefault(key, []).append((row["w"], row["human"], row["machine"]))
    return [_sharpen(dict(zip(by, key, strict=True)), strata[key]) for key in sorted(strata)]


_JUDGED = {"incorrect": 1.0, "correct": 0.0, "partly": 0.0}


def _sharpen(stratum: Mapping[str, Any], judged: list[tuple[float, str, str]]) -> Sharpened:
    both = [(w, _JUDGED[h], _JUDGED[m]) for w, h, m in judged if h in _JUDGED and m in _JUDGED]
    machine = [(w, _JUDGED[m]) for w, h, m in judged if h not in _JUDGED and m in _JUDGED]
    humans = [(w * _JUDGED[h], w) for w, h, _ in judged if h in _JUDGED]
    return Sharpened(
        stratum,
        human_judged=len(humans),
        machine_judged=len(machine) + len(both),
        by_humans=estimate(Sums.of(humans)),
        with_machine=prediction_powered(both, machine),
    )


def _summed(
    reader: Reader, view: str, by: Sequence[str], columns: Sequence[str], period: Period
) -> list[dict[str, Any]]:
    where, parameters = period.condition()
    sums = ", ".join(f"sum(v.{name}) AS {name}" for name in columns)
    keys = ", ".join(by)
    return rows(
        reader,
        f"SELECT {keys}, {sums} FROM {view} AS v WHERE {where} GROUP BY {keys} ORDER BY {keys}",
        parameters,
    )


def _headline(by: Sequence[str], row: Mapping[str, Any]) -> Headline:
    e, r, both = row["error_error"], row["refusal_refusal"], row["error_refusal"]
    either = Sums(
        clusters=row["either_answers"],
        a=row["error"],
        b=row["error"] + row["refusal"],
        aa=e,
        ab=e + both,
        bb=e + 2 * both + r,
    )
    return Headline(
        stratum={name: row[name] for name in by},
        counts={name: row[name] for name in _COUNTS},
        rates={name: estimate(_sums(row, columns)) for name, columns in _RATES.items()},
        ratio=odds(estimate(either)),
    )


def _sums(row: Mapping[str, Any], columns: Sequence[str]) -> Sums:
    names = (field.name for field in fields(Sums))
    return Sums(**{name: row[column] for name, column in zip(names, columns, strict=True)})
