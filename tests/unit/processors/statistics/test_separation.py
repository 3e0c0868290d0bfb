from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import mannwhitneyu, norm

from lookup_audit.processors.statistics.separation import (
    auc,
    auc_interval,
    best_cut_p,
    trend_p,
    youden,
)

scores = st.lists(st.integers(0, 8).map(float), min_size=1, max_size=20)


@given(scores, scores)
def test_auc_is_mann_whitneys_u_over_all_pairs(high: list[float], low: list[float]) -> None:
    expected = mannwhitneyu(high, low).statistic / (len(high) * len(low))
    assert auc(high, low) == pytest.approx(expected)


def test_nothing_is_said_of_an_empty_group() -> None:
    assert auc([], [1.0]) is None
    assert best_cut_p([1.0], []) is None
    assert youden([], []) is None


@pytest.mark.parametrize(("n_high", "n_low", "gap"), [(30, 80, 0.8), (40, 40, 0.0), (60, 30, 1.8)])
def test_the_interval_covers_the_true_auc(n_high: int, n_low: int, gap: float) -> None:
    rng = np.random.default_rng(8)
    true, covered, draws = float(norm.cdf(gap / 2**0.5)), 0, 1_000
    for _ in range(draws):
        value = auc(list(rng.normal(gap, 1, n_high)), list(rng.normal(0, 1, n_low)))
        assert value is not None
        low, high = auc_interval(value, n_high, n_low)
        covered += low <= true <= high
    assert 0.93 <= covered / draws <= 0.99


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_a_perfect_auc_still_has_an_interval(value: float) -> None:
    low, high = auc_interval(value, 10, 10)
    assert low <= value <= high
    assert 0.05 < high - low < 0.5


def test_the_best_cut_is_tested_over_all_deals() -> None:
    # All 3 above all 3: one of the 20 deals separates as well.
    assert best_cut_p([4.0, 5.0, 6.0], [1.0, 2.0, 3.0]) == pytest.approx(1 / 20)
    assert best_cut_p([1.0, 2.0, 3.0], [4.0, 5.0, 6.0]) == pytest.approx(1.0)


def test_the_trend_is_that_of_all_deals() -> None:
    values, flags = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [False, False, True, False, True, True]
    deals = list(combinations(values, 3))
    exact = sum(sum(deal) >= 3 + 5 + 6 for deal in deals) / len(deals)
    assert trend_p(values, flags) == pytest.approx(exact, abs=0.01)
    assert trend_p(values, [True] * 6) is None
    assert trend_p([], []) is None


@given(scores, scores)
def test_the_best_cut_is_the_largest_gap_of_all_cuts(high: list[float], low: list[float]) -> None:
    found = youden(high, low)
    assert found is not None
    gaps = {
        cut: sum(h >= cut for h in high) / len(high) - sum(v >= cut for v in low) / len(low)
        for cut in {*high, *low}
    }
    assert found[1] == pytest.approx(max(gaps.values()))
    assert gaps[found[0]] == pytest.approx(found[1])
