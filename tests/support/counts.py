"""Rows of counts for tests of the cause split."""

from collections.abc import Mapping, Sequence

from lookup_audit.processors.drift_causes.table import FIELDS, GROUPS, CountRow

USUAL = {
    "tenant": "acme",
    "service": "kb",
    "language": "en",
    "category": "howto",
    "model": "m@1",
    "index": "kb-1",
    "reranker": "",
    "chunker": "c@1",
    "retry": "no",
    "basis": "other",
}


def spread(count: int) -> list[int]:
    """A count over all groups, as evenly as can be."""
    return [count * (g + 1) // GROUPS - count * g // GROUPS for g in range(GROUPS)]


def count_row(
    period: int,
    n: int | Sequence[int],
    precise: int | Sequence[int],
    *,
    ruleset: str = "r1",
    under: Mapping[str, int] | None = None,
    **values: str,
) -> CountRow:
    """A row whose unnamed fields are the usual ones.

    Args:
        period: 0 or 1.
        n: Lookups, in all or by group.
        precise: Of them, reported PRECISE.
        ruleset: Reckoned by.
        under: PRECISE under each ruleset; as reported under its own where it is not given.
        **values: Fields.
    """
    groups = spread(precise) if isinstance(precise, int) else list(precise)
    return CountRow(
        period,
        tuple((USUAL | values)[field] for field in FIELDS),
        ruleset,
        spread(n) if isinstance(n, int) else list(n),
        groups,
        {ruleset: groups} | {name: spread(count) for name, count in (under or {}).items()},
    )
