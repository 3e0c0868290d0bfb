"""How agents used the levels they were given: rates by stratum, and the runs to look at.

Reads the views ``audit.conduct_daily`` and ``audit.conduct_findings``. Tenants, model versions and
modes are never pooled.
"""

from dataclasses import dataclass
from datetime import date
from typing import Any

from lookup_audit.processors.reading import Reader, rows
from lookup_audit.processors.statistics.proportions import wilson

_WHERE = "WHERE day >= {since:Date} AND (tenant = {tenant:String} OR {every_tenant:UInt8} = 1)"

_RATES = f"""
SELECT
    tenant, model_version, mode,
    arrayJoin([
        ('wasted_lookup', 'lookups in a run', sum(lookups_in_runs), sum(wasted_lookups)),
        ('over_confident', 'outcomes on NONE', sum(outcomes_on_none), sum(over_confident)),
        ('fabricated_citation', 'claims that cite', sum(citing_claims),
         sum(fabricated_citations)),
        ('unsupported_claim', 'claims that cite', sum(citing_claims), sum(unsupported_claims))
    ]) AS check,
    check.1 AS finding, check.2 AS occasion, check.3 AS occasions, check.4 AS found
FROM audit.conduct_daily
{_WHERE}
GROUP BY tenant, model_version, mode
ORDER BY tenant, model_version, mode, finding
"""

_EXAMPLES = f"""
SELECT
    finding, tenant, run_id, model_version, mode, event_id, outcome_id, claim_number,
    occurred_at, evidence
FROM audit.conduct_findings
{_WHERE}
ORDER BY finding, tenant, model_version, mode, occurred_at DESC, event_id, outcome_id, claim_number
LIMIT {{examples:UInt32}} BY finding, tenant, model_version, mode
"""


@dataclass(frozen=True, slots=True)
class ConductRate:
    """One conduct check in one stratum.

    Args:
        tenant: Of the stratum.
        model_version: Of the stratum.
        mode: Of the stratum.
        finding: Name of the check.
        occasion: What is counted as an occasion, in words.
        occasions: How many there were.
        found: On how many the agent went wrong.
    """

    tenant: str
    model_version: str
    mode: str
    finding: str
    occasion: str
    occasions: int
    found: int

    @property
    def rate(self) -> float | None:
        """Share of occasions; no value without one."""
        return self.found / self.occasions if self.occasions else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """Wilson's 95 % interval of the rate; no value without an occasion."""
        return wilson(self.found, self.occasions)


def conduct_rates(
    reader: Reader, *, since: date | None = None, tenant: str | None = None
) -> list[ConductRate]:
    """Every check in every stratum, ordered by stratum and name.

    Args:
        reader: What to read.
        since: First day (UTC) that counts; all days unless given.
        tenant: Only this one; all unless given.
    """
    return [
        ConductRate(**{name: row[name] for name in ConductRate.__slots__})
        for row in rows(reader, _RATES, _parameters(since, tenant))
    ]


def conduct_examples(
    reader: Reader, *, each: int, since: date | None = None, tenant: str | None = None
) -> list[dict[str, Any]]:
    """The newest findings, up to ``each`` a check and stratum."""
    return rows(reader, _EXAMPLES, _parameters(since, tenant) | {"examples": each})


def _parameters(since: date | None, tenant: str | None) -> dict[str, Any]:
    return {
        "since": (since or date(1970, 1, 1)).isoformat(),
        "tenant": tenant or "",
        "every_tenant": int(tenant is None),
    }
