"""Kafka in and out of the processor: the only module here that knows kafka-python.

Values stay bytes until our own code decodes them: a deserialiser that raises inside ``poll`` would
be called again with the same record for ever. Offsets are committed by the processor alone.
"""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer
from kafka.consumer.subscription_state import ConsumerRebalanceListener
from kafka.errors import (
    CommitFailedError,
    KafkaError,
    RebalanceInProgressError,
    UnsupportedCodecError,
)
from kafka.structs import OffsetAndMetadata, TopicPartition
from pydantic import BaseModel, ConfigDict, Field

from lookup_audit.processors.batch import DeadLetter, Message
from lookup_audit.schemas.errors import UnavailableError
from lookup_audit.schemas.names import Header, Topic

logger = logging.getLogger(__name__)

Place = tuple[str, int]

# Names that only exist for the hop and must not appear twice on a dead letter.
_DLQ_HEADERS = frozenset(h.value for h in Header if h.value.startswith("dlq."))


class KafkaConfig(BaseModel):
    """How to reach the brokers.

    Args:
        bootstrap_servers: Comma-separated ``host:port``.
        group_id: Consumer group; replicas of the processor share one.
        session_timeout_ms: A silent consumer is given up after this time.
        max_poll_interval_ms: A consumer that stops polling is given up after this time.
        security: Further kafka-python settings (``security_protocol``, ``sasl_mechanism``, …).
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    bootstrap_servers: str = "127.0.0.1:9092"
    group_id: str = "lookup-audit"
    session_timeout_ms: int = Field(default=10_000, ge=1_000)
    max_poll_interval_ms: int = Field(default=300_000, ge=1_000)
    security: dict[str, str] = Field(default_factory=dict)


class Source(Protocol):
    """Where messages come from; polled, paused and committed from one thread."""

    def poll(self, timeout_seconds: float, max_messages: int) -> Sequence[Message]:
        """Messages that arrived, in order per partition; raises UnavailableError."""

    def commit(self, next_offsets: Mapping[Place, int]) -> None:
        """Remember how far everything is stored; a lost commit only means reading again."""

    def pause(self) -> None:
        """Fetch nothing more, but stay a member of the group."""

    def resume(self) -> None:
        """Fetch again."""

    def lag(self) -> Mapping[Place, int]:
        """Messages behind the end, by partition held."""

    def cluster_id(self) -> str:
        """The broker cluster's id, under which offsets are unique; raises UnavailableError."""

    def close(self) -> None:
        """Leave the group."""


class _Listener(ConsumerRebalanceListener):  # type: ignore[misc]  # untyped library
    def __init__(self, on_revoked: Callable[[frozenset[Place]], None]):
        self._on_revoked = on_revoked

    def on_partitions_revoked(self, revoked: Any) -> None:
        if revoked:
            self._on_revoked(frozenset((tp.topic, tp.partition) for tp in revoked))

    def on_partitions_assigned(self, assigned: Any) -> None:
        names = sorted(f"{tp.topic}/{tp.partition}" for tp in assigned)
        logger.info("Reading %s.", ", ".join(names) or "no partition")

    def on_partitions_lost(self, lost: Any) -> None:
        self.on_partitions_revoked(lost)


