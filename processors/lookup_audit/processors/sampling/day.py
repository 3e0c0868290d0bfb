"""One tenant's day in the store: its strata counted, its rule read, its lookups drawn.

Only reads. What is to be written comes back as tables, plan before rows: killed in between, the
next run finds the plan and completes the rows.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, Final, Protocol

import pyarrow as pa

from lookup_audit.processors.reading import Reader, rows
from lookup_audit.processors.sampling.draw import DRAW_SQL
from lookup_audit.processors.sampling.plan import (
    NEAR,
    DayPlan,
    Stratum,
    StratumPlan,
    in_force,
    plan_day,
)

PLANS_TABLE: Final = "audit_store.sample_plans"
SAMPLES_TABLE: Final = "audit_store.samples"
# Strata a query: their rules travel in its URL.
_STRATA = 150
_ROWS = 20_000
_TIME = pa.timestamp("us", tz="UTC")

_DAY = (
    "occurred_at >= toDateTime64({day:String}, 6, 'UTC') "
    "AND occurred_at < toDateTime64({day:String}, 6, 'UTC') + INTERVAL 1 DAY"
)
# A hair more than NEAR: 0.77 is near 0.75 although their difference in binary is above 0.02.
_CLASSED = f"""
SELECT
    event_id, occurred_at, mode, model_version, reported_level AS level,
    ifNull(quality_score, reported_quality) AS quality,
    multiIf(
        level_check = 'fail', 'mismatch',
        ifNull(abs(quality - high) <= {NEAR + 1e-9} OR abs(quality - low) <= {NEAR + 1e-9}, false),
        'near_threshold', 'plain'
    ) AS class
FROM audit.lookups AS l
LEFT JOIN (
    SELECT
        ruleset_id,
        JSONExtract(any(content), 'highly_relevant_threshold', 'Nullable(Float64)') AS high,
        JSONExtract(any(content), 'reference_threshold', 'Nullable(Float64)') AS low
    FROM audit.rulesets
    GROUP BY ruleset_id
) AS r ON r.ruleset_id = l.ruleset_id
WHERE tenant = {{tenant:String}} AND {_DAY}
"""
_POPULATIONS = f"""
SELECT mode, model_version, level, class, count() AS population
FROM ({_CLASSED})
GROUP BY mode, model_version, level, class
"""
_DRAWN = f"""
SELECT
    event_id, toUnixTimestamp64Micro(occurred_at) AS occurred_us, mode, model_version, level,
    class, {DRAW_SQL} AS u
