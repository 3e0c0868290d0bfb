"""In-memory stand-ins for Kafka and the store, and ways to make them fail."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa

from lookup_audit.processors.batch import DeadLetter, Message
from lookup_audit.processors.encode import Encoder
from lookup_audit.processors.kafka_source import Place
from lookup_audit.processors.sink import Sink
from lookup_audit.processors.store import Rows, Store
from lookup_audit.schemas.errors import UnavailableError
from lookup_audit.schemas.names import Topic

CLUSTER = "cluster-1"


def utc_now() -> datetime:
    return datetime.now(UTC)


def make_message(
    value: bytes | None,
    offset: int = 0,
    *,
    topic: str = Topic.RESULTS,
    partition: int = 0,
    headers: tuple[tuple[str, bytes], ...] = (),
    timestamp_ms: int | None = None,
    key: bytes | None = None,
) -> Message:
    now_ms = int(utc_now().timestamp() * 1000)
    stamp = now_ms if timestamp_ms is None else timestamp_ms
    return Message(str(topic), partition, offset, stamp, key, value, headers)


def in_order(values: Sequence[bytes | None], **where: Any) -> list[Message]:
    """Messages at consecutive offsets from 0."""
    return [make_message(value, offset, **where) for offset, value in enumerate(values)]


def make_encoder(
    clock: Callable[[], datetime] = utc_now, retention: timedelta = timedelta(days=730)
) -> Encoder:
    return Encoder(clock=clock, retention=retention)


class CollectedDeadLetters:
    """Keeps what is published."""

    def __init__(self) -> None:
        self.letters: list[DeadLetter] = []
        self.is_closed = False

    def publish(self, letters: Sequence[DeadLetter]) -> None:
        self.letters.extend(letters)

    def close(self) -> None:
        self.is_closed = True


def make_sink(store: Store, dead_letters: CollectedDeadLetters | None = None) -> Sink:
    return Sink(store, dead_letters or CollectedDeadLetters(), cluster_id=CLUSTER, clock=utc_now)


class FailingStore:
    """A store that does not answer for a while, or fails at a chosen call.

    Args:
        inner: The store that works.
        fail_at: Numbers of the inserts (from 1) that fail after they have been stored.
    """

    # As of a server, so that a batch asks in pieces.
    parameter_bytes = 60_000

    def __init__(self, inner: Store, *, fail_at: frozenset[int] = frozenset()):
        self.inner = inner
        self.is_down = False
        self.inserts = 0
        self._fail_at = fail_at

    def _check(self) -> None:
        if self.is_down:
            raise UnavailableError("the store is down", retry_after_seconds=0.01)

    def insert(self, table: str, batch: pa.Table, *, token: str) -> None:
        self._check()
        self.inserts += 1
        self.inner.insert(table, batch, token=token)
        if self.inserts in self._fail_at:
            # The worst moment: stored, and the answer lost.
            raise UnavailableError("the connection broke", retry_after_seconds=0.01)

    def query(self, sql: str, parameters: Mapping[str, Any] | None = None) -> Rows:
        self._check()
        return self.inner.query(sql, parameters)

    def command(self, sql: str, parameters: Mapping[str, Any] | None = None) -> None:
        self._check()
        self.inner.command(sql, parameters)

    def raw(
        self, sql: str, *, output_format: str, parameters: Mapping[str, Any] | None = None
    ) -> bytes:
        self._check()
        return self.inner.raw(sql, output_format=output_format, parameters=parameters)

    def sole_writer(self) -> AbstractContextManager[bool]:
        return nullcontext(False)

    def close(self) -> None:
        self.inner.close()


class ListSource:
    """A topic in memory with one consumer; can lose a commit, rebalance, and go away."""

    def __init__(self, messages: Sequence[Message]):
        self.messages = list(messages)
        self.position = 0
        self.committed: dict[Place, int] = {}
        self.polls_while_paused = 0
        self.is_paused = False
        self.is_down = False
        self.is_closed = False
        self.lose_commits = False
        self.on_revoked: Callable[[frozenset[Place]], None] = lambda places: None

    def __call__(self, on_revoked: Callable[[frozenset[Place]], None]) -> "ListSource":
        self.on_revoked = on_revoked
        return self

    def poll(self, timeout_seconds: float, max_messages: int) -> Sequence[Message]:
        if self.is_down:
            raise UnavailableError("the broker is down", retry_after_seconds=0.01)
        if self.is_paused:
            self.polls_while_paused += 1
            return ()
        found = self.messages[self.position : self.position + max_messages]
        self.position += len(found)
        return found

    def rebalance(self) -> None:
        """Give all partitions away and get them back, at what was committed."""
        self.on_revoked(frozenset((m.topic, m.partition) for m in self.messages))
        self.position = next(
            (
                index
                for index, m in enumerate(self.messages)
                if m.offset >= self.committed.get((m.topic, m.partition), 0)
            ),
            len(self.messages),
        )
        self.is_paused = False

    def commit(self, next_offsets: Mapping[Place, int]) -> None:
        if not self.lose_commits:
            self.committed |= next_offsets

    def commit_soon(self, next_offsets: Mapping[Place, int]) -> None:
        self.commit(next_offsets)

    def pause(self) -> None:
        self.is_paused = True

    def resume(self) -> None:
        self.is_paused = False

    def lag(self) -> Mapping[Place, int]:
        return {}

    def cluster_id(self) -> str:
        return CLUSTER

    def close(self) -> None:
        self.is_closed = True
