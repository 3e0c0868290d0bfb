import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from lookup_audit.processors.statistics.paired import (
    mcnemar_exact,
    mean_difference,
    paired_difference,
    sign_flip_p,
)

counts = st.integers(0, 60)


@pytest.mark.parametrize(("only_a", "only_b"), [(0, 0), (1, 7), (5, 5), (33, 4), (0, 6)])
def test_mcnemar_is_the_two_sided_binomial_test(only_a: int, only_b: int) -> None:
    discordant = only_a + only_b
    expected = binomtest(only_a, discordant, 0.5).pvalue if discordant else 1.0
    assert mcnemar_exact(only_a, only_b) == pytest.approx(expected, rel=1e-12)


def test_the_paired_interval_is_that_of_the_textbook() -> None:
    # Altman et al., Statistics with Confidence (2000), table 6.2: 0.122, 0.011 to 0.226.
    low, high = paired_difference(14, 5, 0, 22) or (0.0, 0.0)
    assert (round(low, 3), round(high, 3)) == (0.011, 0.226)


@given(counts, counts, counts, counts)
def test_the_paired_interval_holds_the_difference_and_turns_with_the_sides(
    both: int, only_a: int, only_b: int, neither: int
) -> None:
    interval = paired_difference(both, only_a, only_b, neither)
    n = both + only_a + only_b + neither
    if n == 0:
        assert interval is None
        return
    assert interval is not None
    difference = (only_a - only_b) / n
    assert -1.0 <= interval[0] <= difference + 1e-12
    assert difference - 1e-12 <= interval[1] <= 1.0
    turned = paired_difference(both, only_b, only_a, neither)
    assert turned == pytest.approx((-interval[1], -interval[0]))


@pytest.mark.parametrize(
    "shares",
    [(0.5, 0.2, 0.05, 0.25), (0.1, 0.05, 0.05, 0.8), (0.85, 0.02, 0.05, 0.08)],
    ids=["moderate", "rare", "nearly all"],
)
def test_the_paired_interval_covers_the_true_difference(shares: tuple[float, ...]) -> None:
    rng = np.random.default_rng(11)
    true = shares[1] - shares[2]
    draws = rng.multinomial(80, shares, size=2_000)
    covered = 0
    for table in draws:
        interval = paired_difference(*map(int, table))
        covered += interval is not None and interval[0] <= true <= interval[1]
    # Conservative where both shares are extreme; never far below its level.
    assert 0.93 <= covered / len(draws) <= 0.99


def test_sign_flips_of_few_pairs_are_counted_exactly() -> None:
    # Of the 8 patterns of signs, only all plus and all minus reach a sum of 6.
    assert sign_flip_p([1.0, 2.0, 3.0]) == pytest.approx(2 / 8)


def test_sign_flips_pass_over_pairs_that_do_not_differ() -> None:
    assert sign_flip_p([0.0, 1.0, 2.0, 3.0, 0.0]) == sign_flip_p([1.0, 2.0, 3.0])
    assert sign_flip_p([0.0, 0.0]) == 1.0
    assert sign_flip_p([]) is None


def test_random_sign_flips_agree_with_the_binomial_test() -> None:
    # Equal sizes: the sum is a count of signs, so the sign test is the truth.
    differences = [1.0] * 25 + [-1.0] * 10
    expected = binomtest(25, 35, 0.5).pvalue
    assert sign_flip_p(differences) == pytest.approx(expected, abs=0.004)


def test_the_bootstrap_has_no_interval_where_nothing_varies() -> None:
    assert mean_difference([]) is None
    assert mean_difference([0.5]) is None
    assert mean_difference([0.0] * 40) is None


def test_the_bootstrap_is_repeatable_and_near_the_normal_interval() -> None:
    values = list(np.random.default_rng(5).normal(0.1, 0.3, 200))
    interval = mean_difference(values)
    assert interval == mean_difference(values)
    half = 1.96 * float(np.std(values, ddof=1)) / math.sqrt(len(values))
    assert interval == pytest.approx((np.mean(values) - half, np.mean(values) + half), abs=0.008)


def test_the_bootstrap_covers_the_true_mean() -> None:
    rng = np.random.default_rng(3)
    # Differences of coverages: mostly none, now and then a half or a whole.
    sizes, shares = np.array([-0.5, 0.0, 0.5, 1.0]), [0.1, 0.6, 0.2, 0.1]
    true, covered, days = float(sizes @ shares), 0, 500
    for _ in range(days):
        interval = mean_difference(list(rng.choice(sizes, 70, p=shares)), draws=1_000)
        covered += interval is not None and interval[0] <= true <= interval[1]
    assert 0.92 <= covered / days <= 0.98
