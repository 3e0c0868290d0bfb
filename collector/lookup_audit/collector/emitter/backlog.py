"""What was taken from the queue and is not delivered yet: the seam, and the kind in memory.

The kind on disk is in :mod:`lookup_audit.collector.emitter.disk`. Both give their events out in
the order in which they came.
"""

from typing import Protocol

from lookup_audit.collector.emitter.entry import Entry


class Backlog(Protocol):
    """Holds events between queue and transport."""

    @property
    def has_room(self) -> bool:
        """Whether more may be taken from the queue."""
        ...

    @property
    def size(self) -> int:
        """Bytes on disk."""
        ...

    def append(self, entries: list[Entry]) -> None:
        """Take events from the queue."""
        ...

    def peek(self, limit: int) -> list[Entry]:
        """The oldest events, at most so many."""
        ...

    def advance(self, number: int) -> None:
        """So many of the oldest are settled."""
        ...

    def adopt(self) -> int:
        """Take over events that a process left that is gone; returns how many."""
        ...

    def close(self) -> int:
        """Let go; returns how many events are lost with it."""
        ...

    def forget(self) -> None:
        """After a fork, in the child: close the parent's files and change nothing in them."""
        ...


class MemoryBacklog:
    """The batch in hand, and no more: all else stays in the bounded queue."""

    size = 0

    def __init__(self) -> None:
        self._entries: list[Entry] = []

    @property
    def has_room(self) -> bool:
        """Only when everything before is settled."""
        return not self._entries

    def append(self, entries: list[Entry]) -> None:
        """Take a batch."""
        self._entries += entries

    def peek(self, limit: int) -> list[Entry]:
        """The oldest of the batch."""
        return self._entries[:limit]

    def advance(self, number: int) -> None:
        """Forget the oldest."""
        del self._entries[:number]

    def adopt(self) -> int:
        """Memory leaves nothing behind."""
        return 0

    def close(self) -> int:
        """What is left is lost."""
        lost, self._entries = len(self._entries), []
        return lost

    def forget(self) -> None:
        """There are no files."""
