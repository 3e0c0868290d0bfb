"""The emitter's account: every event handed over ends in exactly one of its lines."""

import threading
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Drop(StrEnum):
    """Why an event never left the process."""

    QUEUE_FULL = "queue_full"
    TOO_LARGE = "too_large"
    UNENCODABLE = "unencodable"
    CLOSED = "closed"
    UNSENT_AT_CLOSE = "unsent_at_close"
    REDACTION_FAILED = "redaction_failed"
    INTERNAL_ERROR = "internal_error"


@dataclass(frozen=True, slots=True)
class EmitterStats:
    """What became of the events of this process so far.

    ``emitted + recovered == accepted + rejected + dropped + queued + pending``, all in events.

    Args:
        emitted: Handed to ``emit`` and its siblings.
        recovered: Found in the spool of an earlier run.
        accepted: Confirmed by the collector or the brokers.
        rejected: Refused by them for good, by reason code.
        dropped: Lost in this process, by reason.
        queued: In memory.
        pending: Taken from the queue and not yet confirmed; with a spool they are on disk.
        spool_bytes: Size of the spool.
        retries: Sends that failed and were tried again.
        last_error: Why the last send failed, or ``""``.
    """

    emitted: int = 0
    recovered: int = 0
    accepted: int = 0
    rejected: Mapping[str, int] = field(default_factory=dict)
    dropped: Mapping[str, int] = field(default_factory=dict)
    queued: int = 0
    pending: int = 0
    spool_bytes: int = 0
    retries: int = 0
    last_error: str = ""


Count = Callable[[str, str, int], None]


class Tally:
    """Counts from any thread.

    Args:
        count: Also told of each: result, reason and number; for metrics.
    """

    def __init__(self, count: Count | None = None):
        self._count = count or (lambda result, reason, number: None)
        self._changed = threading.Condition()
        self._emitted = 0
        self._recovered = 0
        self._accepted = 0
        self._rejected: Counter[str] = Counter()
        self._dropped: Counter[str] = Counter()
        self._retries = 0
        self._last_error = ""
        self._entered = 0
        self._left = 0

    def entered(self) -> None:
        """One event was queued."""
        with self._changed:
            self._emitted += 1
            self._entered += 1

    def refused_entry(self, reason: Drop) -> None:
        """One event was dropped at the door."""
        with self._changed:
            self._emitted += 1
            self._dropped[reason] += 1
        self._count("dropped", reason, 1)

    def withdrawn(self) -> None:
        """The event was not queued after all; what it is instead is counted next."""
        with self._changed:
            self._emitted -= 1
            self._entered -= 1

    def recovered(self, number: int) -> None:
        """Events of an earlier run were found."""
        with self._changed:
            self._recovered += number
            self._entered += number

    def delivered(self, accepted: int, rejected: Counter[str]) -> None:
        """A batch has its answer."""
        with self._changed:
            self._accepted += accepted
            self._rejected += rejected
            self._left += accepted + rejected.total()
            self._last_error = ""
            self._changed.notify_all()
        if accepted:
            self._count("accepted", "", accepted)
        for reason, number in rejected.items():
            self._count("rejected", reason, number)

    def lost(self, reason: Drop, number: int) -> None:
        """Queued events will not be sent any more."""
        if number:
            with self._changed:
                self._dropped[reason] += number
                self._left += number
                self._changed.notify_all()
            self._count("dropped", reason, number)

    def failed(self, why: str) -> None:
        """A send failed and will be tried again."""
        with self._changed:
            self._retries += 1
            self._last_error = why

    def wait_until_settled(self, timeout_seconds: float) -> bool:
        """Whether all that was queued until now gets its answer in time."""
        with self._changed:
            target = self._entered
            return self._changed.wait_for(lambda: self._left >= target, timeout_seconds)

    def stats(self, *, queued: int, spool_bytes: int) -> EmitterStats:
        """The account now."""
        with self._changed:
            return EmitterStats(
                emitted=self._emitted,
                recovered=self._recovered,
                accepted=self._accepted,
                rejected=dict(self._rejected),
                dropped={str(reason): number for reason, number in self._dropped.items()},
                queued=queued,
                pending=max(0, self._entered - self._left - queued),
                spool_bytes=spool_bytes,
                retries=self._retries,
                last_error=self._last_error,
            )
