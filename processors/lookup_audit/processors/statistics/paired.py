"""Two treatments of the same things: exact tests, and intervals of the difference.

The pairs must be independent of each other, as the questions of a gold set are.
"""

import math
from collections.abc import Sequence

import numpy as np
from scipy.stats import binom, norm

from lookup_audit.processors.statistics.proportions import wilson

# Up to here every pattern of signs is looked at; beyond, a random draw of them.
_EXACT_PAIRS = 16
_BLOCK_CELLS = 4_000_000


def mcnemar_exact(only_a: int, only_b: int) -> float:
    """Two-sided exact p of McNemar's test: the discordant pairs against a fair coin.

    Twice the smaller tail of Binomial(only_a + only_b, 1/2), at most 1 (McNemar 1947,
    Psychometrika 12:153; the conditional exact form). 1 without a discordant pair.

    >>> mcnemar_exact(1, 7)
    0.0703125
    """
    return min(1.0, 2.0 * float(binom.cdf(min(only_a, only_b), only_a + only_b, 0.5)))


def paired_difference(
    both: int, only_a: int, only_b: int, neither: int, *, confidence: float = 0.95
) -> tuple[float, float] | None:
    """Interval of share(A) - share(B) over the same things.

    Newcombe's method 10 (Newcombe 1998, Statistics in Medicine 17:2635): the Wilson limits of
    both shares, squared and added, less what their correlation explains. No interval over zero
    pairs.
    """
    n = both + only_a + only_b + neither
    of_a = wilson(both + only_a, n, confidence=confidence)
    of_b = wilson(both + only_b, n, confidence=confidence)
    if of_a is None or of_b is None:
        return None
    share_a, share_b = (both + only_a) / n, (both + only_b) / n
    phi = _correlation(both, only_a, only_b, neither)

    def reach(down: float, up: float) -> float:
        return math.sqrt(max(0.0, down * down - 2 * phi * down * up + up * up))

    difference = share_a - share_b
    low = difference - reach(share_a - of_a[0], of_b[1] - share_b)
    high = difference + reach(of_a[1] - share_a, share_b - of_b[0])
    return max(-1.0, low), min(1.0, high)


def _correlation(both: int, only_a: int, only_b: int, neither: int) -> float:
    """Phi with Newcombe's correction for continuity; 0 where a margin is empty."""
    margins = (both + only_a) * (only_b + neither) * (both + only_b) * (only_a + neither)
    if margins == 0:
        return 0.0
    determinant = both * neither - only_a * only_b
    if determinant > 0:
        corrected = max(determinant - (both + only_a + only_b + neither) / 2, 0.0)
        return corrected / math.sqrt(margins)
    return determinant / math.sqrt(margins)


def sign_flip_p(differences: Sequence[float], *, seed: int = 1, draws: int = 9_999) -> float | None:
    """Two-sided p that paired differences have no direction: their signs are flipped at random.

    Exact over all sign patterns up to 16 differences that are not 0, else by ``draws`` random ones
    counted with the observed one, so that p is never 0 (Phipson & Smyth 2010, SAGMB 9:39). No
    value without pairs.
    """
    if not differences:
        return None
    values = np.array([d for d in differences if d != 0.0])
    if not len(values):
        return 1.0
    seen = abs(values.sum()) - 1e-12
    if len(values) <= _EXACT_PAIRS:
        patterns = (np.arange(2 ** len(values))[:, None] >> np.arange(len(values))) & 1
        return float(np.mean(np.abs((1 - 2 * patterns) @ values) >= seen))
    rng = np.random.default_rng(seed)
    as_far = 0
    for size in _blocks(draws, len(values)):
        signs = rng.choice((-1.0, 1.0), size=(size, len(values)))
        as_far += int(np.count_nonzero(np.abs(signs @ values) >= seen))
    return (1 + as_far) / (1 + draws)


def mean_difference(
    differences: Sequence[float], *, confidence: float = 0.95, seed: int = 1, draws: int = 4_000
) -> tuple[float, float] | None:
    """Interval of the mean of paired differences by the bias-corrected accelerated bootstrap.

    BCa of Efron 1987 (JASA 82:171), seeded. No interval for fewer than two pairs, or where all
    differences are equal: a resample then never varies, and an interval of no width would claim
    to know.
    """
    values = np.asarray(differences, dtype=float)
    n = len(values)
    if n < 2 or np.all(values == values[0]):
        return None
    rng = np.random.default_rng(seed)
    mean = values.mean()
    drawn = [values[rng.integers(0, n, size=(size, n))].mean(axis=1) for size in _blocks(draws, n)]
    means = np.sort(np.concatenate(drawn))
    below = (np.count_nonzero(means < mean) + np.count_nonzero(means == mean) / 2) / draws
    bias = float(norm.ppf(np.clip(below, 1 / draws, 1 - 1 / draws)))
    left_out = (values.sum() - values) / (n - 1)
    apart = left_out.mean() - left_out
    acceleration = float((apart**3).sum() / (6 * (apart**2).sum() ** 1.5))
    ends = []
    for tail in ((1 - confidence) / 2, (1 + confidence) / 2):
        z = bias + float(norm.ppf(tail))
        ends.append(float(np.quantile(means, norm.cdf(bias + z / (1 - acceleration * z)))))
    return ends[0], ends[1]


def _blocks(draws: int, n: int) -> list[int]:
    """Sizes that add up to ``draws``, each of a few million numbers at most."""
    size = max(1, _BLOCK_CELLS // n)
    return [min(size, draws - start) for start in range(0, draws, size)]
