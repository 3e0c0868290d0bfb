"""The processor's loop: poll, encode, store, and only then commit.

Encoding goes on while one batch is being stored. When the store or the broker does not answer, the
batch in hand is tried again for ever, fetching is paused, and the group membership is kept: nothing
is lost and nothing is skipped. A batch that was read but not stored when partitions move away is
dropped here and read again by their next owner.
"""

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

from pydantic import BaseModel, ConfigDict, Field

from lookup_audit.processors.batch import EncodedBatch, Message
from lookup_audit.processors.kafka_source import Place, Source
from lookup_audit.processors.merge import merge
from lookup_audit.processors.sink import Sink, Written
from lookup_audit.processors.telemetry import ProcessorTelemetry
from lookup_audit.schemas.errors import LookupAuditError, UnavailableError
from lookup_audit.schemas.timeliness import DEFAULT_RETENTION_DAYS

logger = logging.getLogger(__name__)


_LAG_SECONDS = 1.0
MOST_WORKERS = 64


class ProcessorConfig(BaseModel):
    """When a batch is stored.

    Args:
        flush_seconds: At the latest after this time.
        flush_messages: At the latest with this many messages.
        flush_bytes: At the latest with this many bytes of values; a batch being stored, its copy
            on the way and the next one must fit into memory together.
        poll_messages: Messages encoded at a time; small enough to stay in the CPU's caches.
        retry_seconds: Longest wait between two tries while a dependency is away.
        retention_days: Events older than this are dead-lettered as expired.
        workers: Processes that each read, audit and store their share of the partitions; 0 for
            this process alone. Worth it with cores to spare and more than about 5,000 events/s.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    flush_seconds: float = Field(default=0.5, gt=0)
    flush_messages: int = Field(default=10_000, ge=1)
    flush_bytes: int = Field(default=48 * 2**20, ge=1)
    poll_messages: int = Field(default=500, ge=1)
    retry_seconds: float = Field(default=10.0, gt=0)
    retention_days: int = Field(default=DEFAULT_RETENTION_DAYS, ge=1)
    workers: int = Field(default=0, ge=0, le=MOST_WORKERS)


Encode = Callable[[Sequence[Message]], EncodedBatch]


class Processor:
    """Moves messages from a source into a store.

    Args:
        make_source: Makes the source; gets the callback for partitions that move away.
        encode: Turns messages into a batch; never raises for any content.
        make_sink: Makes the sink for a broker cluster's id.
        prepare: Called before each poll; raises UnavailableError while nothing may be audited.
        config: When to store.
        telemetry: Counts what passes.
    """

    def __init__(
        self,
        make_source: Callable[[Callable[[frozenset[Place]], None]], Source],
        encode: Encode,
        make_sink: Callable[[str], Sink],
        prepare: Callable[[], None],
        config: ProcessorConfig,
        telemetry: ProcessorTelemetry,
    ):
        self._source = make_source(self._on_revoked)
        self._encode = encode
        self._make_sink = make_sink
        self._prepare = prepare
        self._sink: Sink | None = None
        self._config = config
        self._telemetry = telemetry
        self._stopping = threading.Event()
        self._abandoned = threading.Event()
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="store")
        self._writing: tuple[EncodedBatch, Future[Written | None]] | None = None
        self._parts: list[EncodedBatch] = []
        self._buffered_bytes = 0
        self._oldest = 0.0
        self._paused = False
        self._settled: dict[Place, int] = {}
        self._uncommitted: dict[Place, int] = {}
        self._lag_measured = 0.0
        self._last_message = time.monotonic()
        self.problem: str | None = "starting"

    def run(self) -> None:
        """Work until :meth:`stop`; then store and commit what was read, and leave the group."""
        logger.info("Processor started.")
        try:
            while not self._stopping.is_set():
                try:
                    self.step(timeout_seconds=0.05)
                except UnavailableError as error:
                    self._report(str(error))
                    self._stopping.wait(min(error.retry_after_seconds, self._config.retry_seconds))
            self._drain()
        finally:
            self._abandoned.set()
            self._writer.shutdown(wait=True)
            # What is left was not stored in time: leaving the group must not try once more.
            self._drop()
            self._source.close()
            if self._sink is not None:
                self._sink.close()
            logger.info("Processor stopped.")

    def stop(self) -> None:
        """Ask :meth:`run` to drain and return; safe from any thread or signal handler."""
        self._stopping.set()

    def has_settled(self, ends: Mapping[Place, int]) -> bool:
        """Whether everything before these offsets has been stored by this processor."""
        return all(self._settled.get(place, 0) >= end for place, end in ends.items())

    def idle_seconds(self) -> float:
        """How long nothing has come in, 0 while anything read is not stored yet."""
        if self._parts or self._writing is not None:
            return 0.0
        return time.monotonic() - self._last_message

    def step(self, timeout_seconds: float) -> None:
        """One turn: read and encode what came, settle what was stored, store what is due.

        Raises:
            UnavailableError: The broker does not answer.
        """
        self._ready_sink()
        self._prepare()
        messages: Sequence[Message] = ()
        broker_away: UnavailableError | None = None
        try:
            messages = self._source.poll(timeout_seconds, self._config.poll_messages)
        except UnavailableError as error:
            # What was read before can still be stored.
            broker_away = error
        if messages:
            self._last_message = time.monotonic()
            self._telemetry.received(messages)
            if not self._parts:
                self._oldest = time.monotonic()
            self._parts.append(self._encode(messages))
            self._buffered_bytes += sum(len(m.value or b"") for m in messages)
        self._settle(wait=False)
        if self._parts and self._is_due():
            if self._writing is None:
                self._start_writing()
            elif self._is_full() and not self._paused:
                self._source.pause()
                self._paused = True
        if broker_away is not None:
            raise broker_away
        if self._paused and not self._is_full():
            self._source.resume()
            self._paused = False
        if self._writing is None or self.problem is None:
            self._report(None)
        self._measure_lag()

    def _measure_lag(self) -> None:
        now = time.monotonic()
        if now - self._lag_measured >= _LAG_SECONDS:
            self._lag_measured = now
            self._telemetry.lag(self._source.lag())

    def _ready_sink(self) -> Sink:
        if self._sink is None:
            self._sink = self._make_sink(self._source.cluster_id())
        return self._sink

    def _is_due(self) -> bool:
        age = time.monotonic() - self._oldest
        return age >= self._config.flush_seconds or self._is_full()

    def _is_full(self) -> bool:
        count = sum(part.messages for part in self._parts)
        return (
            count >= self._config.flush_messages or self._buffered_bytes >= self._config.flush_bytes
        )

    def _start_writing(self) -> None:
        batch = merge(self._parts)
        self._parts, self._buffered_bytes = [], 0
        self._abandoned = threading.Event()
        self._writing = batch, self._writer.submit(self._write, batch, self._abandoned)

    def _write(self, batch: EncodedBatch, abandoned: threading.Event) -> Written | None:
        """Try until stored; ``None`` if the batch was given up meanwhile."""
        wait = 0.2
        while True:
            started = time.monotonic()
            try:
                written = self._ready_sink().write(batch)
            except Exception as error:
                # Refusals too: a missing table or right is mended outside, and nothing is skipped.
                if not isinstance(error, LookupAuditError) and self.problem != str(error):
                    logger.exception("A batch could not be stored, for a reason unforeseen.")
                self._report(str(error) or type(error).__name__)
                self._telemetry.write_failed(type(error).__name__)
                if abandoned.wait(wait):
                    return None
                wait = min(2 * wait, self._config.retry_seconds)
            else:
                self._report(None)
                self._telemetry.written(written, batch, time.monotonic() - started)
                return written

    def _settle(
        self, *, wait: bool, timeout_seconds: float | None = None, commit: bool = True
    ) -> bool:
        """Commit a batch that has been stored; whether nothing is being written any more."""
        if self._writing is None:
            if commit:
                self._commit()
            return True
        batch, future = self._writing
        if not wait and not future.done():
            return False
        try:
            written = future.result(timeout_seconds)
        except TimeoutError:
            return False
        self._writing = None
        if written is not None:
            self._settled |= batch.next_offsets
            self._uncommitted |= batch.next_offsets
            if commit:
                self._commit()
        return True

    def _commit(self) -> None:
        """Commit what is stored; what the broker does not take now is tried again."""
        if self._uncommitted:
            self._source.commit(self._uncommitted)
            self._uncommitted = {}

    def _drain(self) -> None:
        """Store and commit what was read; gives up only where a dependency stays away."""
        deadline = time.monotonic() + 30.0
        try:
            while self._writing is not None or self._parts:
                if self._writing is None:
                    self._start_writing()
                left = max(0.1, deadline - time.monotonic())
                if not self._settle(wait=True, timeout_seconds=left):
                    logger.warning("Stopped with messages not stored; they will be read again.")
                    return
        except UnavailableError as error:
            logger.warning("Stopped before all offsets were committed: %s", error)

    def _on_revoked(self, places: frozenset[Place]) -> None:
        """Store and commit before the partitions go; what cannot be stored in time is dropped."""
        deadline = time.monotonic() + 5.0
        while self._writing is not None or self._parts:
            if self._writing is None:
                self._start_writing()
            left = max(0.05, deadline - time.monotonic())
            if not self._settle(wait=True, timeout_seconds=left, commit=False):
                break
        self._source.commit_soon(self._uncommitted)
        if self._writing is not None or self._parts:
            logger.warning("A rebalance came before a batch was stored; it will be read again.")
            self._drop()
        # Their next owner decides; what it read again must not be committed over.
        self._uncommitted = {}

    def _drop(self) -> None:
        self._abandoned.set()
        self._writing = None
        self._parts, self._buffered_bytes = [], 0

    def _report(self, problem: str | None) -> None:
        if problem and problem != self.problem:
            logger.warning("Waiting: %s", problem)
        elif problem is None and self.problem not in (None, "starting"):
            logger.warning("Going on: the dependency answers again.")
        self.problem = problem
