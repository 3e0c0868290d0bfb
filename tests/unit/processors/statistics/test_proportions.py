"""Intervals by hand, by an independent library, and by simulated days with known rates."""

import doctest
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from lookup_audit.processors.sampling.plan import Stratum, probability, solve_scale
from lookup_audit.processors.statistics import proportions
from lookup_audit.processors.statistics.proportions import Estimate, Sums, estimate, odds, wilson

DAYS = 2_000
Flags = NDArray[np.bool_]
Floats = NDArray[np.float64]


def test_the_examples_in_the_docstrings_hold() -> None:
    assert doctest.testmod(proportions).failed == 0


@pytest.mark.parametrize(("hits", "n"), [(0, 1), (0, 40), (16, 45), (45, 45), (3, 10_000)])
def test_wilson_is_the_interval_of_an_independent_library(hits: int, n: int) -> None:
    known = stats.binomtest(hits, n).proportion_ci(method="wilson")
    assert wilson(hits, n) == pytest.approx((known.low, known.high), abs=1e-12)


def test_a_rate_over_nothing_has_no_value() -> None:
    assert wilson(0, 0) is None
    assert estimate(Sums()) is None
    assert estimate(Sums.of([(0, 0), (0, 0)])) is None
    assert odds(None) is None


@given(st.integers(0, 200), st.integers(0, 200))
def test_single_unweighted_lookups_get_wilsons_own_interval(hits: int, misses: int) -> None:
    found = estimate(Sums.of([(1, 1)] * hits + [(0, 1)] * misses))
    if hits + misses == 0:
        assert found is None
        return
    assert found is not None
    assert found.n_effective == pytest.approx(hits + misses)
    assert (found.low, found.high) == pytest.approx(wilson(hits, hits + misses), abs=1e-9)


clusters = st.lists(
    st.floats(0.5, 50).flatmap(lambda b: st.tuples(st.floats(0, b), st.just(b))), min_size=1
)


@given(clusters)
def test_an_interval_holds_its_rate_and_stays_within_bounds(
    pairs: list[tuple[float, float]],
) -> None:
    found = estimate(Sums.of(pairs))
    assert found is not None
    assert 0 <= found.low <= found.value + 1e-9
    assert found.value - 1e-9 <= found.high <= 1
    assert found.n_effective > 0


@given(clusters, clusters, st.floats(0.01, 100))
def test_parts_of_a_period_add_up_and_the_weights_unit_does_not_matter(
    one: list[tuple[float, float]], other: list[tuple[float, float]], unit: float
) -> None:
    whole = estimate(Sums.of(one + other))
    joined = estimate(Sums.of(one) + Sums.of(other))
    scaled = estimate(Sums.of([(a * unit, b * unit) for a, b in one + other]))
    assert whole is not None
    assert joined is not None
    assert scaled is not None
    for found in (joined, scaled):
        assert found.value == pytest.approx(whole.value, abs=1e-9)
        assert (found.low, found.high) == pytest.approx((whole.low, whole.high), abs=1e-6)


def test_answers_shared_by_several_lookups_count_less_than_as_many_single_ones() -> None:
    single = estimate(Sums.of([(1, 1)] * 30 + [(0, 1)] * 70))
    shared = estimate(Sums.of([(5, 5)] * 6 + [(0, 5)] * 14))
    assert single is not None
    assert shared is not None
    assert shared.value == single.value
    assert shared.n_effective == pytest.approx(20, rel=0.01)


def test_a_ratio_has_the_shares_ends_and_no_value_over_nothing() -> None:
    assert odds(Estimate(0.25, 0.2, 0.5, 10)) == pytest.approx((1 / 3, 0.25, 1.0))
    assert odds(Estimate(1.0, 0.6, 1.0, 10)) is None
    assert odds(Estimate(0.9, 0.6, 1.0, 10)) == pytest.approx((9.0, 1.5, None))


# A day of known rates: level x class (plain, near a threshold, mismatching). Errors and refusals
# differ by class, so that a sample which ignores its weights is biased.
LEVELS, CLASSES = ("PRECISE", "NONE", "REFERENCE"), ("plain", "near_threshold", "mismatch")
SHARE_OF_LEVEL = np.array([0.45, 0.25, 0.30])
SHARE_OF_CLASS = np.array([0.85, 0.12, 0.03])
WRONG = np.array([0.10, 0.30, 0.50])
REFUSED = np.array([[0.05, 0.05, 0.05], [0.70, 0.50, 0.40], [0.20, 0.20, 0.20]])

