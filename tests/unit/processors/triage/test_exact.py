from itertools import combinations
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from lookup_audit.processors.triage.exact import (
    fisher,
    mean_difference,
    permutation_p,
    share_difference,
    smallest_p,
)
from tests.support.strategies import examples


def test_fisher_is_the_tail_of_the_hypergeometric_counted_by_hand() -> None:
    # 3 of 4 against 1 of 6: tables as extreme are 3 and 4 of the 4 bad among the first four.
    tail = (comb(4, 3) * comb(6, 1) + comb(4, 4) * comb(6, 0)) / comb(10, 4)
    assert fisher(3, 4, 1, 6, greater=True) == pytest.approx(tail)
    assert smallest_p(4, 4, 10) == pytest.approx(1 / comb(10, 4))


def test_the_interval_of_a_difference_is_the_published_one() -> None:
    # Newcombe 1998, table II, 56/70 against 48/80, method 10.
    assert share_difference(56, 70, 48, 80) == pytest.approx((0.0524, 0.3339), abs=5e-5)
    assert share_difference(0, 0, 1, 2) is None


def test_a_small_permutation_test_tries_every_split() -> None:
    values, others = np.array([9.0, 7.0, 8.0]), np.array([1.0, 2.0, 7.5, 3.0])
    pooled = [*values, *others]
    observed = values.mean() - others.mean()
    as_far = 0
    for chosen in combinations(range(7), 3):
        one = np.mean([pooled[i] for i in chosen])
        two = np.mean([pooled[i] for i in range(7) if i not in chosen])
        as_far += one - two >= observed - 1e-9
    assert permutation_p(values, others) == pytest.approx(min(1, 2 * as_far / comb(7, 3)))


def test_the_same_data_give_the_same_p_value() -> None:
    drawn = np.random.default_rng(3).normal(size=80)
    first = permutation_p(drawn[:30], drawn[30:])
    assert first == permutation_p(drawn[:30], drawn[30:])
    assert first == pytest.approx(stats.ttest_ind(drawn[:30], drawn[30:]).pvalue, abs=0.03)


def test_many_values_take_the_normal_limit() -> None:
    drawn = np.random.default_rng(4).exponential(size=8000)
    drawn[:3000] += 0.03
    expected = stats.ttest_ind(drawn[:3000], drawn[3000:]).pvalue
    assert permutation_p(drawn[:3000], drawn[3000:]) == pytest.approx(expected, rel=0.02)
    assert permutation_p(np.ones(3000), np.ones(3000)) == 1.0


@examples(30)
@given(st.lists(st.floats(-5, 5), min_size=5, max_size=9), st.lists(st.floats(-5, 5), min_size=3))
def test_the_interval_of_a_difference_of_means_is_welchs(
    values: list[float], others: list[float]
) -> None:
    one, two = np.array(values).round(2), np.array(others).round(2)
    found = mean_difference(one, two)
    assert found is not None
    if one.var() + two.var() > 0:
        expected = stats.ttest_ind(one, two, equal_var=False).confidence_interval(0.95)
        assert found == pytest.approx((expected.low, expected.high), abs=1e-6)
    assert mean_difference(one[:1], two) is None
