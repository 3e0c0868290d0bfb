"""How much more a rate varies than independent calls would: the design effect ``D``.

Calls of one agent run succeed and fail together, so ``n`` calls hold less information than ``n``
independent ones. ``D`` is the variance of counts over blocks of 1, 10 and 60 minutes, divided by
what independent calls would have; the largest of the three counts. From few blocks it is a guess,
so that thin strata use what the strata of their mode say together.
"""

import math
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

BLOCK_MINUTES: Final = (1, 10, 60)
# With fewer blocks a stratum's own figure is not trusted (500 calls in 25 blocks broke the
# promise threefold, with the pooled figure they kept it).
TRUSTED_BLOCKS: Final = 100


class Squares(NamedTuple):
    """Sums over blocks, from which the variance around any mean follows.

    Args:
        kk: Of successes squared.
        kn: Of successes times calls.
        nn: Of calls squared.
        n: Of calls.
        blocks: How many blocks.
    """

    kk: float = 0.0
    kn: float = 0.0
    nn: float = 0.0
    n: float = 0.0
    blocks: int = 0

    def add(self, k: float, n: float) -> "Squares":
        """With one more block."""
        return Squares(
            self.kk + k * k, self.kn + k * n, self.nn + n * n, self.n + n, self.blocks + 1
        )

    def plus(self, other: "Squares") -> "Squares":
        """Both together."""
        return Squares(
            self.kk + other.kk,
            self.kn + other.kn,
            self.nn + other.nn,
            self.n + other.n,
            self.blocks + other.blocks,
        )

    def around(self, mean: float) -> float:
        """Sum of squared deviations of successes from ``calls * mean``."""
        return max(0.0, self.kk - 2.0 * mean * self.kn + mean * mean * self.nn)


NO_SQUARES: Final = Squares()


class Spread(NamedTuple):
    """What one block length says.

    Args:
        seen: Sum of squared deviations.
        expected: What independent calls would give.
        blocks: How many blocks.
    """

    seen: float = 0.0
    expected: float = 0.0
    blocks: int = 0


def spread(bins: Iterable[tuple[Squares, float]]) -> Spread:
    """The spread over bins, each with its own mean."""
    seen = expected = 0.0
    blocks = 0
    for squares, mean in bins:
        seen += squares.around(mean)
        expected += squares.n * mean * (1.0 - mean)
        blocks += squares.blocks
    return Spread(seen, expected, blocks)


def pool(spreads: Iterable[Sequence[Spread]]) -> tuple[Spread, ...]:
    """Several strata's spreads together, block length by block length."""
    totals = [Spread() for _ in BLOCK_MINUTES]
    for scales in spreads:
        for index, one in enumerate(scales):
            total = totals[index]
            totals[index] = Spread(
                total.seen + one.seen, total.expected + one.expected, total.blocks + one.blocks
            )
    return tuple(totals)


def design_effect(scales: Sequence[Spread]) -> float:
    """The largest variance ratio that chance does not explain; 1 where there is none.

    >>> design_effect([Spread(220.0, 100.0, 400), Spread(90.0, 100.0, 40)])
    2.2
    >>> design_effect([Spread(105.0, 100.0, 400)])
    1.0
    """
    largest = 1.0
    for one in scales:
        if one.blocks > 1 and one.expected > 0.0:
            ratio = one.seen / one.expected
            if ratio > 1.0 + 2.0 * math.sqrt(2.0 / one.blocks):
                largest = max(largest, ratio)
    return largest


def is_trusted(scales: Sequence[Spread]) -> bool:
    """Whether a stratum's own figure may be used."""
    return bool(scales) and scales[0].blocks >= TRUSTED_BLOCKS
