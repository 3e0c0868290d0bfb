"""Reads the counts of two periods: one pass a period and ruleset, over the replay's query."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any, Final

from lookup_audit.processors.drift_causes.table import CountRow
from lookup_audit.processors.reading import Reader, rows
from lookup_audit.processors.replay.scope import Scope, judged_sql
from lookup_audit.schemas.ruleset import DEFAULT_RULESET, Ruleset

OTHER: Final = "(other)"
# Values of a field of traffic mix that are told apart; the others are one.
_KEPT: Final = 12
_RULESETS: Final = 8


@dataclass(frozen=True, slots=True)
class Stratum:
    """Which lookups of a period are looked at; ``""`` leaves a field free.

    Args:
        scope: Period and tenant.
        mode: Retrieval mode: never more than one.
        service: Service.
        model_version: Model version.
        quality_basis: Basis of the quality.
    """

    scope: Scope
    mode: str
    service: str = ""
    model_version: str = ""
    quality_basis: str = ""

    def parameters(self, ruleset: Ruleset = DEFAULT_RULESET) -> dict[str, object]:
        """Values of a query's parameters."""
        return self.scope.parameters(ruleset) | {
            "mode": self.mode,
            "service": self.service,
            "model_version": self.model_version,
            "quality_basis": self.quality_basis,
        }


_FILTER = """
mode = {mode:String} AND {service:String} IN ('', service)
    AND {model_version:String} IN ('', model_version)
    AND {quality_basis:String} IN ('', quality_basis)
"""
_PERIOD = """
occurred_at >= {since:DateTime64(6, 'UTC')} AND occurred_at < {until:DateTime64(6, 'UTC')}
    AND {tenant:String} IN ('', tenant)
"""

_USED = f"""
SELECT if(stated_ruleset_id != '', stated_ruleset_id, ruleset_id) AS used, count() AS n
FROM audit_store.lookups
WHERE {_PERIOD} AND {_FILTER} AND used != ''
GROUP BY used
ORDER BY n DESC, used
"""

_CONTENT = """
SELECT ruleset_id, any(content) AS content FROM audit_store.rulesets
WHERE has(JSONExtract({ids:String}, 'Array(String)'), ruleset_id) GROUP BY ruleset_id
"""

_COLUMNS: Final[Mapping[str, str]] = {
    "tenant": "tenant",
    "service": "service",
    "language": "query_language",
    "category": "category_filter",
}

_COMMON = """
SELECT {column} AS value, count() AS n FROM audit_store.lookups
WHERE {period} AND {filter}
GROUP BY value ORDER BY n DESC, value LIMIT {kept}
"""


def read_rows(reader: Reader, before: Stratum, after: Stratum) -> list[CountRow]:
    """The counts of both periods, each judged under every ruleset of either.

    Args:
        reader: Where the lookups are.
        before: The first period.
        after: The second period, of the same mode.

    Raises:
        ValueError: The modes differ: their levels are on different rulers.
    """
    if before.mode != after.mode:
        raise ValueError("modes are never compared")
    strata = (before, after)
    rulesets = _rulesets(reader, strata)
    kept = {field: _common(reader, strata, column) for field, column in _COLUMNS.items()}
    sql = _counts_sql(kept)
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    # Without any ruleset the counts are still needed; what it would give is then left out.
    for ruleset_id, ruleset in rulesets.items() or {"": DEFAULT_RULESET}.items():
        for period, stratum in enumerate(strata):
            parameters = stratum.parameters(ruleset)
            parameters |= {f"keep_{f}": json.dumps(v) for f, v in kept.items() if v is not None}
            for row in rows(reader, sql, parameters):
                entry = found.setdefault((period, *row["fields"], row["used"]), row | {"rules": {}})
                if ruleset_id:
                    entry["rules"][ruleset_id] = row["under"]
    return [
        CountRow(key[0], tuple(key[1:-1]), key[-1], row["n"], row["precise"], row["rules"])
        for key, row in sorted(found.items())
    ]


def _counts_sql(kept: Mapping[str, list[str] | None]) -> str:
    sql = resources.files(__package__).joinpath("counts.sql").read_text("utf-8")
    for field, column in _COLUMNS.items():
        common = f"JSONExtract({{keep_{field}:String}}, 'Array(String)')"
        told = f"j.{column}"
        if kept[field] is not None:
            told = f"if(has({common}, {told}), {told}, '{OTHER}')"
        sql = sql.replace(f"{{{field}}}", told)
    return sql.replace("{judged}", judged_sql()).replace("{filter}", _FILTER)


def _rulesets(reader: Reader, strata: Sequence[Stratum]) -> dict[str, Ruleset]:
    """By id, the rulesets that most lookups were reckoned by; rare ones are left out."""
    used: dict[str, int] = {}
    for stratum in strata:
        for row in rows(reader, _USED, stratum.parameters()):
            used[row["used"]] = used.get(row["used"], 0) + row["n"]
    ids = sorted(used, key=lambda r: (-used[r], r))[:_RULESETS]
    found = rows(reader, _CONTENT, {"ids": json.dumps(ids)})
    contents = {row["ruleset_id"]: row["content"] for row in found}
    return {i: Ruleset.model_validate_json(contents[i]) for i in ids if i in contents}


def _common(reader: Reader, strata: Sequence[Stratum], column: str) -> list[str] | None:
    """The values that are told apart; ``None`` where there are few enough for all."""
    sql = (
        _COMMON.replace("{column}", column)
        .replace("{period}", _PERIOD)
        .replace("{filter}", _FILTER)
        .replace("{kept}", str(_KEPT + 1))
    )
    counts: dict[str, int] = {}
    for stratum in strata:
        for row in rows(reader, sql, stratum.parameters()):
            counts[row["value"]] = counts.get(row["value"], 0) + row["n"]
    if len(counts) <= _KEPT:
        return None
    return sorted(counts, key=lambda v: (-counts[v], v))[:_KEPT]
