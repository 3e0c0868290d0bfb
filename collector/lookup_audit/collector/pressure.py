"""What the collector may hold at one time, so that a burst costs a 429 and not the memory.

Bodies being read and events waiting for the broker are each charged to a budget before they are
kept. A lease gives back what it took, whatever happens in between.
"""

import threading

from lookup_audit.schemas.errors import UnavailableError


class OverloadedError(UnavailableError):
    """Too much is in flight already; the same call may work in a moment (429)."""


class Budget:
    """Bytes and events in flight, counted from any thread.

    Args:
        max_bytes: Most bytes at one time.
        max_events: Most events at one time.
    """

    def __init__(self, *, max_bytes: int, max_events: int):
        self.max_bytes = max_bytes
        self.max_events = max_events
        self._lock = threading.Lock()
        self._bytes = 0
        self._events = 0

    @property
    def events(self) -> int:
        """Events in flight now."""
        return self._events

    @property
    def bytes(self) -> int:
        """Bytes in flight now."""
        return self._bytes

    def lease(self) -> "Lease":
        """Start charging for one request; use as a context manager or call ``release``."""
        return Lease(self)

    def _take(self, size: int, events: int) -> None:
        with self._lock:
            if self._bytes + size > self.max_bytes or self._events + events > self.max_events:
                raise OverloadedError("too much is in flight; send again in a moment")
            self._bytes += size
            self._events += events

    def _give(self, size: int, events: int) -> None:
        with self._lock:
            self._bytes -= size
            self._events -= events


class Lease:
    """What one request holds of a budget."""

    def __init__(self, budget: Budget):
        self._budget = budget
        self._bytes = 0
        self._events = 0

    def take(self, size: int, events: int = 0) -> None:
        """Charge more to the request.

        Raises:
            OverloadedError: The budget is used up; what was taken before stays taken.
        """
        self._budget._take(size, events)
        self._bytes += size
        self._events += events

    def release(self) -> None:
        """Give everything back; a second call does nothing."""
        size, events, self._bytes, self._events = self._bytes, self._events, 0, 0
        self._budget._give(size, events)

    def __enter__(self) -> "Lease":
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.release()
