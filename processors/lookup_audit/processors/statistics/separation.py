"""How far a score tells two groups apart, and whether chance would do as well."""

import math
from collections.abc import Sequence

import numpy as np
from scipy.optimize import brentq
from scipy.stats import ks_2samp, norm, rankdata

Scores = Sequence[float]
_HAIR = 1e-12


def auc(high: Scores, low: Scores) -> float | None:
    """Probability that one of ``high`` scores above one of ``low``, ties counted half.

    >>> auc([3.0, 2.0], [1.0, 2.0])
    0.875
    """
    if not high or not low:
        return None
    ranks = rankdata([*high, *low])
    wins = ranks[: len(high)].sum() - len(high) * (len(high) + 1) / 2
    return float(wins / (len(high) * len(low)))


def auc_interval(
    value: float, n_high: int, n_low: int, *, confidence: float = 0.95
) -> tuple[float, float]:
    """Interval of an AUC that stays inside 0..1 and has a width at 0 and 1 too.

    Newcombe 2006 (Statistics in Medicine 25:559), method 5: the values that the estimate does not
    contradict, with Hanley and McNeil's variance taken at the value, not at the estimate.
    """
    z = float(norm.ppf((1 + confidence) / 2))
    spare = (n_high + n_low) / 2 - 1

    def excess(theta: float) -> float:
        bracket = 1 + spare * ((1 - theta) / (2 - theta) + theta / (1 + theta))
        variance = theta * (1 - theta) * bracket / (n_high * n_low)
        return abs(value - theta) - z * math.sqrt(max(0.0, variance))

    # At 0 and 1 themselves the variance is nothing; a hair inside the search finds the other end.
    inside = min(max(value, _HAIR), 1 - _HAIR)
    low = 0.0 if excess(0.0) <= 0 else float(brentq(excess, 0.0, inside))
    high = 1.0 if excess(1.0) <= 0 else float(brentq(excess, inside, 1.0))
    return low, high


def best_cut_p(high: Scores, low: Scores) -> float | None:
    """Exact p that the best cut of all would separate the groups as well by chance.

    The best cut's Youden J, share(high at or above) - share(low at or above), is the one-sided
    two-sample Kolmogorov-Smirnov statistic, so its exact test already pays for having tried every
    cut. With ties it errs on the side of chance.
    """
    if not high or not low:
        return None
    found = ks_2samp(list(high), list(low), alternative="less", method="auto")
    return float(found.pvalue)


def trend_p(
    scores: Scores, right: Sequence[bool], *, seed: int = 1, draws: int = 9_999
) -> float | None:
    """One-sided p that right things do not score higher: scores are dealt anew at random.

    The statistic is the sum of the scores' ranks over the right ones; the observed deal is
    counted, so that p is never 0. No value where all are right, or none is.
    """
    flags = np.asarray(right, dtype=bool)
    count = int(flags.sum())
    if count == 0 or count == len(flags):
        return None
    ranks = rankdata(scores)
    seen = ranks[flags].sum() - 1e-9
    rng = np.random.default_rng(seed)
    as_high = sum(rng.permutation(ranks)[:count].sum() >= seen for _ in range(draws))
    return float((1 + as_high) / (1 + draws))


def youden(high: Scores, low: Scores) -> tuple[float, float] | None:
    """The cut with the largest Youden J (Youden 1950, Cancer 3:32) and that J; ``>=`` is above.

    The highest cut of equals. No value where a group is empty.
    """
    if not high or not low:
        return None
    up, down = np.sort(high), np.sort(low)
    cuts = np.unique([*high, *low])
    above_high = 1 - np.searchsorted(up, cuts, side="left") / len(up)
    above_low = 1 - np.searchsorted(down, cuts, side="left") / len(down)
    j = above_high - above_low
    best = len(j) - 1 - int(np.argmax(j[::-1]))
    return float(cuts[best]), float(j[best])