class KafkaSource:
    """A consumer-group member.

    Args:
        config: How to reach the brokers.
        topics: What to read.
        on_revoked: Called inside ``poll`` before partitions go to another member: the last
            chance to store and commit what was read from them.
    """

    def __init__(
        self,
        config: KafkaConfig,
        topics: Sequence[str],
        on_revoked: Callable[[frozenset[Place]], None],
    ):
        self._config = config
        self._topics = tuple(topics)
        self._listener = _Listener(on_revoked)
        self._consumer: Any = None

    def _connected(self) -> Any:
        if self._consumer is None:
            try:
                consumer = KafkaConsumer(
                    bootstrap_servers=self._config.bootstrap_servers.split(","),
                    group_id=self._config.group_id,
                    enable_auto_commit=False,
                    # Never "latest": what was produced before the group existed counts too.
                    auto_offset_reset="earliest",
                    allow_auto_create_topics=False,
                    session_timeout_ms=self._config.session_timeout_ms,
                    heartbeat_interval_ms=self._config.session_timeout_ms // 3,
                    max_poll_interval_ms=self._config.max_poll_interval_ms,
                    request_timeout_ms=self._config.session_timeout_ms + 5_000,
                    fetch_max_bytes=16 * 2**20,
                    max_partition_fetch_bytes=4 * 2**20,
                    **self._config.security,
                )
            except KafkaError as error:
                raise UnavailableError(f"Kafka does not answer: {error}") from error
            for topic in self._topics:
                # A leader that joins before it knows the topics assigns no partition, for good.
                consumer.partitions_for_topic(topic)
            consumer.subscribe(self._topics, listener=self._listener)
            self._consumer = consumer
        return self._consumer

    def poll(self, timeout_seconds: float, max_messages: int) -> Sequence[Message]:
        """See :meth:`Source.poll`."""
        try:
            polled = self._connected().poll(
                timeout_ms=int(timeout_seconds * 1000), max_records=max_messages
            )
        except RebalanceInProgressError:
            return ()
        except UnsupportedCodecError as error:
            raise UnavailableError(
                f"a topic holds batches this installation cannot decompress ({error}); install "
                "the missing codec (lookup-audit doctor names it)",
                retry_after_seconds=5.0,
            ) from error
        except KafkaError as error:
            raise UnavailableError(f"Kafka does not answer: {error}") from error
        return [
            Message(r.topic, r.partition, r.offset, r.timestamp, r.key, r.value, tuple(r.headers))
            for records in polled.values()
            for r in records
        ]

    def commit(self, next_offsets: Mapping[Place, int]) -> None:
        """See :meth:`Source.commit`."""
        consumer = self._connected()
        held = {(tp.topic, tp.partition) for tp in consumer.assignment()}
        offsets = {
            TopicPartition(*place): OffsetAndMetadata(offset, "", -1)
            for place, offset in next_offsets.items()
            if place in held
        }
        if not offsets:
            return
        try:
            consumer.commit(offsets)
        except (CommitFailedError, RebalanceInProgressError) as error:
            # The next owner reads the same messages and finds them stored.
            logger.warning("Offsets %s were not committed: %s", dict(next_offsets), error)
        except KafkaError as error:
            raise UnavailableError(f"Kafka does not take the commit: {error}") from error

    def pause(self) -> None:
        """See :meth:`Source.pause`."""
        consumer = self._connected()
        consumer.pause(*consumer.assignment())

    def resume(self) -> None:
        """See :meth:`Source.resume`."""
        consumer = self._connected()
        consumer.resume(*consumer.paused())

    def lag(self) -> Mapping[Place, int]:
        """See :meth:`Source.lag`."""
        if self._consumer is None:
            return {}
        found = {}
        for tp in self._consumer.assignment():
            end = self._consumer.highwater(tp)
            if end is not None:
                try:
                    position = self._consumer.position(tp, timeout_ms=100)
                except KafkaError:
                    continue  # just assigned: its position comes with the next poll
                found[tp.topic, tp.partition] = max(0, end - (position or 0))
        return found

    def cluster_id(self) -> str:
        """See :meth:`Source.cluster_id`."""
        return cluster_id(self._config)

    def close(self) -> None:
        """See :meth:`Source.close`."""
        if self._consumer is not None:
            self._consumer.close(autocommit=False, timeout_ms=5_000)
            self._consumer = None


def cluster_id(config: KafkaConfig) -> str:
    """The cluster's id.

    Raises:
        UnavailableError: No broker answers.
    """
    try:
        admin = KafkaAdminClient(
            bootstrap_servers=config.bootstrap_servers.split(","),
            request_timeout_ms=5_000,
            **config.security,
        )
        try:
            return str(admin.describe_cluster()["cluster_id"])
        finally:
            admin.close()
    except KafkaError as error:
        raise UnavailableError(f"Kafka does not answer: {error}") from error


