"""A machine's judgements may sharpen people's, and must never bend them."""

import numpy as np
import pytest

from lookup_audit.processors.statistics.prediction_powered import (
    FEWEST_HUMAN,
    prediction_powered,
)
from lookup_audit.processors.statistics.proportions import Sums, estimate

DAYS = 2_000
WRONG = 0.3


def judged_day(
    random: np.random.Generator, *, people: int, machine: int, accuracy: float, bias: float = 0.0
) -> tuple[list[tuple[float, float, float]], list[tuple[float, float]]]:
    """Judgements of one day: (weight, human, machine) and (weight, machine)."""
    size = people + machine
    weight = random.choice([1.0, 4.0], size)
    # Light answers are wrong more often, so that an unweighted rate is too high.
    wrong = random.random(size) < np.where(weight > 1, WRONG - 0.05, WRONG + 0.2)
    said = np.where(random.random(size) < accuracy, wrong, random.random(size) < 0.5 + bias)
    rows = list(zip(weight.tolist(), wrong.astype(float), said.astype(float), strict=True))
    return rows[:people], [(w, f) for w, _, f in rows[people:]]


@pytest.mark.parametrize(("accuracy", "bias"), [(0.0, 0.4), (0.7, 0.4), (0.95, 0.0)])
def test_the_interval_holds_the_true_rate_whatever_the_machine_says(
    accuracy: float, bias: float
) -> None:
    random = np.random.default_rng(7)
    held, total = 0, 0.0
    for _ in range(DAYS):
        found = prediction_powered(
            *judged_day(random, people=120, machine=600, accuracy=accuracy, bias=bias)
        )
        assert found is not None
        held += found.low <= WRONG <= found.high
        total += found.value
    assert 0.93 <= held / DAYS <= 0.97
    assert total / DAYS == pytest.approx(WRONG, abs=0.005)


def test_a_good_machine_makes_the_interval_shorter_and_a_useless_one_hardly_longer() -> None:
    random = np.random.default_rng(8)

    def mean_width(accuracy: float) -> tuple[float, float]:
        widths = []
        for _ in range(200):
            both, machine = judged_day(random, people=120, machine=600, accuracy=accuracy)
            alone = estimate(Sums.of([(w * y, w) for w, y, _ in both]))
            found = prediction_powered(both, machine)
            assert alone is not None
            assert found is not None
            widths.append((found.high - found.low, alone.high - alone.low))
        told = np.mean(widths, axis=0)
        return float(told[0]), float(told[1])

    good, alone = mean_width(0.95)
    assert good < 0.7 * alone
    useless, alone = mean_width(0.0)
    assert useless < 1.02 * alone


def test_with_too_few_people_there_is_no_value() -> None:
    both = [(1.0, 1.0, 1.0)] * (FEWEST_HUMAN - 1)
    assert prediction_powered(both, [(1.0, 1.0)] * 100) is None
    enough = prediction_powered([*both, (1.0, 1.0, 1.0)], [])
    assert enough == estimate(Sums.of([(1, 1)] * FEWEST_HUMAN))


def test_the_rate_is_the_formula_by_hand() -> None:
    """Equal weights: 40 of 100 by people, machine 50 of 100 there and 60 of 100 elsewhere."""
    both = [(1.0, 1.0, 1.0)] * 35 + [(1.0, 1.0, 0.0)] * 5
    both += [(1.0, 0.0, 1.0)] * 15 + [(1.0, 0.0, 0.0)] * 45
    machine = [(1.0, 1.0)] * 60 + [(1.0, 0.0)] * 40
    common = (0.35 - 0.4 * 0.5) / 100
    tuning = common / (0.5 * 0.5 / 100 + 0.6 * 0.4 / 100)
    found = prediction_powered(both, machine)
    assert found is not None
    assert found.value == pytest.approx(0.4 + tuning * (0.6 - 0.5))
