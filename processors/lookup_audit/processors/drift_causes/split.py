"""The change of a rate as a sum of causes: each mechanism replaced on its own, in every order.

A lookup is seen as a chain of mechanisms: who asks what (tenant, service, language, category), what
is deployed (versions), what happens in the call (unfiltered retry, rank fallback), then the level:
by the ruleset, as the service reports it, and the rest. Each mechanism is a share given what came
before it in the chain. The rate with some mechanisms as they are after and the others as they were
is the worth of that set; a cause's part is its Shapley value (Budhathoki, Janzing, Bloebaum, Ng
2021, "Why did the distribution change?", AISTATS, PMLR 130). What one period never showed is taken
from the other one, so that a version seen after only is a cause with all it brings about.

Intervals are those of the delete-a-group jackknife over 30 groups of whole agent runs (Kott 2001,
Journal of Official Statistics 17:521), with Student's t of one degree of freedom less than groups
hold lookups in the sparser period: no random numbers, and lookups of one run may resemble each
other as they like.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from lookup_audit.processors.drift_causes.shapley import MOST_PLAYERS, shapley
from lookup_audit.processors.drift_causes.table import GROUPS, Floats, Ints, Table, factors_of
from lookup_audit.schemas.errors import ConfigError

RULESET, REPORTING, REST = "ruleset", "reporting", "rest"
_LEVEL_FACTORS: Final = (RULESET, REPORTING, REST)
# Leaves reckoned at a time, so that memory stays small: 2^10 sets of 2,048 leaves are 16 MB.
_CHUNK: Final = 2048


@dataclass(frozen=True, slots=True)
class Part:
    """One cause's part of the change, in shares of 1.

    Args:
        factor: Fields of the factor, or ``ruleset``, ``reporting``, ``rest``.
        change: Its part.
        low: Lower end of the 95 % interval.
        high: Upper end.
    """

    factor: tuple[str, ...]
    change: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Split:
    """A change and its parts.

    Args:
        before: Rate of the first period.
        after: Rate of the second.
        n_before: Lookups of the first period.
        n_after: Lookups of the second.
        change: ``after - before``, with its interval.
        mix: Sum of the parts of traffic mix, with its interval.
        parts: In the order of cause and effect; their sum is the change.
    """

    before: float
    after: float
    n_before: int
    n_after: int
    change: Part
    mix: Part
    parts: tuple[Part, ...]


def split(table: Table) -> Split:
    """Split the change between the periods of a table.

    Raises:
        ConfigError: A period has no lookups: a rate over nothing has no value.
    """
    totals = table.total(0), table.total(1)
    if not all(totals):
        which = "first" if not totals[0] else "second"
        raise ConfigError(f"the {which} period has no lookups, so there is no change to split")
    factors = factors_of(table)
    game = _Game(table, factors)
    whole = game.worths(None)
    parts = shapley(whole)
    mixes = [i for i, factor in enumerate(factors) if factor[0] in _MIX]
    estimates = _estimates(parts, mixes)
    replicates = [
        _estimates(shapley(game.worths(group)), mixes)
        for group in (range(GROUPS) if game.degrees else ())
    ]
    halves = _halves(np.array(replicates).reshape(-1, len(estimates)), game.degrees)
    names = [*factors, *((name,) for name in _LEVEL_FACTORS)]
    made = [
        Part(name, float(value), float(value - half), float(value + half))
        for name, value, half in zip(
            [*names, ("mix",), ("change",)], estimates, halves, strict=True
        )
    ]
    return Split(
        before=float(whole[0]),
        after=float(whole[-1]),
        n_before=totals[0],
        n_after=totals[1],
        change=made[-1],
        mix=made[-2],
        parts=tuple(made[:-2]),
    )


_MIX = frozenset(("tenant", "service", "language", "category"))


def _estimates(parts: Floats, mixes: Sequence[int]) -> Floats:
    return np.array([*parts, math.fsum(parts[list(mixes)]), math.fsum(parts)])


def _halves(replicates: Floats, degrees: int) -> Floats:
    """Half widths of the intervals; infinite where too few runs tell nothing."""
    from scipy.special import stdtrit

    if not degrees:
        return np.full(replicates.shape[1], math.inf)
    spread = ((replicates - replicates.mean(axis=0)) ** 2).sum(axis=0)
    halves: Floats = stdtrit(degrees, 0.975) * np.sqrt((GROUPS - 1) / GROUPS * spread)
    return halves


class _Game:
    """Worths of all sets of mechanisms, for all lookups or without one group."""

    def __init__(self, table: Table, factors: Sequence[tuple[str, ...]]):
        if len(factors) + len(_LEVEL_FACTORS) > MOST_PLAYERS:
            raise ConfigError("more fields vary than can be split; choose one tenant or service")
        self._table = table
        self._prefixes = _prefixes(table, factors)

    @property
    def degrees(self) -> int:
        """Degrees of freedom: groups with lookups in the sparser period, less one."""
        table = self._table
        filled = [(table.n[table.period == p].sum(axis=0) > 0).sum() for p in (0, 1)]
        return int(min(filled)) - 1

    def worths(self, left_out: int | None) -> Floats:
        """The rate for every set of mechanisms that are as they are after.

        Bit i is the i-th factor; the three bits above are ruleset, reporting, rest.
        """
        table = self._table

        def kept(counts: Floats) -> Floats:
            total: Floats = counts.sum(axis=-1)
            return total if left_out is None else total - counts[..., left_out]

        n, precise, under = kept(table.n), kept(table.precise), kept(table.under)
        leaves = len(table.leaves)
        sizes = [_per_leaf(table, n, p, leaves) for p in (0, 1)]
        shares = [self._shares(sizes, i) for i in range(len(self._prefixes) - 1)]
        rates = _rates(table, n, precise, under, sizes)
        # Leaf by leaf the weight of every set, doubled with each factor.
        worths = np.zeros((1 << len(shares), rates.shape[1]))
        for start in range(0, leaves, _CHUNK):
            part = slice(start, start + _CHUNK)
            weights = np.ones((1, len(sizes[0][part])))
            for before, after in shares:
                weights = np.concatenate([weights * before[part], weights * after[part]])
            worths += weights @ rates[part]
        # Level factors are the high bits.
        flat: Floats = worths.T.reshape(-1)
        return flat

    def _shares(self, sizes: Sequence[Floats], factor: int) -> tuple[Floats, Floats]:
        """Of each leaf, its factor's share given what precedes it, before and after."""
        outer, inner = self._prefixes[factor], self._prefixes[factor + 1]
        given = [_sums(outer, size)[outer] for size in sizes]
        within = [_sums(inner, size)[inner] for size in sizes]
        return _with_fallback(within[0], given[0], within[1], given[1])


