"""The promise, by simulation with its own standard error; seeds are fixed."""

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import pytest

from lookup_audit.processors.drift.config import MINUTES_A_DAY, DriftConfig
from lookup_audit.processors.drift.reference import Phase, Reference
from lookup_audit.processors.drift.series import (
    Batch,
    Context,
    Series,
    SeriesKey,
    advance,
    new_series,
)
from lookup_audit.schemas.names import ALL, DriftMetric

pytestmark = pytest.mark.slow

KEY = SeriesKey(DriftMetric.PRECISE, "acme", "kb", "dense", "m1", ALL)
Batches = Iterator[Batch]


def pinned(rate: float) -> Series:
    """A stratum whose reference is known as well as anything can be."""
    n = 1e9
    series = new_series(KEY, 0)
    return replace(series, reference=Reference(k=n * rate, n=n, since=-99_999, phase=Phase.FROZEN))


def false_alarms(series: Series, batches: Batches, context: Context) -> int:
    """Alarms of one stream, each as if nobody knew of the one before."""
    found = 0
    for batch in batches:
        series, transitions, _ = advance(series, batch, context)
        if transitions:
            found += 1
            series = replace(series, incident=None)
    return found


def holds(found: list[int], promised: float) -> None:
    """The mean is at most what is promised, as far as the simulation can tell."""
    mean, error = float(np.mean(found)), float(np.std(found)) / len(found) ** 0.5
    assert mean <= promised + 2 * error + 1e-12, f"{mean:.2f} ± {error:.2f} of {promised:.2f}"


@pytest.mark.parametrize("rate", [0.02, 0.3, 0.6, 0.9, 0.99])
@pytest.mark.parametrize(
    ("calls", "every"),
    [
        pytest.param(1, 144, id="10-a-day"),
        pytest.param(1, 1, id="1440-a-day"),
        pytest.param(20, 1, id="29k-a-day"),
        pytest.param(60_000, 1, id="1000-a-second"),
    ],
)
def test_false_alarms_stay_within_the_promise(rate: float, calls: int, every: int) -> None:
    batches, days = 1000, 1000 * every / MINUTES_A_DAY
    promised_days = days / 4  # four false alarms a stream are promised: a test with power
    config = DriftConfig(false_alarm_days=max(1.0, promised_days), ignore_points=0.1)
    per_minute = 1.0 / (promised_days * MINUTES_A_DAY)
    context = Context(config, per_minute)
    found = []
    for seed in range(12):
        source = np.random.default_rng([7, seed, calls])
        counts = source.binomial(calls, rate, batches).tolist()
        stream = (Batch((i + 1) * every, k, calls) for i, k in enumerate(counts))
        found.append(false_alarms(pinned(rate), stream, context))

    holds(found, min(4.0, batches * calls / config.calls_per_alarm))


def season(source: np.random.Generator, days: int) -> Batches:
    """Traffic of +-80 % and a rate of +-3 points over the day."""
    for minute in range(0, days * MINUTES_A_DAY, 10):
        phase = np.sin(2 * np.pi * minute / MINUTES_A_DAY)
        n = int(source.poisson(20 * (1 + 0.8 * phase)))
        if n:
            yield Batch(minute, int(source.binomial(n, 0.6 + 0.03 * phase)), n)


def bursts(source: np.random.Generator, days: int) -> Batches:
    """Agent runs of five lookups, of which most share their outcome (design effect 2.2)."""
    for minute in range(0, days * MINUTES_A_DAY, 10):
        rates = source.beta(0.6 * (1 / 0.3 - 1), 0.4 * (1 / 0.3 - 1), 4)
        yield Batch(minute, int(source.binomial(5, rates).sum()), 20)


@pytest.mark.parametrize("stream", [season, bursts])
def test_season_and_bursts_stay_within_the_promise_with_a_learned_reference(
    stream: Callable[[np.random.Generator, int], Batches],
) -> None:
    days = 60
    config = DriftConfig(false_alarm_days=15)
    context = Context(config, 1.0 / (15 * MINUTES_A_DAY))
    found = [
        false_alarms(new_series(KEY, 0), stream(np.random.default_rng([11, seed]), days), context)
        for seed in range(10)
    ]

    holds(found, days / 15)


@pytest.mark.parametrize("rate", [0.3, 0.6, 0.9])
def test_a_fall_of_twenty_points_is_found_within_twice_the_optimum(rate: float) -> None:
    # The delay of the optimal test that knows both rates, at one false alarm in 50 000 calls.
    optimum = {0.3: 68, 0.6: 90, 0.9: 50}[rate]
    context = Context(DriftConfig(), 1.0 / 50_000)
    delays = []
    for seed in range(60):
        source = np.random.default_rng([13, seed])
        series, calls = pinned(rate), 0
        for minute in range(1, 3_000):
            calls += 1
            series, transitions, _ = advance(
                series, Batch(minute, int(source.random() < rate - 0.2), 1), context
            )
            if transitions:
                break
        delays.append(calls)

    assert float(np.mean(delays)) <= 2.0 * optimum


@pytest.mark.parametrize("size", [1, 10, 60])
def test_the_size_of_a_batch_changes_neither_promise_nor_finding(size: int) -> None:
    config = DriftConfig(ignore_points=0.1, calls_per_alarm=1)
    context = Context(config, 1.0 / 2_000)  # one call a minute
    alarms, delays = [], []
    for seed in range(12):
        source = np.random.default_rng([17, seed])
        calls = source.random(6_000) < 0.6
        sums = calls.reshape(-1, size).sum(axis=1).tolist()
        stream = (Batch((i + 1) * size, k, size) for i, k in enumerate(sums))
        alarms.append(false_alarms(pinned(0.6), stream, context))
        series = pinned(0.6)
        fallen = (source.random(6_000) < 0.45).reshape(-1, size).sum(axis=1).tolist()
        for i, k in enumerate(fallen):
            series, transitions, _ = advance(series, Batch((i + 1) * size, k, size), context)
            if transitions:
                delays.append((i + 1) * size)
                break

    holds(alarms, 6_000 / 2_000)
    assert len(delays) == 12
    # One by one it takes 150 calls; a batch may cost itself, and nothing more.
    assert float(np.mean(delays)) < 165 + size
