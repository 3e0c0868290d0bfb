import itertools
import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lookup_audit.processors.drift_causes.shapley import shapley
from tests.support.strategies import examples

GAMES = st.integers(1, 4).flatmap(
    lambda n: st.lists(st.floats(-1, 1, width=32), min_size=2**n, max_size=2**n)
)


@examples(200)
@given(GAMES)
def test_values_add_up_to_the_worth_of_all(worth: list[float]) -> None:
    assert math.isclose(math.fsum(shapley(np.array(worth))), worth[-1] - worth[0], abs_tol=1e-12)


@examples(100)
@given(GAMES)
def test_a_value_is_the_mean_gain_over_all_orders(worth: list[float]) -> None:
    players = len(worth).bit_length() - 1
    gains = [0.0] * players
    orders = list(itertools.permutations(range(players)))
    for order in orders:
        coalition = 0
        for player in order:
            gains[player] += worth[coalition | 1 << player] - worth[coalition]
            coalition |= 1 << player
    assert np.allclose(shapley(np.array(worth)), np.array(gains) / len(orders), atol=1e-12)


@examples(100)
@given(GAMES, st.randoms(use_true_random=False))
def test_listing_the_players_otherwise_changes_no_value(worth: list[float], chance: object) -> None:
    players = len(worth).bit_length() - 1
    order = list(range(players))
    chance.shuffle(order)  # type: ignore[attr-defined]
    listed = [
        worth[sum(1 << order[bit] for bit in range(players) if s >> bit & 1)]
        for s in range(len(worth))
    ]
    values = shapley(np.array(worth))
    assert np.allclose(shapley(np.array(listed)), values[order], atol=1e-12)


def test_a_player_who_adds_nothing_gets_exactly_nothing() -> None:
    worth = np.array([0.1, 0.7, 0.1, 0.7])
    assert shapley(worth)[1] == 0.0
