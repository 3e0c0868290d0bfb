"""The bounded queue between the caller's threads and the emitter's own."""

import threading
from collections import deque

from lookup_audit.collector.emitter.entry import Entry


class EventQueue:
    """Holds so many events and bytes and no more.

    Args:
        max_events: Most events.
        max_bytes: Most bytes of them together.
        wake_at: Number of events with which ``wake`` is set at once.
        wake: Tells the reader that a batch is complete.

    Attributes:
        entered: How many events were ever taken.
    """

    def __init__(self, *, max_events: int, max_bytes: int, wake_at: int, wake: threading.Event):
        self._max_events = max_events
        self._max_bytes = max_bytes
        self._wake_at = wake_at
        self._wake = wake
        self._entries: deque[Entry] = deque()
        self._bytes = 0
        self.entered = 0
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def bytes(self) -> int:
        """Bytes of the events held."""
        return self._bytes

    @property
    def is_full(self) -> bool:
        """Whether not even an empty event would be taken."""
        return not self._has_room(0)

    def put(self, entry: Entry, *, wait_seconds: float) -> bool:
        """Take an event; ``False`` where there is no room even after waiting."""
        size = len(entry.value)
        # The lock itself: a condition is entered by way of two more calls.
        with self._lock:
            if not self._has_room(size) and not self._wait_for_room(size, wait_seconds):
                return False
            self._entries.append(entry)
            self._bytes += size
            self.entered += 1
            # Once for a batch: while the reader waits out an outage, every further wake-up would
            # cost the caller a switch of threads.
            is_batch = len(self._entries) == self._wake_at
        if is_batch:
            self._wake.set()
        return True

    def _wait_for_room(self, size: int, seconds: float) -> bool:
        if seconds <= 0:
            return False
        self._wake.set()
        return self._changed.wait_for(lambda: self._has_room(size), seconds)

    def _has_room(self, size: int) -> bool:
        return len(self._entries) < self._max_events and self._bytes + size <= self._max_bytes

    def take(self, limit: int) -> list[Entry]:
        """The oldest events, at most so many."""
        with self._changed:
            count = min(limit, len(self._entries))
            taken = [self._entries.popleft() for _ in range(count)]
            self._bytes -= sum(len(entry.value) for entry in taken)
            self._changed.notify_all()
        return taken
