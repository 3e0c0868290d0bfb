"""Kafka into the processor: with ``kafka_dead_letters`` all that knows kafka-python here.

Values stay bytes until our own code decodes them: a deserialiser that raises inside ``poll`` would
be called again with the same record for ever. Offsets are committed by the processor alone.
"""

import logging
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from kafka import KafkaAdminClient, KafkaConsumer
from kafka.consumer.subscription_state import ConsumerRebalanceListener
from kafka.errors import (
    CommitFailedError,
    CorruptRecordError,
    KafkaError,
    RebalanceInProgressError,
    UnsupportedCodecError,
)
from kafka.structs import OffsetAndMetadata, TopicPartition
from pydantic import BaseModel, ConfigDict, Field

from lookup_audit.processors.batch import Message
from lookup_audit.schemas.errors import UnavailableError

logger = logging.getLogger(__name__)

Place = tuple[str, int]

# After this time without a message the broker is knocked at.
_SILENCE_SECONDS = 5.0


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

    def commit_soon(self, next_offsets: Mapping[Place, int]) -> None:
        """Commit without waiting for the answer: all that a rebalance allows. Never raises."""

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


def _held(consumer: Any, next_offsets: Mapping[Place, int]) -> dict[Any, Any]:
    """The client's form of the offsets, for the partitions it still has."""
    held = {(tp.topic, tp.partition) for tp in consumer.assignment()}
    return {
        TopicPartition(*place): OffsetAndMetadata(offset, "", -1)
        for place, offset in next_offsets.items()
        if place in held
    }


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
    """A consumer-group member, or the only reader there is.

    Args:
        config: How to reach the brokers.
        topics: What to read.
        on_revoked: Called inside ``poll`` before partitions go to another member: the last
            chance to store and commit what was read from them.
        is_alone: Nobody else reads in this group's name: take every partition at once, and wait
            for no group to form, which takes seconds. Offsets are committed all the same.
    """

    def __init__(
        self,
        config: KafkaConfig,
        topics: Sequence[str],
        on_revoked: Callable[[frozenset[Place]], None],
        *,
        is_alone: bool = False,
    ):
        self._config = config
        self._is_alone = is_alone
        self._topics = tuple(topics)
        self._listener = _Listener(on_revoked)
        self._consumer: Any = None
        self._heard_at = time.monotonic()

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
            # Asked for also by a member: a leader that joins before it knows the topics assigns no
            # partition, for good.
            places = [
                TopicPartition(topic, partition)
                for topic in self._topics
                for partition in sorted(consumer.partitions_for_topic(topic) or ())
            ]
            if self._is_alone:
                consumer.assign(places)
            else:
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
        except UnavailableError:
            raise
        except Exception as error:
            # Any kind: what a codec raises for a broken batch is not Kafka's.
            raise self._gone_wrong(error) from error
        self._notice_silence(bool(polled))
        return [
            Message(r.topic, r.partition, r.offset, r.timestamp, r.key, r.value, tuple(r.headers))
            for records in polled.values()
            for r in records
        ]

    def _gone_wrong(self, error: Exception) -> UnavailableError:
        if getattr(error, "retriable", False) and not isinstance(error, CorruptRecordError):
            return UnavailableError(f"Kafka does not answer: {error}")
        # After an error inside a batch the client's next poll would never return (kafka-python
        # 3.0): a new client begins at the last commit.
        self.close()
        if isinstance(error, UnsupportedCodecError):
            text = (
                f"a topic holds batches this installation cannot decompress ({error}); install "
                "the missing codec (lookup-audit doctor names it)"
            )
        else:
            text = f"Kafka cannot be read: {type(error).__name__}: {error}"
        return UnavailableError(text, retry_after_seconds=5.0)

    def _notice_silence(self, has_come: bool) -> None:
        """Tell a quiet topic from a broker that is gone, of which the client says nothing."""
        now = time.monotonic()
        if not has_come and now - self._heard_at > _SILENCE_SECONDS:
            _knock(self._config.bootstrap_servers)
            self._heard_at = now
        elif has_come:
            self._heard_at = now

    def commit(self, next_offsets: Mapping[Place, int]) -> None:
        """See :meth:`Source.commit`."""
        consumer = self._connected()
        offsets = _held(consumer, next_offsets)
        if not offsets:
            return
        try:
            consumer.commit(offsets)
        except (CommitFailedError, RebalanceInProgressError) as error:
            # The next owner reads the same messages and finds them stored.
            logger.warning("Offsets %s were not committed: %s", dict(next_offsets), error)
        except KafkaError as error:
            raise UnavailableError(f"Kafka does not take the commit: {error}") from error

    def commit_soon(self, next_offsets: Mapping[Place, int]) -> None:
        """See :meth:`Source.commit_soon`."""
        # The client calls back about a rebalance on its own thread, where waiting for an answer
        # is an error. A commit that comes too late only means that the next owner reads again.
        try:
            if self._consumer is not None and (offsets := _held(self._consumer, next_offsets)):
                self._consumer.commit_async(offsets)
        except KafkaError as error:
            logger.warning("Offsets were not committed before a rebalance: %s", error)

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
            try:
                self._consumer.close(autocommit=False, timeout_ms=5_000)
            except KafkaError as error:
                logger.warning("The group was not left in order: %s", error)
            self._consumer = None


def _knock(bootstrap_servers: str) -> None:
    """Raise UnavailableError where none of the addresses accepts a connection."""
    refused: OSError | None = None
    for address in bootstrap_servers.split(","):
        host, _, port = address.strip().rpartition(":")
        try:
            socket.create_connection((host.strip("[]"), int(port)), timeout=1.0).close()
        except ValueError:
            return  # without a port, in a form only the client understands
        except OSError as error:
            refused = error
        else:
            return
    raise UnavailableError(f"no Kafka broker answers at {bootstrap_servers}: {refused}")


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
