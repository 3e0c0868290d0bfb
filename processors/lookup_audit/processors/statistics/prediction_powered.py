"""A rate from few human judgements and many of a machine, without trusting the machine.

The machine's judgements only sharpen the humans' rate: what the machine gets wrong is measured on
the answers that both judged and taken off again. A useless machine costs nothing, as its weight is
then 0.
"""

import math
from collections.abc import Sequence

from lookup_audit.processors.statistics.proportions import Estimate, wilson

# Below this the interval no longer holds 95 % (tests/unit/processors/statistics).
FEWEST_HUMAN = 30


def prediction_powered(
    both: Sequence[tuple[float, float, float]],
    machine: Sequence[tuple[float, float]],
    *,
    confidence: float = 0.95,
) -> Estimate | None:
    """The rate by PPI++ with Wilson's interval; ``None`` with under ``FEWEST_HUMAN`` humans.

    Source: Angelopoulos, Duchi & Zrnic 2023, PPI++, arXiv:2311.01453 (mean estimation with power
    tuning), with Hajek weights in every mean.

    Args:
        both: (weight, human, machine) of each answer that both judged; 1 is wrong and 0 is not.
        machine: (weight, machine) of each answer that only the machine judged.
        confidence: Of the interval.
    """
    if len(both) < FEWEST_HUMAN:
        return None
    weights = [w for w, _, _ in both]
    human = _mean(weights, [y for _, y, _ in both])
    seen = _mean(weights, [f for _, _, f in both])
    spread = _spread(weights, [f - seen for _, _, f in both])
    common = math.fsum(w * w * (y - human) * (f - seen) for w, y, f in both) / sum(weights) ** 2
    others = [w for w, _ in machine]
    unseen = _mean(others, [f for _, f in machine]) if machine else seen
    unseen_spread = _spread(others, [f - unseen for _, f in machine]) if machine else math.inf
    tuning = 0.0
    if machine and spread + unseen_spread > 0:
        # Minimises the variance below: cov(y, f) / (var(f) + var of the unseen mean).
        tuning = min(1.0, max(0.0, common / (spread + unseen_spread)))
    rate = human + tuning * (unseen - seen)
    residual = _spread(weights, [(y - human) - tuning * (f - seen) for _, y, f in both])
    effective = math.fsum(weights) ** 2 / math.fsum(w * w for w in weights)
    # Two numbers, the mean and the tuning, are fitted to the same few answers.
    residual *= effective / max(1.0, effective - 2)
    variance = residual + (tuning**2 * unseen_spread if tuning else 0.0)
    rate = min(1.0, max(0.0, rate))
    size = rate * (1 - rate) / variance if 0 < rate < 1 and variance > 0 else effective
    interval = wilson(rate * size, size, confidence=confidence)
    assert interval is not None, "there are human judgements"
    return Estimate(rate, *interval, size)


def _mean(weights: Sequence[float], values: Sequence[float]) -> float:
    return math.fsum(w * x for w, x in zip(weights, values, strict=True)) / math.fsum(weights)


def _spread(weights: Sequence[float], deviations: Sequence[float]) -> float:
    """The variance of a weighted mean."""
    whole = math.fsum(weights)
    return math.fsum((w * d) ** 2 for w, d in zip(weights, deviations, strict=True)) / whole**2
