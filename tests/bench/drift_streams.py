"""Streams of the drift bench: with and without a change, and with the nuisances of real traffic."""

import math

import numpy as np
import numpy.typing as npt

Counts = npt.NDArray[np.int64]


def batches(
    kind: str, source: np.random.Generator, rate: float, events: int, size: int
) -> tuple[Counts, Counts]:
    """Successes and events of batches without a change.

    Args:
        kind: ``iid``; ``edge`` wanders by 1 point; ``season`` has traffic of +-80 % and a rate of
            +-3 points over a day of 1440 events; ``burst`` has runs of five correlated events
            (design effect 2.2).
        source: Randomness.
        rate: Share of successes.
        events: About how many.
        size: Of a batch.
    """
    count = events // size
    time = np.arange(count) * size
    even = np.full(count, size)
    if kind == "iid":
        return source.binomial(size, rate, count), even
    if kind == "edge":
        return source.binomial(size, rate + 0.01 * np.sin(2 * np.pi * time / 20_000), count), even
    if kind == "season":
        phase = np.sin(2 * np.pi * time / 1440)
        n = source.poisson(size * (1 + 0.8 * phase))
        return source.binomial(n, rate + 0.03 * phase), n
    if kind == "burst":
        scale = 1 / 0.3 - 1
        runs = events // 5 + 1
        rates = source.beta(rate * scale, (1 - rate) * scale, (runs, 1))
        calls = (source.random((runs, 5)) < rates).reshape(-1)[: count * size]
        return calls.reshape(count, size).sum(1), even
    raise ValueError(kind)


def optimum(before: float, after: float, between_alarms: float) -> float:
    """Mean delay, in events, of the CUSUM that knows both rates, at the same rate of false alarms.

    Args:
        before: Rate before the change.
        after: Rate after it.
        between_alarms: Mean number of events between two false alarms.
    """
    forth, back = _divergence(after, before), _divergence(before, after)
    low, high = 0.0, 80.0
    for _ in range(200):
        middle = (low + high) / 2
        if (math.exp(middle) - middle - 1) / back < between_alarms:
            low = middle
        else:
            high = middle
    return (low + math.exp(-low) - 1) / forth


def _divergence(p: float, q: float) -> float:
    return p * math.log(p / q) + (1 - p) * math.log((1 - p) / (1 - q))
