"""Undelivered events on disk, in order, of one process at a time.

A directory holds slots, one for each process that ever ran at the same time; a process takes the
first slot that no other has locked, so that a restart finds what its forerunner left. In a slot
are numbered segment files and a cursor that says how far they are delivered. Events are appended
before they are sent; a crash between delivery and cursor sends some again, which the receiver
counts once.
"""

import fcntl
import logging
import os
import re
import struct
import zlib
from collections import deque
from pathlib import Path
from typing import BinaryIO, Final

from lookup_audit.collector.emitter.entry import Entry
from lookup_audit.collector.emitter.segment import MAGIC, SUFFIX, SegmentWriter, read_record

logger = logging.getLogger(__name__)

_SEGMENT_BYTES: Final = 8 * 1024 * 1024
_MAX_SLOTS: Final = 4096
_NAME: Final = re.compile(r"(\d{10})" + re.escape(SUFFIX))
_CURSOR: Final = struct.Struct("<QQI")


def take_slot(directory: Path) -> tuple[Path, int]:
    """Lock the first free slot; returns it and the lock's descriptor.

    Raises:
        OSError: The directory cannot be written, or every slot is taken.
    """
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    for number in range(_MAX_SLOTS):
        slot = directory / f"slot-{number}"
        descriptor = lock_slot(slot)
        if descriptor is not None:
            return slot, descriptor
    raise OSError(f"all {_MAX_SLOTS} slots of {directory} are taken")