_ERROR_RATE = float(SHARE_OF_CLASS @ WRONG)
_ERROR_SHARE = 0.45 * 0.95 * _ERROR_RATE
_REFUSAL_RATE = float(SHARE_OF_CLASS @ REFUSED[1])
TRUE = {
    "high_score_error_rate": _ERROR_RATE,
    "high_score_error_share": _ERROR_SHARE,
    "low_score_refusal_rate": _REFUSAL_RATE,
    "low_score_refusal_share": 0.25 * _REFUSAL_RATE,
    "ratio": _ERROR_SHARE / (0.25 * _REFUSAL_RATE),
}


def everyone(day: Floats) -> Floats:
    """The same probability for all."""
    return np.full(day.shape, 300 / day.size)


def oversampled(day: Floats) -> Floats:
    """The product's own plan: near-threshold and mismatching lookups, and small strata, more."""
    populations = {
        Stratum("dense", "m", LEVELS[number // 3], CLASSES[number % 3]): int(count)
        for number, count in enumerate(np.bincount(day.astype(int), minlength=9))
        if count
    }
    scale = solve_scale(populations, 300)
    of = {
        LEVELS.index(s.level) * 3 + CLASSES.index(s.lookup_class): probability(s, n, scale)
        for s, n in populations.items()
    }
    chances: Floats = np.array([of.get(number, 1.0) for number in range(9)])
    return np.asarray(chances[day.astype(int)])


def simulate(plan: Callable[[Floats], Floats], lookups_an_answer: int) -> dict[str, Any]:
    """How often each interval held the true rate, and each rate's mean."""
    random = np.random.default_rng(20_261_201)
    held = dict.fromkeys(TRUE, 0)
    sums = dict.fromkeys(("high_score_error_share", "low_score_refusal_share"), 0.0)
    for _ in range(DAYS):
        for name, found in simulated_day(random, plan, lookups_an_answer).items():
            assert found is not None
            held[name] += found[1] <= TRUE[name] <= (found[2] or np.inf)
            if name in sums:
                sums[name] += found[0]
    return {n: count / DAYS for n, count in held.items()} | {"mean": sums}


def simulated_day(
    random: np.random.Generator, plan: Callable[[Floats], Floats], lookups_an_answer: int
) -> dict[str, tuple[float, float, float | None] | None]:
    size = 3_000
    level = random.choice(3, size, p=SHARE_OF_LEVEL)
    kind = random.choice(3, size, p=SHARE_OF_CLASS)
    answer = np.arange(size) // lookups_an_answer
    shared = random.random((2, int(answer[-1]) + 1))
    refused = shared[0][answer] < REFUSED[level, kind]
    wrong = ~refused & (shared[1][answer] < WRONG[kind])
    chance = plan((level * 3 + kind).astype(float))
    drawn = random.random(size) < chance
    weight, answer = 1 / chance[drawn], answer[drawn] - answer[drawn].min()
    error, high = (wrong & (level == 0))[drawn], (~refused & (level == 0))[drawn]
    refusal, low = (refused & (level == 1))[drawn], (level == 1)[drawn]
    every = np.ones_like(low)

    def rate(of: Flags, among: Flags) -> Estimate | None:
        a = np.bincount(answer, weights=weight * of)
        b = np.bincount(answer, weights=weight * among)
        a, b = a[b > 0], b[b > 0]
        return estimate(Sums(len(b), a.sum(), b.sum(), (a * a).sum(), (a * b).sum(), (b * b).sum()))

    rates = {
        "high_score_error_rate": rate(error, high),
        "high_score_error_share": rate(error, every),
        "low_score_refusal_rate": rate(refusal, low),
        "low_score_refusal_share": rate(refusal, every),
    }
    ratio = odds(rate(error, error | refusal))
    return {n: (r.value, r.low, r.high) if r else None for n, r in rates.items()} | {"ratio": ratio}


@pytest.mark.parametrize(
    ("plan", "lookups_an_answer"),
    [
        pytest.param(everyone, 1, id="all alike"),
        pytest.param(oversampled, 1, id="oversampled"),
        pytest.param(oversampled, 3, id="oversampled, three lookups an answer"),
    ],
)
def test_intervals_hold_the_true_rate_on_93_to_97_days_of_100(
    plan: Callable[[Floats], Floats], lookups_an_answer: int
) -> None:
    held = simulate(plan, lookups_an_answer)
    mean = held.pop("mean")
    assert {name: share for name, share in held.items() if not 0.93 <= share <= 0.97} == {}
    for name, total in mean.items():
        assert total / DAYS == pytest.approx(TRUE[name], rel=0.02), "the estimate is biased"
