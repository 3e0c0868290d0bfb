"""One file of the spool: records one after another, each with its length and checksum.

A record is ``<length:u32><crc32:u32><kind:u8><value>``, little-endian; length and checksum cover
kind and value. A file that was cut in the middle of a record (a killed process, a full disk) is
read up to there.
"""

import os
import struct
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

from lookup_audit.collector.emitter.entry import Entry
from lookup_audit.schemas.names import EventType

MAGIC: Final = b"LASPOOL1"
SUFFIX: Final = ".spool"
_HEAD: Final = struct.Struct("<IIB")
_KINDS: Final[Mapping[int, EventType]] = dict(enumerate(EventType))
_CODES: Final[Mapping[EventType, int]] = {kind: code for code, kind in _KINDS.items()}
# No event is larger; a length beyond is a broken file and not a reason to take that much memory.
_MAX_VALUE: Final = 256 * 1024 * 1024


class Found(NamedTuple):
    """A record that was read, and where the next one begins."""

    entry: Entry
    end: int


def encode(entry: Entry) -> bytes:
    """The bytes of one record."""
    code = _CODES[entry.kind]
    crc = zlib.crc32(entry.value, zlib.crc32(bytes((code,))))
    return _HEAD.pack(len(entry.value) + 1, crc, code) + entry.value


def read_record(file: BinaryIO, position: int) -> Found | None:
    """The record at a position, or ``None`` where no whole and sound one begins."""
    file.seek(position)
    head = file.read(_HEAD.size)
    if len(head) < _HEAD.size:
        return None
    length, crc, code = _HEAD.unpack(head)
    if code not in _KINDS or not 1 <= length <= _MAX_VALUE:
        return None
    value = file.read(length - 1)
    if len(value) != length - 1 or zlib.crc32(value, zlib.crc32(bytes((code,)))) != crc:
        return None
    return Found(Entry(_KINDS[code], value), position + _HEAD.size + len(value))


class SegmentWriter:
    """Appends to a new file.

    Args:
        path: Must not exist.
        fsync: Wait for the disk after each append.

    Raises:
        OSError: The file cannot be made.
    """

    def __init__(self, path: Path, *, fsync: bool):
        self.path = path
        self.size = len(MAGIC)
        self._fsync = fsync
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND
        self._descriptor = os.open(path, flags, 0o600)
        self._write(MAGIC)

    def append(self, entries: list[Entry]) -> None:
        """Write records; all are in the file when this returns, or none.

        Raises:
            OSError: The disk does not take them.
        """
        data = b"".join(map(encode, entries))
        try:
            self._write(data)
        except OSError:
            os.ftruncate(self._descriptor, self.size)
            raise
        self.size += len(data)

    def _write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(self._descriptor, view) :]
        if self._fsync:
            os.fsync(self._descriptor)

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)
