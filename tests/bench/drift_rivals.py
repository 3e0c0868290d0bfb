"""What others would do with the same counts, at their own defaults.

The first three are the rules of Evidently, NannyML and a Grafana threshold, written down from
their documentation; River's detectors are its own code and are left out where it is not installed.
"""

import importlib
import importlib.util
import math
from collections.abc import Callable
from typing import Any, Protocol


class Detector(Protocol):
    """Sees batches; says when it alarms, and goes on by itself afterwards."""

    def warmup(self, successes: int, trials: int) -> None:
        """Learn from the reference."""

    def update(self, successes: int, trials: int) -> bool:
        """Whether this batch raises an alarm."""


class ZTest:
    """Evidently's way: a two-proportion z-test of every 500 events, at 5 %."""

    window, z = 500, 1.96

    def __init__(self) -> None:
        self.rk = self.rn = self.k = self.n = 0.0

    def warmup(self, successes: int, trials: int) -> None:
        """See :class:`Detector`."""
        self.rk += successes
        self.rn += trials

    def update(self, successes: int, trials: int) -> bool:
        """See :class:`Detector`."""
        self.k += successes
        self.n += trials
        if self.n < self.window:
            return False
        pooled = (self.rk + self.k) / (self.rn + self.n)
        error = math.sqrt(max(pooled * (1 - pooled), 1e-9) * (1 / self.rn + 1 / self.n))
        found = abs(self.k / self.n - self.rk / self.rn) > self.z * error
        self.k = self.n = 0.0
        return found


class ChunkBands:
    """NannyML's way: a chunk of 500 outside three standard deviations of the reference's chunks."""

    size = 500

    def __init__(self) -> None:
        self.rates: list[float] = []
        self.k = self.n = 0.0

    def _chunk(self, successes: int, trials: int) -> float | None:
        self.k += successes
        self.n += trials
        if self.n < self.size:
            return None
        rate = self.k / self.n
        self.k = self.n = 0.0
        return rate

    def warmup(self, successes: int, trials: int) -> None:
        """See :class:`Detector`."""
        rate = self._chunk(successes, trials)
        if rate is not None:
            self.rates.append(rate)

    def update(self, successes: int, trials: int) -> bool:
        """See :class:`Detector`."""
        rate = self._chunk(successes, trials)
        if rate is None:
            return False
        mean = sum(self.rates) / len(self.rates)
        spread = math.sqrt(sum((r - mean) ** 2 for r in self.rates) / len(self.rates))
        return abs(rate - mean) > 3 * spread


class Threshold:
    """Grafana's way: the rate of the last 500 events is 5 points off; one alarm a rising edge."""

    window, points = 500, 0.05

    def __init__(self) -> None:
        self.rk = self.rn = self.k = self.n = 0.0
        self.held: list[tuple[int, int]] = []
        self.is_on = False

    def warmup(self, successes: int, trials: int) -> None:
        """See :class:`Detector`."""
        self.rk += successes
        self.rn += trials

    def update(self, successes: int, trials: int) -> bool:
        """See :class:`Detector`."""
        self.held.append((successes, trials))
        self.k += successes
        self.n += trials
        while self.n - self.held[0][1] >= self.window:
            k, n = self.held.pop(0)
            self.k -= k
            self.n -= n
        full = self.n >= self.window
        is_on = full and abs(self.k / self.n - self.rk / self.rn) > self.points
        rises = is_on and not self.is_on
        self.is_on = is_on
        return rises


class River:
    """One of River's detectors, event by event, at its defaults."""

    def __init__(self, name: str) -> None:
        self.inner: Any = getattr(importlib.import_module("river.drift"), name)()

    def warmup(self, successes: int, trials: int) -> None:
        """See :class:`Detector`."""
        self.update(successes, trials)

    def update(self, successes: int, trials: int) -> bool:
        """See :class:`Detector`."""
        found = False
        for value in [1] * successes + [0] * (trials - successes):
            self.inner.update(value)
            found = found or bool(self.inner.drift_detected)
        return found


def rivals() -> dict[str, Callable[[], Detector]]:
    """Every rival that can run here, by name."""
    found: dict[str, Callable[[], Detector]] = {
        "z-test, 500 (Evidently)": ZTest,
        "chunk bands (NannyML)": ChunkBands,
        "threshold 5 pt (Grafana)": Threshold,
    }
    if importlib.util.find_spec("river") is not None:
        found["River ADWIN"] = lambda: River("ADWIN")
        found["River PageHinkley"] = lambda: River("PageHinkley")
    return found