def _prefixes(table: Table, factors: Sequence[tuple[str, ...]]) -> list[Ints]:
    """Per factor, which leaves agree on everything up to and with it; first on nothing."""
    from lookup_audit.processors.drift_causes.table import FIELDS

    found = [np.zeros(len(table.leaves), dtype=np.int64)]
    columns: list[int] = []
    for factor in factors:
        columns += [FIELDS.index(field) for field in factor]
        _, place = np.unique(table.codes[:, columns], axis=0, return_inverse=True)
        found.append(place.reshape(-1).astype(np.int64))
    return found


def _per_leaf(table: Table, values: Floats, period: int, leaves: int) -> Floats:
    rows = table.period == period
    return _sums(table.leaf[rows], values[rows], leaves)


def _sums(places: Ints, values: Floats, count: int = 0) -> Floats:
    return np.bincount(places, weights=values, minlength=count).astype(np.float64)


def _with_fallback(
    top: Floats, bottom: Floats, other_top: Floats, other_bottom: Floats
) -> tuple[Floats, Floats]:
    """Two shares, each the other one where its own is over nothing."""
    with np.errstate(divide="ignore", invalid="ignore"):
        first, second = top / bottom, other_top / other_bottom
    has_first, has_second = bottom > 0, other_bottom > 0
    zero = np.zeros_like(first)
    return (
        np.where(has_first, first, np.where(has_second, second, zero)),
        np.where(has_second, second, np.where(has_first, first, zero)),
    )


def _rates(
    table: Table, n: Floats, precise: Floats, under: Floats, sizes: Sequence[Floats]
) -> Floats:
    """Leaf by the eight states of (ruleset, reporting, rest), lowest bit first."""
    leaves = len(table.leaves)
    has = table.ruleset >= 0
    own = precise.copy()
    own[has] = under[has, table.ruleset[has]]
    judged: dict[tuple[int, int], Floats] = {}
    for rules in (0, 1):
        other = _under_rules_of(table, n, under, own, rules)
        for rest in (0, 1):
            values = own if rules == rest else other
            judged[rules, rest] = _per_leaf(table, values, rest, leaves)
    excess = [_per_leaf(table, precise - own, p, leaves) for p in (0, 1)]
    reporting = _with_fallback(excess[0], sizes[0], excess[1], sizes[1])
    by_rules = [
        _with_fallback(judged[rules, 0], sizes[0], judged[rules, 1], sizes[1]) for rules in (0, 1)
    ]
    return np.stack(
        [
            by_rules[rules][rest] + reporting[reported]
            for rest in (0, 1)
            for reported in (0, 1)
            for rules in (0, 1)
        ],
        axis=1,
    )


def _under_rules_of(table: Table, n: Floats, under: Floats, own: Floats, period: int) -> Floats:
    """Per row, how many would be PRECISE by the rulesets that a period had for its service.

    Where a period had several at once, each counts by its share. A service it never saw, and a
    lookup without a ruleset, stay as they are.
    """
    if not table.rulesets:
        return own
    service = table.codes[:, 1][table.leaf]
    count = len(table.rulesets)
    rows = (table.period == period) & (table.ruleset >= 0)
    used = np.zeros((int(service.max()) + 1, count))
    np.add.at(used, (service[rows], table.ruleset[rows]), n[rows])
    totals = used.sum(axis=1)
    shares = np.divide(used, totals[:, None], out=np.zeros_like(used), where=totals[:, None] > 0)
    mixed = (under * shares[service]).sum(axis=1)
    applies = (table.ruleset >= 0) & (totals[service] > 0)
    return np.where(applies, mixed, own)