def lock_slot(slot: Path) -> int | None:
    """Lock one slot, made if need be; ``None`` where another process has it."""
    slot.mkdir(mode=0o700, exist_ok=True)
    descriptor = os.open(slot / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor


def left_slots(directory: Path) -> list[Path]:
    """Slots that hold undelivered events, locked or not."""
    slots = (path for path in directory.glob("slot-*") if path.is_dir())
    return sorted(slot for slot in slots if any(slot.glob("*" + SUFFIX)))


class Spool:
    """The segments of one locked slot; not safe for several threads.

    Args:
        slot: Its directory.
        lock: Descriptor of its lock, closed with the spool.
        max_bytes: Room of all segments together.
        fsync: Wait for the disk after each append.
        segment_bytes: A new file begins beyond this size.

    Raises:
        OSError: The slot cannot be read.
    """

    def __init__(
        self,
        slot: Path,
        lock: int,
        *,
        max_bytes: int,
        fsync: bool = False,
        segment_bytes: int = _SEGMENT_BYTES,
    ):
        self._slot = slot
        self._lock: int | None = lock
        self._max_bytes = max_bytes
        self._fsync = fsync
        self._segment_bytes = segment_bytes
        self._writer: SegmentWriter | None = None
        self._reader: tuple[int, BinaryIO] | None = None
        self._sizes: dict[int, int] = {}
        self._peeked: deque[tuple[Entry, int, int]] = deque()
        self.count = 0
        self._number, self._position = self._read_cursor()
        self._recover()

    @property
    def size(self) -> int:
        """Bytes of all segments."""
        return sum(self._sizes.values())

    @property
    def has_room(self) -> bool:
        """Whether another batch may be appended; the last one may go a little over."""
        return self.size < self._max_bytes

    def append(self, entries: list[Entry]) -> None:
        """Keep events; all or none.

        Raises:
            OSError: The disk does not take them.
        """
        writer = self._writer
        if writer is None or writer.size >= self._segment_bytes:
            writer = self._roll()
        writer.append(entries)
        self._sizes[_number_of(writer.path)] = writer.size
        self.count += len(entries)

    def peek(self, limit: int) -> list[Entry]:
        """The oldest events, at most so many; they stay until :meth:`advance`."""
        while len(self._peeked) < limit:
            found = self._read_next()
            if found is None:
                break
            self._peeked.append(found)
        return [self._peeked[i][0] for i in range(min(limit, len(self._peeked)))]

    def advance(self, number: int) -> None:
        """So many of the oldest events are settled; delivered files are deleted."""
        for _ in range(number):
            _, self._number, self._position = self._peeked.popleft()
        self.count -= number
        if not self.count and self.size >= self._segment_bytes // 8:
            self._begin_anew()
        self._write_cursor()
        for old in [n for n in self._sizes if n < self._number]:
            self._delete(old)

    def _begin_anew(self) -> None:
        """Nothing is left: the files may go, and the next event begins a new one."""
        self._number = max([self._number, *self._sizes]) + 1
        self._position = len(MAGIC)
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def close(self) -> None:
        """Close all files and give the slot free; what is delivered is deleted."""
        if not self.count:
            for number in list(self._sizes):
                self._delete(number)
        self.forget()

    def forget(self) -> None:
        """Close all files and change nothing in them."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None
        if self._reader is not None:
            self._reader[1].close()
            self._reader = None
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _roll(self) -> SegmentWriter:
        number = max([self._number - 1, *self._sizes]) + 1
        writer = SegmentWriter(self._path(number), fsync=self._fsync)
        if self._writer is not None:
            self._writer.close()
        self._writer = writer
        self._sizes[number] = writer.size
        return writer

    def _recover(self) -> None:
        """Count what an earlier run left; what is broken is left out and said once."""
        for path in sorted(self._slot.glob("*" + SUFFIX)):
            match = _NAME.fullmatch(path.name)
            if match is None:
                continue
            number = int(match[1])
            if number < self._number:
                path.unlink(missing_ok=True)
                continue
            self._sizes[number] = path.stat().st_size
            start = self._position if number == self._number else len(MAGIC)
            end = start
            with path.open("rb") as file:
                while (found := read_record(file, end)) is not None:
                    end = found.end
                    self.count += 1
            lost = self._sizes[number] - end
            if lost > 0:
                logger.warning("%s: %d bytes at its end are no whole event.", path, lost)
        if not self.count:
            for number in list(self._sizes):
                self._delete(number)

    def _read_next(self) -> tuple[Entry, int, int] | None:
        number, position = self._number, self._position
        if self._peeked:
            _, number, position = self._peeked[-1]
        for candidate in sorted(n for n in self._sizes if n >= number):
            start = position if candidate == number else len(MAGIC)
            found = read_record(self._file(candidate), start)
            if found is not None:
                return found.entry, candidate, found.end
        return None

    def _file(self, number: int) -> BinaryIO:
        if self._reader is not None and self._reader[0] == number:
            return self._reader[1]
        if self._reader is not None:
            self._reader[1].close()
        file = self._path(number).open("rb")
        self._reader = (number, file)
        return file

    def _delete(self, number: int) -> None:
        if self._reader is not None and self._reader[0] == number:
            self._reader[1].close()
            self._reader = None
        self._sizes.pop(number, None)
        self._path(number).unlink(missing_ok=True)

    def _path(self, number: int) -> Path:
        return self._slot / f"{number:010d}{SUFFIX}"

    def _read_cursor(self) -> tuple[int, int]:
        try:
            data = (self._slot / "cursor").read_bytes()
        except FileNotFoundError:
            data = b""
        if len(data) == _CURSOR.size:
            number, position, crc = _CURSOR.unpack(data)
            if zlib.crc32(data[: _CURSOR.size - 4]) == crc:
                return number, position
        # Without a cursor everything is sent again; equal events count once.
        return 1, len(MAGIC)

    def _write_cursor(self) -> None:
        body = _CURSOR.pack(self._number, self._position, 0)[:-4]
        partial = self._slot / "cursor.partial"
        partial.write_bytes(body + struct.pack("<I", zlib.crc32(body)))
        partial.replace(self._slot / "cursor")


def _number_of(path: Path) -> int:
    return int(path.name.removesuffix(SUFFIX))
