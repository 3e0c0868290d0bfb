"""Counts of two periods, laid out for the split.

A leaf is one value of every field. Counts are kept in groups of whole agent runs, as lookups of one
run resemble each other: intervals leave one group out at a time.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

GROUPS: Final = 30
MIX_FIELDS: Final = ("tenant", "service", "language", "category")
VERSION_FIELDS: Final = ("model", "index", "reranker", "chunker")
# In the order of cause and effect: who asks what, what is deployed, what happens in the call.
FIELDS: Final = (*MIX_FIELDS, *VERSION_FIELDS, "retry", "basis")
RANK: Final = "rank"

# A pairing of versions that is rarer than this is a stray.
_STRAY = 0.01


@dataclass(frozen=True, slots=True)
class CountRow:
    """Lookups of one period, one leaf and one ruleset.

    Args:
        period: 0 before, 1 after.
        values: One for each of :data:`FIELDS`.
        ruleset_id: What the service reckoned by, ``""`` where nothing tells.
        n: Lookups in each of :data:`GROUPS` groups.
        precise: Of them, reported PRECISE.
        under: Of them, PRECISE under a ruleset, for each ruleset of either period.
    """

    period: int
    values: tuple[str, ...]
    ruleset_id: str
    n: Sequence[int]
    precise: Sequence[int]
    under: Mapping[str, Sequence[int]]


@dataclass(frozen=True, slots=True)
class Table:
    """All rows as arrays.

    Args:
        leaves: Values of each leaf.
        codes: The same as numbers, leaf by field.
        leaf: Leaf of each row.
        period: Period of each row.
        rulesets: Ids of the rulesets that rows were judged under.
        ruleset: Index of each row's own ruleset, -1 where it has none.
        n: Row by group.
        precise: Row by group.
        under: Row by ruleset by group.
    """

    leaves: list[tuple[str, ...]]
    codes: Ints
    leaf: Ints
    period: Ints
    rulesets: list[str]
    ruleset: Ints
    n: Floats
    precise: Floats
    under: Floats

    def total(self, period: int) -> int:
        """Lookups of a period."""
        return int(self.n[self.period == period].sum())

    def shares(self, period: int, field: str) -> dict[str, float]:
        """Share of each value of a field in a period; empty without lookups."""
        place = FIELDS.index(field)
        rows = np.flatnonzero(self.period == period)
        total = float(self.n[rows].sum())
        found: dict[str, float] = {}
        for row in rows:
            value = self.leaves[self.leaf[row]][place]
            found[value] = found.get(value, 0.0) + float(self.n[row].sum())
        return {value: n / total for value, n in found.items() if n}

    def ruleset_shares(self, period: int) -> dict[str, float]:
        """Share of each ruleset in a period's lookups that have one."""
        rows = (self.period == period) & (self.ruleset >= 0)
        weights = self.n[rows].sum(axis=1)
        counts = np.bincount(self.ruleset[rows], weights, minlength=len(self.rulesets))
        total = counts.sum()
        return {r: c / total for r, c in zip(self.rulesets, counts, strict=True) if c}


def make_table(rows: Sequence[CountRow]) -> Table:
    """Lay rows out; rows of one leaf and ruleset may come in parts."""
    leaves = sorted({row.values for row in rows})
    place = {values: i for i, values in enumerate(leaves)}
    rulesets = sorted({r for row in rows for r in row.under})
    number = {ruleset: i for i, ruleset in enumerate(rulesets)}
    under = np.array(
        # What was not judged under a ruleset stays as it was reported.
        [[row.under.get(r, row.precise) for r in rulesets] for row in rows], dtype=float
    )  # fmt: skip
    return Table(
        leaves=leaves,
        codes=_codes(leaves),
        leaf=np.array([place[row.values] for row in rows], dtype=np.int64),
        period=np.array([row.period for row in rows], dtype=np.int64),
        rulesets=rulesets,
        ruleset=np.array([number.get(row.ruleset_id, -1) for row in rows], dtype=np.int64),
        n=np.array([row.n for row in rows], dtype=float).reshape(len(rows), GROUPS),
        precise=np.array([row.precise for row in rows], dtype=float).reshape(len(rows), GROUPS),
        under=under.reshape(len(rows), len(rulesets), GROUPS),
    )


def _codes(leaves: Sequence[tuple[str, ...]]) -> Ints:
    columns = []
    for i in range(len(FIELDS)):
        number = {value: n for n, value in enumerate(sorted({leaf[i] for leaf in leaves}))}
        columns.append([number[leaf[i]] for leaf in leaves])
    return np.array(columns, dtype=np.int64).T.reshape(len(leaves), len(FIELDS))


def factors_of(table: Table) -> list[tuple[str, ...]]:
    """The fields that vary, in the order of cause and effect; inseparable versions together.

    Two version fields can be told apart only if every pairing of their values was seen. Those that
    cannot make one factor.
    """
    varying = [f for i, f in enumerate(FIELDS) if len(set(table.codes[:, i].tolist())) > 1]
    groups: list[tuple[str, ...]] = []
    for field in (f for f in varying if f in VERSION_FIELDS):
        joined = [g for g in groups if any(not _separable(table, field, other) for other in g)]
        groups = [g for g in groups if g not in joined]
        groups.append((*(f for g in joined for f in g), field))
    mix = [(f,) for f in varying if f in MIX_FIELDS]
    return [*mix, *groups, *((f,) for f in varying if f in ("retry", "basis"))]


def _separable(table: Table, one: str, other: str) -> bool:
    places = FIELDS.index(one), FIELDS.index(other)
    common = [
        {
            value
            for period in (0, 1)
            for value, share in table.shares(period, field).items()
            if share >= _STRAY
        }
        for field in (one, other)
    ]
    seen = {(leaf[places[0]], leaf[places[1]]) for leaf in table.leaves}
    return all((a, b) in seen for a in common[0] for b in common[1])
