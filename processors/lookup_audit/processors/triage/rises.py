"""Whether errors or refusals rose on a day, per stratum, and what may be behind it.

A stratum is a tenant, model version and mode; none is pooled with another. A new model version has
no baseline of its own, and the report says so.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from importlib import resources
from itertools import groupby
from operator import itemgetter
from typing import Literal

from lookup_audit.processors.reading import Reader, rows
from lookup_audit.processors.statistics.multiple import holm
from lookup_audit.processors.triage.causes import ALPHA, Cause, Kind, Row, weigh_causes
from lookup_audit.processors.triage.exact import fisher, smallest_p

State = Literal["rise", "no_rise", "no_baseline", "too_few"]
KINDS: tuple[Kind, ...] = ("errors", "refusals")


@dataclass(frozen=True, slots=True)
class Rise:
    """One stratum on one day.

    Args:
        kind: ``errors``: wrong answers among judged PRECISE answers. ``refusals``: refused lookups
            among those with an outcome.
        tenant: Of the stratum.
        model_version: Of the stratum.
        mode: Of the stratum.
        bad: Errors or refusals on the day.
        n: Lookups they are counted among.
        baseline_bad: The same in the baseline.
        baseline_n: The same in the baseline.
        p: Fisher's exact p-value, one-sided, that the share did not rise; ``None`` where nothing
            can be compared.
        adjusted_p: After Holm's correction over the strata.
        state: What to make of it.
        causes: Ranked; empty unless there is a rise, or no baseline to tell.
    """

    kind: Kind
    tenant: str
    model_version: str
    mode: str
    bad: int
    n: int
    baseline_bad: int
    baseline_n: int
    p: float | None
    adjusted_p: float | None
    state: State
    causes: list[Cause] = field(default_factory=list)

    @property
    def has_clear_cause(self) -> bool:
        """Whether any cause survived."""
        return any(cause.is_clear for cause in self.causes)


def newest_day(reader: Reader, tenant: str | None = None) -> date | None:
    """The last day (UTC) with an outcome; ``None`` without any."""
    found = rows(
        reader,
        "SELECT count() AS n, toString(toDate(max(occurred_at))) AS day FROM audit.cells "
        "WHERE tenant = {tenant:String} OR {every_tenant:UInt8} = 1",
        {"tenant": tenant or "", "every_tenant": int(tenant is None)},
    )[0]
    return date.fromisoformat(found["day"]) if found["n"] else None


def factors_sql() -> str:
    """The query behind a triage: lookups with an outcome, counted by what may have mattered."""
    return resources.files(__package__).joinpath("factors.sql").read_text("utf-8")


def triage(
    reader: Reader, kind: Kind, *, day: date, baseline_days: int, tenant: str | None = None
) -> list[Rise]:
    """Every stratum with a lookup on the day, the clearest rise first.

    Args:
        reader: What to read.
        kind: What may have risen.
        day: The day in question, UTC.
        baseline_days: How many days before it to compare with.
        tenant: Only this one; all unless given.
    """
    found = rows(
        reader,
        factors_sql(),
        {
            "kind": kind,
            "day": day.isoformat(),
            "since": (day - timedelta(days=baseline_days)).isoformat(),
            "tenant": tenant or "",
            "every_tenant": int(tenant is None),
        },
    )
    return read_rises(found, kind)


def read_rises(counted: Iterable[Row], kind: Kind, *, resamples: int = 9999) -> list[Rise]:
    """The same from rows of ``factors.sql``; pure.

    Args:
        counted: Rows of all strata.
        kind: What may have risen.
        resamples: Draws of a permutation test.
    """
    key = itemgetter("tenant", "model_version", "mode")
    strata = [list(group) for _, group in groupby(sorted(counted, key=key), key=key)]
    strata = [group for group in strata if any(row["on_day"] for row in group)]
    counted_rises = [_count(group, kind) for group in strata]
    adjusted = holm([rise.p for rise in counted_rises])
    rises = []
    for group, rise, value in zip(strata, counted_rises, adjusted, strict=True):
        if value is not None:
            state: State = "rise" if value <= ALPHA else rise.state
            rise = replace(rise, adjusted_p=value, state=state)
        if rise.bad and rise.state in ("rise", "no_baseline"):
            has_baseline = rise.state == "rise"
            causes = weigh_causes(group, kind, has_baseline=has_baseline, resamples=resamples)
            rise = replace(rise, causes=causes)
        rises.append(rise)
    return sorted(rises, key=lambda rise: 2.0 if rise.p is None else rise.p)


def _count(group: Sequence[Row], kind: Kind) -> Rise:
    def total(on_day: bool, bad_only: bool) -> int:
        return sum(
            row["n"] for row in group if bool(row["on_day"]) is on_day and row["bad"] >= bad_only
        )

    bad, n = total(True, True), total(True, False)
    baseline_bad, baseline_n = total(False, True), total(False, False)
    state: State = "no_rise"
    p = None
    if not baseline_n:
        state = "no_baseline"
    elif bad:
        p = fisher(bad, n, baseline_bad, baseline_n, greater=True)
        if smallest_p(bad + baseline_bad, n, n + baseline_n) > ALPHA:
            state = "too_few"
    return Rise(
        kind,
        group[0]["tenant"],
        group[0]["model_version"],
        group[0]["mode"],
        bad,
        n,
        baseline_bad,
        baseline_n,
        p,
        None,
        state,
    )
