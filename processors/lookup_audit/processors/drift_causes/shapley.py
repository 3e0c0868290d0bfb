"""The Shapley value of a finite game: what each player adds, averaged over all orders.

Shapley 1953. The values add up to the worth of all players less the worth of none, and do not
depend on the order in which the players are listed.
"""

import math
from typing import Final

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

MOST_PLAYERS: Final = 16


def shapley(worth: Floats) -> Floats:
    """The value of each player.

    Args:
        worth: ``worth[s]`` is the worth of the players whose bits are set in ``s``; 2^n of them.

    >>> shapley(np.array([0.0, 1.0, 2.0, 5.0]))
    array([2., 3.])
    """
    players = len(worth).bit_length() - 1
    coalitions = np.arange(len(worth))
    sizes = np.array([int(s).bit_count() for s in coalitions])
    shares = np.array(
        [
            1.0 / (players * math.comb(players - 1, size)) if size < players else 0.0
            for size in range(players + 1)
        ]
    )
    values = np.empty(players)
    for player in range(players):
        without = coalitions[(coalitions >> player) & 1 == 0]
        gains = worth[without | (1 << player)] - worth[without]
        values[player] = math.fsum(shares[sizes[without]] * gains)
    return values
