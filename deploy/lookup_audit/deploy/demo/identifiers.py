"""Ids of events, runs and traces, from a clock and a random source that the caller owns."""

from __future__ import annotations

import random
import threading
import uuid
from collections.abc import Callable
from datetime import UTC, datetime

Clock = Callable[[], datetime]


def utc_now() -> datetime:
    """The current time, aware, in UTC."""
    return datetime.now(UTC)


def rfc3339(moment: datetime) -> str:
    """A time as RFC 3339 UTC with microseconds.

    >>> rfc3339(datetime(2026, 11, 30, 20, tzinfo=UTC))
    '2026-11-30T20:00:00.000000Z'
    """
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


class Identifiers:
    """Makes ids; safe to share between threads."""

    def __init__(self, clock: Clock = utc_now, source: random.Random | None = None) -> None:
        self._clock = clock
        self._source = source if source is not None else random.SystemRandom()
        self._lock = threading.Lock()

    def event_id(self) -> str:
        """A UUID of version 7: sortable by the time it was made."""
        millis = int(self._clock().timestamp() * 1000)
        value = (millis & (1 << 48) - 1) << 80 | self._bits(80)
        value = value & ~(0xF << 76) | 0x7 << 76
        value = value & ~(0x3 << 62) | 0x2 << 62
        return str(uuid.UUID(int=value))

    def trace_id(self) -> str:
        """A W3C trace id, never all zero."""
        return f"{self._bits(128) | 1:032x}"

    def span_id(self) -> str:
        """A W3C span id, never all zero."""
        return f"{self._bits(64) | 1:016x}"

    def short(self, prefix: str) -> str:
        """A short id for people to read, such as ``run-5f0c2a9b``."""
        return f"{prefix}-{self._bits(32):08x}"

    def _bits(self, count: int) -> int:
        with self._lock:
            return self._source.getrandbits(count)
