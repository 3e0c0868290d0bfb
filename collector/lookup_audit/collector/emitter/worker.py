"""The emitter's one thread: from the queue to the backlog, from the backlog to the transport.

It never gives up on an event that may still be taken. While the receiver is away it waits longer
and longer, and goes on moving events from the queue to the spool meanwhile.
"""

import logging
import random
import threading
import time
from collections import Counter
from collections.abc import Callable

from lookup_audit.collector.emitter.backlog import Backlog, MemoryBacklog
from lookup_audit.collector.emitter.config import EmitterConfig
from lookup_audit.collector.emitter.entry import Entry
from lookup_audit.collector.emitter.queue import EventQueue
from lookup_audit.collector.emitter.tally import Drop, Tally
from lookup_audit.collector.emitter.tracing import suppress_instrumentation
from lookup_audit.collector.emitter.transport import (
    Delivered,
    MakeTransport,
    Transport,
    TryAgain,
    TryInParts,
)

logger = logging.getLogger(__name__)

_ADOPT_SECONDS = 10.0

Prepare = Callable[[Entry], Entry | Drop]


class Worker:
    """Delivers what the queue holds, in order.

    Args:
        config: Sizes and times.
        queue: Where events come from.
        wake: Set when a batch is complete or somebody waits.
        tally: The account.
        prepare: Turns a packed event into the JSON that is stored and sent, or says why not.
        make_transport: Makes the transport, once.
    """

    def __init__(
        self,
        config: EmitterConfig,
        queue: EventQueue,
        wake: threading.Event,
        tally: Tally,
        prepare: Prepare,
        make_transport: MakeTransport,
    ):
        self._config = config
        self._queue = queue
        self._wake = wake
        self._tally = tally
        self._prepare = prepare
        self._transport: Transport = make_transport()
        self._backlog: Backlog | None = None
        self._moving = threading.Lock()
        self._limit = config.batch_events
        self._failures = 0
        self._hurry = False
        self._stopping = False
        self._closed = False
        self._adopted_at = 0.0
        self._thread = threading.Thread(target=self._run, name="lookup-audit-emitter", daemon=True)

    @property
    def spool_bytes(self) -> int:
        """Size of the spool."""
        return self._backlog.size if self._backlog is not None else 0

    def start(self) -> None:
        """Begin to deliver."""
        self._thread.start()

    def hurry(self) -> None:
        """Deliver what there is now, without waiting for more or for the next try."""
        self._hurry = True
        self._wake.set()

    def stop(self, timeout_seconds: float) -> None:
        """End the thread; what is not delivered is in the spool, or counted as lost."""
        self._move()
        self._stopping = True
        self.hurry()
        self._thread.join(timeout_seconds)
        with self._moving:
            self._closed = True
            rest = self._queue.take(len(self._queue))
            if self._backlog is not None:
                if rest and self._backlog.has_room:
                    self._store(rest)
                    rest = []
                lost = self._backlog.close()
            else:
                lost = 0
        self._tally.lost(Drop.UNSENT_AT_CLOSE, lost + len(rest))
        self._transport.close()

    def forget(self) -> None:
        """After a fork, in the child: the parent's connections and files are not ours."""
        self._transport.forget()
        if self._backlog is not None:
            self._backlog.forget()

    def _run(self) -> None:
        suppress_instrumentation()
        self._open_backlog()
        while not self._stopping:
            try:
                self._turn()
            except Exception as error:
                # Whatever it is, the thread must go on; the text of the error may quote an event.
                logger.error("The emitter failed and goes on: %s.", type(error).__name__)
                logger.debug("Where it failed.", exc_info=True)
                self._wake.wait(1.0)

    def _open_backlog(self) -> None:
        directory = self._config.spool_dir
        backlog: Backlog = MemoryBacklog()
        if directory is not None:
            # Known to POSIX only, like the lock it needs.
            from lookup_audit.collector.emitter.disk import DiskBacklog

            try:
                disk = DiskBacklog(
                    directory,
                    max_bytes=self._config.spool_max_bytes,
                    fsync=self._config.spool_fsync,
                )
            except OSError as error:
                logger.error(
                    "The spool %s cannot be used, events stay in memory: %s", directory, error
                )
            else:
                self._tally.recovered(disk.recovered)
                backlog = disk
        with self._moving:
            self._backlog = backlog

    def _turn(self) -> None:
        """Move what has come, and deliver one batch; waits where there is nothing to do."""
        self._move()
        batch = self._next_batch()
        if batch:
            pause = self._deliver(batch)
            if pause:
                self._pause(pause)
            return
        self._adopt()
        self._hurry = False
        # Looking now and then is cheaper than being woken by every first event: that would cost
        # the caller a switch of threads.
        self._wake.wait(self._config.linger_seconds)
        self._wake.clear()

    def _move(self) -> None:
        """From the queue to the backlog, as much as it takes; from any thread."""
        with self._moving:
            backlog = self._backlog
            while backlog is not None and not self._closed and backlog.has_room:
                entries = self._queue.take(self._config.batch_events)
                if not entries:
                    return
                self._store(entries)

    def _store(self, entries: list[Entry]) -> None:
        assert self._backlog is not None, "opened before anything is stored"
        ready = []
        for entry in entries:
            try:
                prepared = self._prepare(entry)
            except Exception as error:
                # Without the text: it may quote the event.
                logger.error("An event could not be prepared: %s.", type(error).__name__)
                prepared = Drop.INTERNAL_ERROR
            if isinstance(prepared, Entry):
                ready.append(prepared)
            else:
                self._tally.lost(prepared, 1)
        self._backlog.append(ready)

    def _next_batch(self) -> list[Entry]:
        """The oldest events of one kind, within the limits of one request."""
        with self._moving:
            assert self._backlog is not None, "opened before the first turn"
            entries = [] if self._closed else self._backlog.peek(self._limit)
        batch: list[Entry] = []
        size = 0
        for entry in entries:
            size += len(entry.value) + 1
            if batch and (entry.kind is not batch[0].kind or size > self._config.batch_bytes):
                break
            batch.append(entry)
        return batch

    def _deliver(self, batch: list[Entry]) -> float:
        """Send a batch and settle it; returns how long to wait before the next try."""
        answer = self._send(batch)
        if isinstance(answer, TryAgain):
            self._tally.failed(answer.why)
            if not self._failures:
                logger.warning("Events wait, the receiver does not take them: %s.", answer.why)
            self._failures += 1
            return answer.after_seconds or self._backoff()
        if self._failures:
            logger.warning("Events are taken again.")
        self._failures = 0
        if isinstance(answer, Delivered):
            self._limit = min(2 * self._limit, self._config.batch_events)
            self._settle(len(batch), answer.rejected)
        elif len(batch) == 1:
            self._settle(1, Counter({answer.reason: 1}))
        else:
            self._limit = len(batch) // 2
        return 0.0

    def _send(self, batch: list[Entry]) -> Delivered | TryAgain | TryInParts:
        try:
            return self._transport.send(batch[0].kind, [entry.value for entry in batch])
        except Exception as error:
            # A fault of a transport must not end the thread.
            logger.debug("The transport failed.", exc_info=True)
            return TryAgain(f"{type(error).__name__} in the transport")

    def _settle(self, number: int, rejected: Counter[str]) -> None:
        with self._moving:
            if self._closed:
                # Counted as lost already, or found in the spool by the next run.
                return
            self._advance(number)
        if rejected:
            logger.warning("Events are refused: %s.", dict(rejected))
        self._tally.delivered(number - rejected.total(), rejected)

    def _advance(self, number: int) -> None:
        assert self._backlog is not None, "opened before anything is sent"
        try:
            self._backlog.advance(number)
        except OSError as error:
            # The cursor is behind: after a restart these are sent again and count once.
            logger.warning("The spool's cursor cannot be written: %s.", error)

    def _backoff(self) -> float:
        doubled = self._config.retry_seconds * 2.0 ** min(self._failures - 1, 16)
        longest = min(self._config.retry_max_seconds, doubled)
        # Many processes that lost one collector must not come back in step.
        return longest * random.uniform(0.5, 1.0)

    def _pause(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while not self._stopping and (left := deadline - time.monotonic()) > 0:
            if self._hurry:
                self._hurry = False
                return
            self._wake.wait(min(left, self._config.linger_seconds))
            self._wake.clear()
            self._move()

    def _adopt(self) -> None:
        now = time.monotonic()
        if now - self._adopted_at < _ADOPT_SECONDS and self._adopted_at:
            return
        self._adopted_at = now
        with self._moving:
            assert self._backlog is not None, "opened before the first turn"
            try:
                self._tally.recovered(self._backlog.adopt())
            except OSError as error:
                logger.warning("An orphaned spool cannot be read: %s.", error)