def end_offsets(config: KafkaConfig, topics: Sequence[str]) -> dict[Place, int]:
    """Where each partition of some topics ends now; raises UnavailableError."""
    try:
        consumer = KafkaConsumer(
            bootstrap_servers=config.bootstrap_servers.split(","),
            request_timeout_ms=5_000,
            allow_auto_create_topics=False,
            **config.security,
        )
        try:
            places = [
                TopicPartition(topic, partition)
                for topic in topics
                for partition in consumer.partitions_for_topic(topic) or ()
            ]
            ends = consumer.end_offsets(places)
            return {(tp.topic, tp.partition): end for tp, end in ends.items()}
        finally:
            consumer.close(autocommit=False)
    except KafkaError as error:
        raise UnavailableError(f"Kafka does not answer: {error}") from error


class DeadLetterPublisher(Protocol):
    """Where dead letters go besides the table."""

    def publish(self, letters: Sequence[DeadLetter]) -> None:
        """Hand over and wait until all are acknowledged; raises UnavailableError."""

    def close(self) -> None:
        """Release the connection."""


class KafkaDeadLetters:
    """Publishes original bytes, key and headers to the dead-letter topic, with the origin."""

    def __init__(self, config: KafkaConfig, *, timeout_seconds: float = 30.0):
        self._config = config
        self._timeout = timeout_seconds
        self._producer: Any = None

    def publish(self, letters: Sequence[DeadLetter]) -> None:
        """See :meth:`DeadLetterPublisher.publish`."""
        if not letters:
            return
        deadline = time.monotonic() + self._timeout
        try:
            producer = self._connected()
            futures = [
                producer.send(
                    Topic.DEAD_LETTERS.value,
                    key=letter.message.key,
                    value=_sendable(letter.message),
                    headers=dead_letter_headers(letter),
                )
                for letter in letters
            ]
            producer.flush(timeout=self._timeout)
            for future in futures:
                future.get(timeout=max(0.1, deadline - time.monotonic()))
        except KafkaError as error:
            raise UnavailableError(f"dead letters were not acknowledged: {error}") from error

    def _connected(self) -> Any:
        if self._producer is None:
            self._producer = KafkaProducer(
                bootstrap_servers=self._config.bootstrap_servers.split(","),
                acks="all",
                enable_idempotence=True,
                compression_type="lz4",
                linger_ms=5,
                # A record that came in must go out again, with headers on top.
                max_request_size=32 * 2**20,
                max_block_ms=int(self._timeout * 1000),
                **self._config.security,
            )
        return self._producer

    def close(self) -> None:
        """See :meth:`DeadLetterPublisher.close`."""
        if self._producer is not None:
            self._producer.close(timeout=5)
            self._producer = None


def _sendable(message: Message) -> bytes | None:
    """The value; an empty one for a record without key and value, which no client can send."""
    return b"" if message.key is None and message.value is None else message.value


def dead_letter_headers(letter: DeadLetter) -> list[tuple[str, bytes]]:
    """The original headers, then where the message came from and why it is here."""
    message, rejected = letter.message, letter.rejected
    kept = [(name, value) for name, value in message.headers if name not in _DLQ_HEADERS]
    attempt = next((v for n, v in message.headers if n == Header.DLQ_ATTEMPT), b"0")
    origin: list[tuple[str, object]] = [
        (Header.DLQ_REASON, rejected.reason.value),
        (Header.DLQ_FIELD, rejected.field),
        (Header.DLQ_MESSAGE, rejected.message),
        (Header.DLQ_TOPIC, message.topic),
        (Header.DLQ_PARTITION, message.partition),
        (Header.DLQ_OFFSET, message.offset),
        (Header.DLQ_TIMESTAMP, message.timestamp_ms),
        (Header.DLQ_ATTEMPT, int(attempt) + 1 if attempt.isdigit() else 1),
    ]
    return kept + [
        (str(name), str(value).encode("utf-8", "surrogatepass")) for name, value in origin
    ]


def missing_codecs() -> list[str]:
    """Compressions that Kafka producers may use and this installation cannot read."""
    from kafka import codec

    present = {
        "gzip": codec.has_gzip(),
        "lz4": codec.has_lz4(),
        "snappy": codec.has_snappy(),
        "zstd": codec.has_zstd(),
    }
    return sorted(name for name, found in present.items() if not found)