FROM ({_CLASSED}) AS l
INNER JOIN (
    SELECT s.1 AS mode, s.2 AS model_version, s.3 AS level, s.4 AS class, s.5 AS p
    FROM (
        SELECT arrayJoin(JSONExtract(
            {{plan:String}}, 'Array(Tuple(String, String, String, String, Float64))'
        )) AS s
    )
) AS plan USING (mode, model_version, level, class)
WHERE u < plan.p
ORDER BY event_id
"""


@dataclass(frozen=True, slots=True)
class Drawn:
    """One lookup of the sample.

    Args:
        event_id: Its id.
        occurred_us: When it happened, microseconds since 1970.
        stratum: Where it was drawn.
        draw: Its number u in [0, 1), below the stratum's probability.
    """

    event_id: str
    occurred_us: int
    stratum: Stratum
    draw: float


@dataclass(frozen=True, slots=True)
class DaySample:
    """One tenant's day, drawn.

    Args:
        tenant: ``""`` where events name none.
        day: In UTC.
        plan: The rule.
        populations: Lookups a stratum now.
        drawn: The whole sample, by event id.
        unwritten: Those that are not stored yet, or stored with another probability.
    """

    tenant: str
    day: date
    plan: DayPlan
    populations: dict[Stratum, int]
    drawn: Sequence[Drawn]
    unwritten: Sequence[Drawn]

    def counts(self) -> Counter[Stratum]:
        """Lookups drawn a stratum."""
        return Counter(one.stratum for one in self.drawn)

    def plan_table(self, drawn_at: datetime) -> pa.Table:
        """The rows for :data:`PLANS_TABLE` that are missing there."""
        added = sorted(self.plan.added)
        plans = [self.plan.strata[stratum] for stratum in added]
        return pa.table(
            {
                **self._place(added),
                "size": pa.array([p.size for p in plans], pa.uint64()),
                "seed": _texts([self.plan.seed] * len(added)),
                "population": pa.array([p.population for p in plans], pa.uint64()),
                "inclusion_probability": pa.array([p.probability for p in plans], pa.float64()),
                "scale": pa.array([p.scale for p in plans], pa.float64()),
                "drawn_at": pa.array([drawn_at] * len(added), _TIME),
            }
        )

    def sample_tables(self, drawn_at: datetime) -> Iterator[pa.Table]:
        """The rows for :data:`SAMPLES_TABLE` that are missing there, in pieces."""
        for start in range(0, len(self.unwritten), _ROWS):
            some = self.unwritten[start : start + _ROWS]
            strata = [one.stratum for one in some]
            chances = [self.plan.strata[stratum].probability for stratum in strata]
            yield pa.table(
                {
                    **self._place(strata),
                    "event_id": _texts([one.event_id for one in some]),
                    "occurred_at": pa.array([one.occurred_us for one in some], _TIME),
                    "inclusion_probability": pa.array(chances, pa.float64()),
                    "draw": pa.array([one.draw for one in some], pa.float64()),
                    "seed": _texts([self.plan.seed] * len(some)),
                    "drawn_at": pa.array([drawn_at] * len(some), _TIME),
                }
            )

    def _place(self, strata: Sequence[Stratum]) -> dict[str, Any]:
        modes, versions, levels, classes = zip(*(s.parts for s in strata), strict=True)
        return {
            "tenant": _texts([self.tenant] * len(strata)),
            "day": pa.array([self.day] * len(strata), pa.date32()),
            "mode": _texts(modes),
            "model_version": _texts(versions),
            "level": _texts(levels),
            "class": _texts(classes),
        }


class RowWriter(Protocol):
    """What stores rows; a store and each form of writer do."""

    def insert(self, table: str, batch: pa.Table, *, token: str) -> None:
        """Store rows; the same with the same token once."""


def write_day(writer: RowWriter, sample: DaySample, drawn_at: datetime) -> None:
    """Store what is missing of a day, its plan first.

    With the plan the rows can be drawn again, never the other way round.

    Args:
        writer: Where rows go.
        sample: The day.
        drawn_at: The time now.

    Raises:
        UnavailableError: The store does not answer; draw the day and write it again.
    """
    if sample.plan.added:
        plan = sample.plan_table(drawn_at)
        writer.insert(PLANS_TABLE, plan, token=batch_token(plan))
    for table in sample.sample_tables(drawn_at):
        writer.insert(SAMPLES_TABLE, table, token=batch_token(table))


def _texts(values: Sequence[str]) -> Any:
    return pa.array(values, pa.string())


def batch_token(table: pa.Table) -> str:
    """A deduplication token: the same rows of the same run have the same one."""
    digest = hashlib.sha256()
    for batch in table.to_batches():
        digest.update(batch.serialize())
    return digest.hexdigest()


def default_seed(day: date, tenant: str) -> str:
    """The seed of a day that nobody chose one for.

    Whoever can foresee the seed and choose event ids can keep lookups out of the sample; against
    such a producer the first draw gives a seed of its own.
    """
    return f"{day.isoformat()}/{tenant}"


def tenants_of(reader: Reader, day: date) -> list[str]:
    """Tenants with lookups on a day, sorted."""
    found = rows(
        reader,
        f"SELECT DISTINCT tenant FROM audit.lookups WHERE {_DAY} ORDER BY tenant",
        {"day": day.isoformat()},
    )
    return [row["tenant"] for row in found]


def stored_plan(reader: Reader, day: date, tenant: str) -> DayPlan | None:
    """The rule that was stored for a day, or ``None`` before its first draw."""
    found = rows(
        reader,
        "SELECT mode, model_version, level, class, size, seed, population, "
        "inclusion_probability, scale FROM audit.sample_plans "
        "WHERE day = {day:String} AND tenant = {tenant:String} ORDER BY drawn_at",
        {"day": day.isoformat(), "tenant": tenant},
    )
    if not found:
        return None
    plans = (
        (
            _stratum(row),
            StratumPlan(row["population"], row["inclusion_probability"], row["size"], row["scale"]),
        )
        for row in found
    )
    return in_force(found[0]["seed"], plans)


def draw_day(
    reader: Reader, day: date, tenant: str, *, size: int | None = None, seed: str | None = None
) -> DaySample:
    """Draw a tenant's day by its stored rule, or by a new one.

    Args:
        reader: Of the store.
        day: In UTC.
        tenant: Whose lookups.
        size: Expected number to draw; see :func:`plan_day`.
        seed: For the first draw of the day.

    Raises:
        ConfigError: See :func:`plan_day`.
    """
    where = {"day": day.isoformat(), "tenant": tenant}
    populations = {
        _stratum(row): int(row["population"]) for row in rows(reader, _POPULATIONS, where)
    }
    plan = plan_day(
        populations,
        size=size,
        seed=seed,
        default_seed=default_seed(day, tenant),
        stored=stored_plan(reader, day, tenant),
    )
    drawn = list(_drawn(reader, where, plan, sorted(populations)))
    stored = {
        row["event_id"]: row["inclusion_probability"]
        for row in rows(
            reader,
            "SELECT event_id, inclusion_probability FROM audit.samples "
            "WHERE day = {day:String} AND tenant = {tenant:String}",
            where,
        )
    }
    unwritten = [
        one for one in drawn if stored.get(one.event_id) != plan.strata[one.stratum].probability
    ]
    return DaySample(tenant, day, plan, populations, drawn, unwritten)


def _drawn(
    reader: Reader, where: dict[str, str], plan: DayPlan, strata: Sequence[Stratum]
) -> Iterator[Drawn]:
    for start in range(0, len(strata), _STRATA):
        rules = [[*s.parts, plan.strata[s].probability] for s in strata[start : start + _STRATA]]
        parameters = where | {"seed": plan.seed, "plan": json.dumps(rules, ensure_ascii=False)}
        for row in rows(reader, _DRAWN, parameters):
            yield Drawn(row["event_id"], row["occurred_us"], _stratum(row), row["u"])


def _stratum(row: dict[str, Any]) -> Stratum:
    return Stratum(row["mode"], row["model_version"], row["level"], row["class"])
