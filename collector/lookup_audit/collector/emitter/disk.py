"""The backlog on disk: events are written before they are sent, and found again after a crash."""

import logging
import os
from pathlib import Path

from lookup_audit.collector.emitter.entry import Entry
from lookup_audit.collector.emitter.spool import Spool, left_slots, lock_slot, take_slot

logger = logging.getLogger(__name__)


class DiskBacklog:
    """A spool, with a batch in memory for as long as the disk takes none.

    Args:
        directory: Of all slots.
        max_bytes: Room of this process's slot.
        fsync: Wait for the disk after each append.

    Raises:
        OSError: No slot can be had.
    """

    def __init__(self, directory: Path, *, max_bytes: int, fsync: bool):
        self._directory = directory
        self._max_bytes = max_bytes
        self._fsync = fsync
        self._slot, lock = take_slot(directory)
        self._spool = self._open(self._slot, lock)
        self._adopted: Spool | None = None
        self._held: list[Entry] = []
        self._disk_failed = False
        self.recovered = self._spool.count

    def _open(self, slot: Path, lock: int) -> Spool:
        try:
            return Spool(slot, lock, max_bytes=self._max_bytes, fsync=self._fsync)
        except BaseException:
            os.close(lock)
            raise

    @property
    def size(self) -> int:
        """Bytes of this process's slot."""
        return self._spool.size

    @property
    def has_room(self) -> bool:
        """Whether the disk takes events and is not full."""
        if self._held:
            self.append([])
        return not self._held and self._spool.has_room

    def append(self, entries: list[Entry]) -> None:
        """Write events; where the disk does not take them, they are held in memory."""
        self._held += entries
        if not self._held:
            return
        try:
            self._spool.append(self._held)
        except OSError as error:
            if not self._disk_failed:
                logger.warning("The spool takes no events, they stay in memory: %s.", error)
            self._disk_failed = True
            return
        if self._disk_failed:
            logger.warning("The spool takes events again.")
        self._disk_failed = False
        self._held = []

    def peek(self, limit: int) -> list[Entry]:
        """From an adopted slot, then from our own, then from memory."""
        if self._adopted is not None:
            return self._adopted.peek(limit)
        return self._spool.peek(limit) if self._spool.count else self._held[:limit]

    def advance(self, number: int) -> None:
        """Settle the oldest; an adopted slot is given free when it is empty."""
        if self._adopted is not None:
            self._adopted.advance(number)
            if not self._adopted.count:
                self._adopted.close()
                self._adopted = None
        elif self._spool.count:
            self._spool.advance(number)
        else:
            del self._held[:number]

    def adopt(self) -> int:
        """Lock one slot that a process left with events in it, if there is any."""
        if self._adopted is not None or self._spool.count or self._held:
            return 0
        for slot in left_slots(self._directory):
            lock = None if slot == self._slot else lock_slot(slot)
            if lock is None:
                continue
            spool = self._open(slot, lock)
            if spool.count:
                self._adopted = spool
                return spool.count
            spool.close()
        return 0

    def close(self) -> int:
        """Give the slots free; only what the disk never took is lost."""
        for spool in (self._adopted, self._spool):
            if spool is not None:
                spool.close()
        return len(self._held)

    def forget(self) -> None:
        """Close the copied descriptors; the parent's lock stays the parent's."""
        for spool in (self._adopted, self._spool):
            if spool is not None:
                spool.forget()
