"""Bridges many confirmations on a client's thread to one wake-up on the event loop."""

import asyncio
import threading
from collections.abc import Callable
from typing import Protocol


class Settles(Protocol):
    """Is told what became of each record of a batch."""

    def settle(self, index: int, outcome: object) -> None:
        """Note what became of one record: an exception, or anything else for success."""
        ...


class Delivery:
    """The records of one request on their way; done when the last one is settled.

    Create it on the event loop that waits; settle from any thread.

    Args:
        count: How many records.
        on_done: Called once, on the thread of the last settlement.
    """

    def __init__(self, count: int, *, on_done: Callable[[], None]):
        self._outcomes: list[BaseException | None] = [None] * count
        self._open = count
        self._lock = threading.Lock()
        self._on_done = on_done
        self._loop = asyncio.get_running_loop()
        self._done = asyncio.Event()

    def settle(self, index: int, outcome: object) -> None:
        """Note what became of one record: an exception, or anything else for success."""
        if isinstance(outcome, BaseException):
            self._outcomes[index] = outcome
        with self._lock:
            self._open -= 1
            if self._open:
                return
        self._on_done()
        # The loop is closed if the service stopped while the broker was still thinking.
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._done.set)

    async def wait(self) -> list[BaseException | None]:
        """The outcome of every record, ``None`` for success."""
        await self._done.wait()
        return self._outcomes
