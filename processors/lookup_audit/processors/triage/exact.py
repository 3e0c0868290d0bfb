"""The tests behind a triage: exact or permutation p-values, and intervals of differences.

Everything is a pure function of counts or values; randomness comes from a fixed seed, so that the
same data give the same report.
"""

from math import comb, inf, sqrt
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from lookup_audit.processors.statistics.proportions import wilson

SEED = 20260101
# Above this many values the permutation distribution of a mean is taken as normal.
_LARGE = 5000

Interval = tuple[float, float]
Values = NDArray[np.float64]


def fisher(found: int, n: int, others_found: int, others: int, *, greater: bool = False) -> float:
    """Fisher's exact p-value that two shares are equal.

    Args:
        found: With the property, among ``n``.
        n: Size of the first group.
        others_found: With the property, among ``others``.
        others: Size of the second group.
        greater: One-sided, against the first share being larger; else two-sided.
    """
    table = [[found, n - found], [others_found, others - others_found]]
    side = "greater" if greater else "two-sided"
    return float(stats.fisher_exact(table, alternative=side).pvalue)


def smallest_p(with_property: int, n: int, total: int) -> float:
    """The smallest one-sided p-value that any split of these margins can give.

    Args:
        with_property: How many of all have the property.
        n: Size of the first group.
        total: Of both groups.

    >>> smallest_p(3, 2, 20) > 0.01
    True
    """
    top = min(with_property, n)
    return float(stats.hypergeom.sf(top - 1, total, with_property, n))


def share_difference(found: int, n: int, others_found: int, others: int) -> Interval | None:
    """95 % interval of a difference of shares (Newcombe 1998, Stat. Med. 17:873, method 10)."""
    one, two = wilson(found, n), wilson(others_found, others)
    if one is None or two is None:
        return None
    share, other = found / n, others_found / others
    low = share - other - sqrt((share - one[0]) ** 2 + (two[1] - other) ** 2)
    high = share - other + sqrt((one[1] - share) ** 2 + (other - two[0]) ** 2)
    return low, high


def permutation_p(values: Values, others: Values, *, resamples: int = 9999) -> float:
    """Two-sided permutation p-value that two means are equal.

    All splits are tried where there are at most ``resamples``, else that many are drawn by a fixed
    seed. Above 5,000 values the normal limit of the same distribution is taken.
    """
    n, total = len(values), len(values) + len(others)
    if total > _LARGE:
        pooled = np.concatenate([values, others])
        spread = sqrt(float(pooled.var(ddof=1)) * total / (n * (total - n)))
        if spread == 0:
            return 1.0
        return float(2 * NormalDist().cdf(-abs(values.mean() - others.mean()) / spread))
    test = stats.permutation_test(
        (values, others),
        _mean_difference,
        vectorized=True,
        n_resamples=resamples if comb(total, n) > resamples else inf,
        batch=max(1, 2_000_000 // total),
        random_state=np.random.default_rng(SEED),
    )
    return float(test.pvalue)


def _mean_difference(one: Values, two: Values, axis: int) -> Values:
    difference: Values = one.mean(axis=axis) - two.mean(axis=axis)
    return difference


def mean_difference(values: Values, others: Values) -> Interval | None:
    """Welch's 95 % interval of a difference of means; no value with fewer than two on a side."""
    if min(len(values), len(others)) < 2:
        return None
    a, b = values.var(ddof=1) / len(values), others.var(ddof=1) / len(others)
    difference = float(values.mean() - others.mean())
    if a + b == 0:
        return difference, difference
    freedom = (a + b) ** 2 / (a**2 / (len(values) - 1) + b**2 / (len(others) - 1))
    half = float(stats.t.ppf(0.975, freedom) * sqrt(a + b))
    return difference - half, difference + half
