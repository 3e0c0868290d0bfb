"""The bounded queue between the caller's threads and the emitter's own."""

import threading
from collections import deque

from lookup_audit.collector.emitter.entry import Entry


class EventQueue:
    """Holds so many events and bytes and no more.

    Args:
        max_events: Most events.
        max_bytes: Most bytes of them together.
        wake_at: Number of events from which on ``wake`` is set at once.
        wake: Tells the reader that a batch is complete.
    """

    def __init__(self, *, max_events: int, max_bytes: int, wake_at: int, wake: threading.Event):
        self._max_events = max_events
        self._max_bytes = max_bytes
        self._wake_at = wake_at
        self._wake = wake
        self._entries: deque[Entry] = deque()
        self._bytes = 0
        self._changed = threading.Condition(threading.Lock())

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
        with self._changed:
            if not self._has_room(size):
                if wait_seconds <= 0:
                    return False
                self._wake.set()
                if not self._changed.wait_for(lambda: self._has_room(size), wait_seconds):
                    return False
            self._entries.append(entry)
            self._bytes += size
            is_batch = len(self._entries) >= self._wake_at
        if is_batch and not self._wake.is_set():
            self._wake.set()
        return True

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
