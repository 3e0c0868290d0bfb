"""What a stratum's rate is compared with: learned, held back from changes, and then pinned.

WARMING: learn only. LEARNING: alarms are on, and calls enter the reference only after a quarantine,
so that a change is found before it is learned. FROZEN: nothing is learned any more, as a pinned
reference is what catches slow drift. Only a person's acceptance begins anew.
"""

import math
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final, NamedTuple

from lookup_audit.processors.drift.config import MINUTES_A_DAY, DriftConfig

QUARANTINE_MINUTES: Final = 7 * MINUTES_A_DAY
QUARANTINE_CALLS: Final = 3_000
_CHUNK_MINUTES: Final = MINUTES_A_DAY // 2
# While the rate is an estimate, a batch's likelihood ratio is safe only if the batch is small.
LARGEST_BATCH: Final = 1.0 / 20.0


class Phase(StrEnum):
    """How far a reference is."""

    WARMING = "warming"
    LEARNING = "learning"
    FROZEN = "frozen"


class Chunk(NamedTuple):
    """Calls in quarantine.

    Args:
        start: Minute of the first one.
        k: Successes.
        n: Calls.
    """

    start: int
    k: float
    n: float


@dataclass(frozen=True, slots=True)
class Reference:
    """A rate with its precision.

    Args:
        k: Successes learned.
        n: Calls learned.
        since: First minute learned; -1 before it.
        phase: How far it is.
        quarantine: Calls held back, oldest first; about 30 chunks at most.
        version: Model version the figures are of, where it is a predecessor's; else ``""``.
    """

    k: float = 0.0
    n: float = 0.0
    since: int = -1
    phase: Phase = Phase.WARMING
    quarantine: tuple[Chunk, ...] = ()
    version: str = ""

    @property
    def rate(self) -> float:
        """Mean of the Beta posterior that began at Beta(1/2, 1/2)."""
        return (self.k + 0.5) / (self.n + 1.0)

    def standard_error(self, dispersion: float) -> float:
        """Of the rate."""
        rate = self.rate
        return math.sqrt(dispersion * rate * (1.0 - rate) / (self.n + 1.0))

    def age(self, minute: int) -> int:
        """Minutes since the first call learned."""
        return 0 if self.since < 0 else minute - self.since

    def can_test(self, n: float) -> bool:
        """Whether a batch of this size may be tested now."""
        if self.phase is Phase.FROZEN:
            return True
        return self.phase is Phase.LEARNING and n <= self.n * LARGEST_BATCH


def calls_needed(config: DriftConfig, dispersion: float) -> int:
    """Calls before a stratum is watched; clustered calls count for less."""
    return math.ceil(config.minimum_calls * dispersion)


def is_warm(reference: Reference, config: DriftConfig, dispersion: float, minute: int) -> bool:
    """Whether warming is over: enough calls and one full day."""
    enough = reference.n >= calls_needed(config, dispersion)
    return enough and reference.age(minute) >= MINUTES_A_DAY


def can_freeze(reference: Reference, config: DriftConfig, dispersion: float, minute: int) -> bool:
    """Whether the reference is sharp enough for the band, and old enough for the season."""
    sharp = reference.standard_error(dispersion) <= config.band / 3.0
    return sharp and reference.age(minute) >= config.reference_days * MINUTES_A_DAY


def learn(reference: Reference, minute: int, k: float, n: float) -> Reference:
    """Learn a minute of calls; a frozen reference stays as it is."""
    if reference.phase is Phase.FROZEN:
        return reference
    if reference.phase is Phase.WARMING:
        since = minute if reference.since < 0 else reference.since
        return replace(reference, k=reference.k + k, n=reference.n + n, since=since)
    return _release(replace(reference, quarantine=_hold(reference, minute, k, n)), minute)


def _limit(reference: Reference) -> float:
    return min(QUARANTINE_CALLS, 2.0 * reference.n)


def _hold(reference: Reference, minute: int, k: float, n: float) -> tuple[Chunk, ...]:
    held = reference.quarantine
    if held:
        last = held[-1]
        small = last.n + n <= _limit(reference) / 16.0
        if small and minute - last.start < _CHUNK_MINUTES:
            return (*held[:-1], Chunk(last.start, last.k + k, last.n + n))
    return (*held, Chunk(minute, k, n))


def _release(reference: Reference, minute: int) -> Reference:
    held = reference.quarantine
    behind = sum(chunk.n for chunk in held) - held[0].n
    gone, k, n = 0, reference.k, reference.n
    limit = _limit(reference)
    while gone < len(held) - 1 and (
        behind >= limit or minute - held[gone].start >= QUARANTINE_MINUTES
    ):
        k, n = k + held[gone].k, n + held[gone].n
        gone += 1
        behind -= held[gone].n
    return replace(reference, k=k, n=n, quarantine=held[gone:]) if gone else reference
