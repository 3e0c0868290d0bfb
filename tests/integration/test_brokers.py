"""What the product relies on in a Kafka broker, whichever kind it is given."""

import gc
import logging
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import KafkaAdminClient
from kafka.errors import KafkaError

from lookup_audit.deploy.topics import cluster_id, ensure_topics
from lookup_audit.schemas.errors import ConfigError, UnavailableError
from tests.support.apache_kafka import ApacheKafka
from tests.support.brokers import (
    EMBEDDED,
    WAIT_SECONDS,
    RunningBroker,
    TopicFactory,
    wait_until,
)

pytest_plugins = ["tests.support.broker_fixtures"]

# Half of the session timeout is what the embedded broker lets a group wait.
GROUP = {"session_timeout_ms": 6000, "heartbeat_interval_ms": 1000, "enable_auto_commit": False}


@pytest.fixture
def refused_connections(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Collect what kafka-python leaves of a refused connection: it never closes the socket.

    It also logs the error, and a captured record would keep the socket.
    """
    with caplog.at_level(logging.CRITICAL, logger="kafka"):
        yield
    gc.collect()


on_a_durable_broker = pytest.mark.parametrize(
    "broker_kind",
    [
        pytest.param("apache", marks=pytest.mark.apache_kafka),
        pytest.param("docker", marks=pytest.mark.docker),
    ],
    indirect=True,
)


def outage(test: Callable[..., None]) -> Callable[..., None]:
    """Mark a test during which a broker is away."""
    ignored = pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")
    marked: Callable[..., None] = ignored(pytest.mark.usefixtures("refused_connections")(test))
    return marked


@contextmanager
def producing(broker: RunningBroker, **settings: object) -> Iterator[Any]:
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap, acks="all", **settings)
    try:
        yield producer
    finally:
        producer.close(timeout=2)


@contextmanager
def consuming(broker: RunningBroker, **settings: object) -> Iterator[Any]:
    settings = {"auto_offset_reset": "earliest", "enable_auto_commit": False, **settings}
    consumer = KafkaConsumer(bootstrap_servers=broker.bootstrap, **settings)
    try:
        yield consumer
    finally:
        consumer.close()


def send(broker: RunningBroker, topic: str, values: list[bytes], **settings: object) -> None:
    with producing(broker, **settings) as producer:
        futures = [producer.send(topic, value, partition=0) for value in values]
        producer.flush()
        for future in futures:
            future.get(WAIT_SECONDS)


def join(consumer: Any, topic: str) -> None:
    # A leader that does not know the topic yet assigns nobody anything, and kafka-python may then
    # stay without a partition until it refreshes its metadata minutes later.
    assert consumer.partitions_for_topic(topic)
    consumer.subscribe([topic])


def take(consumer: Any, count: int) -> list[Any]:
    records: list[Any] = []
    deadline = time.monotonic() + WAIT_SECONDS
    while len(records) < count and time.monotonic() < deadline:
        for batch in consumer.poll(200).values():
            records.extend(batch)
    return records


def read(broker: RunningBroker, topic: str, count: int, **settings: object) -> list[Any]:
    with consuming(broker, **settings) as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        return take(consumer, count)


def only_on_a_full_broker(request: pytest.FixtureRequest, broker: RunningBroker) -> None:
    """Expect the embedded broker to fail: the day it does not, its description is wrong."""
    if broker.kind == EMBEDDED:
        request.applymarker(pytest.mark.xfail(strict=True, reason="not in the embedded broker"))


class Member:
    """A consumer of a group on a thread of its own, as each processor has one."""

    def __init__(self, broker: RunningBroker, topic: str, group: str) -> None:
        self.partitions: set[int] = set()
        self._left = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(broker, topic, group))
        self._thread.start()

    def _run(self, broker: RunningBroker, topic: str, group: str) -> None:
        with consuming(broker, group_id=group, **GROUP) as consumer:
            join(consumer, topic)
            while not self._left.is_set():
                consumer.poll(100)
                self.partitions = {each.partition for each in consumer.assignment()}
        self.partitions = set()

    def leave(self) -> None:
        self._left.set()
        self._thread.join(WAIT_SECONDS)


def test_record_arrives_with_key_headers_and_timestamp(
    broker: RunningBroker, make_topic: TopicFactory
) -> None:
    topic = make_topic()
    # An hour old: a broker with retention soon deletes what is older than a week.
    timestamp = int(time.time() * 1000) - 3_600_000
    headers = [("ce_id", b"1"), ("twice", b"a"), ("twice", b"b"), ("empty", b"")]
    with producing(broker) as producer:
        producer.send(topic, b"value", key=b"key", headers=headers, timestamp_ms=timestamp)
        producer.flush()

    (record,) = read(broker, topic, 1)

    assert (record.key, record.value, record.timestamp) == (b"key", b"value", timestamp)
    assert list(record.headers) == headers
    assert (record.partition, record.offset) == (0, 0)


@pytest.mark.parametrize("compression", [None, "gzip", "lz4", "zstd", "snappy"])
def test_every_compression_is_stored_and_read(
    broker: RunningBroker, make_topic: TopicFactory, compression: str | None
) -> None:
    if compression == "snappy":
        pytest.importorskip("snappy")
    topic = make_topic()
    values = [f"{number:04}".encode() * 100 for number in range(50)]

    send(broker, topic, values, compression_type=compression, linger_ms=20)

    assert [record.value for record in read(broker, topic, 50)] == values


def test_idempotent_producer_writes_every_record_once_and_in_order(
    broker: RunningBroker, make_topic: TopicFactory
) -> None:
    topic = make_topic()
    values = [str(number).encode() for number in range(2000)]

    send(broker, topic, values, enable_idempotence=True, batch_size=512)

    records = read(broker, topic, 2000)
    assert [record.value for record in records] == values
    assert [record.offset for record in records] == list(range(2000))


def test_two_consumers_of_a_group_share_partitions_and_take_over(
    broker: RunningBroker, make_topic: TopicFactory
) -> None:
    topic, group = make_topic(4), uuid.uuid4().hex
    members = [Member(broker, topic, group)]
    try:
        wait_until(lambda: members[0].partitions == {0, 1, 2, 3}, "the first assignment")
        members.append(Member(broker, topic, group))
        wait_until(
            lambda: (
                [len(member.partitions) for member in members] == [2, 2]
                and members[0].partitions | members[1].partitions == {0, 1, 2, 3}
            ),
            "an even split",
        )
        members[1].leave()
        wait_until(lambda: members[0].partitions == {0, 1, 2, 3}, "the take-over")
    finally:
        for member in members:
            member.leave()


def test_group_goes_on_after_its_committed_offset(
    broker: RunningBroker, make_topic: TopicFactory
) -> None:
    topic, group = make_topic(), uuid.uuid4().hex
    send(broker, topic, [str(number).encode() for number in range(20)])
    with consuming(broker, group_id=group, max_poll_records=8, **GROUP) as consumer:
        join(consumer, topic)
        first = take(consumer, 1)
        consumer.commit()

    with consuming(broker, group_id=group, **GROUP) as consumer:
        join(consumer, topic)
        rest = take(consumer, 20 - len(first))

    assert 0 < len(first) < 20
    assert [record.offset for record in first + rest] == list(range(20))


@outage
def test_producer_sees_that_the_broker_is_gone(
    broker: RunningBroker, make_topic: TopicFactory
) -> None:
    topic = make_topic()
    impatient = {"request_timeout_ms": 1000, "delivery_timeout_ms": 3000, "max_block_ms": 3000}
    with producing(broker, **impatient) as producer:
        producer.send(topic, b"before").get(WAIT_SECONDS)
        broker.kill()
        try:
            with pytest.raises(KafkaError):
                producer.send(topic, b"after").get(WAIT_SECONDS)
        finally:
            broker.start()


@outage
@on_a_durable_broker
def test_acknowledged_records_and_offsets_survive_a_crash(
    broker: RunningBroker, make_topic: TopicFactory
) -> None:
    topic, group = make_topic(), uuid.uuid4().hex
    send(broker, topic, [b"one", b"two"])
    with consuming(broker, group_id=group, **GROUP) as consumer:
        join(consumer, topic)
        assert len(take(consumer, 2)) == 2
        consumer.commit()

    broker.kill()
    broker.start()

    assert [record.value for record in read(broker, topic, 2)] == [b"one", b"two"]
    with consuming(broker, group_id=group, **GROUP) as consumer:
        assert consumer.committed(TopicPartition(topic, 0)) == 2


@outage
@on_a_durable_broker
def test_idempotent_producer_goes_on_after_a_crash_of_the_broker(
    broker: RunningBroker, make_topic: TopicFactory
) -> None:
    topic = make_topic()
    with producing(broker, enable_idempotence=True, delivery_timeout_ms=60_000) as producer:
        producer.send(topic, b"before", partition=0).get(WAIT_SECONDS)
        broker.kill()
        waiting = producer.send(topic, b"during", partition=0)
        broker.start()
        waiting.get(WAIT_SECONDS)
        producer.send(topic, b"after", partition=0).get(WAIT_SECONDS)

    assert [record.value for record in read(broker, topic, 3)] == [b"before", b"during", b"after"]


def test_position_past_the_end_is_noticed(
    request: pytest.FixtureRequest, broker: RunningBroker, make_topic: TopicFactory
) -> None:
    only_on_a_full_broker(request, broker)
    topic = make_topic()
    send(broker, topic, [b"one"])

    with consuming(broker) as consumer:
        partition = TopicPartition(topic, 0)
        consumer.assign([partition])
        consumer.seek(partition, 500)
        for _ in range(8):
            consumer.poll(250)
        assert consumer.position(partition) == 1, "it starts again at the earliest record"


def test_end_offset_is_past_the_last_record(
    request: pytest.FixtureRequest, broker: RunningBroker, make_topic: TopicFactory
) -> None:
    only_on_a_full_broker(request, broker)
    topic = make_topic()
    send(broker, topic, [b"one", b"two", b"three"], linger_ms=200)

    with consuming(broker) as consumer:
        partition = TopicPartition(topic, 0)
        assert consumer.end_offsets([partition]) == {partition: 3}


def test_time_after_the_last_record_has_no_offset(
    request: pytest.FixtureRequest, broker: RunningBroker, make_topic: TopicFactory
) -> None:
    only_on_a_full_broker(request, broker)
    topic = make_topic()
    send(broker, topic, [b"one"])

    with consuming(broker) as consumer:
        partition = TopicPartition(topic, 0)
        future = int(time.time() * 1000) + 60_000
        assert consumer.offsets_for_times({partition: future}) == {partition: None}


def test_aborted_transaction_is_not_read_as_committed(
    request: pytest.FixtureRequest, broker: RunningBroker, make_topic: TopicFactory
) -> None:
    only_on_a_full_broker(request, broker)
    topic = make_topic()
    with producing(broker, transactional_id=uuid.uuid4().hex) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send(topic, b"aborted")
        producer.flush()
        producer.abort_transaction()
        producer.begin_transaction()
        producer.send(topic, b"committed")
        producer.commit_transaction()

    (record,) = read(broker, topic, 1, isolation_level="read_committed")

    assert record.value == b"committed"


def test_records_can_be_deleted_before_an_offset(
    request: pytest.FixtureRequest, broker: RunningBroker, make_topic: TopicFactory
) -> None:
    only_on_a_full_broker(request, broker)
    topic = make_topic()
    send(broker, topic, [b"one", b"two", b"three"])
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
    try:
        admin.delete_records({TopicPartition(topic, 0): 2})
    finally:
        admin.close()

    assert [record.value for record in read(broker, topic, 1)] == [b"three"]


def test_missing_topics_are_created_and_existing_ones_left(
    broker: RunningBroker, make_topic: TopicFactory, caplog: pytest.LogCaptureFixture
) -> None:
    existing, missing = make_topic(2), f"test.{uuid.uuid4().hex}"
    wanted = {existing: 5, missing: 3}

    assert ensure_topics(broker.bootstrap, wanted) == {existing: 2, missing: 3}
    assert ensure_topics(broker.bootstrap, wanted) == {existing: 2, missing: 3}

    assert f"Topic {existing} has 2 partitions where 5 are configured" in caplog.text


@pytest.mark.apache_kafka
def test_refused_topic_is_named(apache_kafka: ApacheKafka) -> None:
    with pytest.raises(ConfigError, match=r"refuses to create topic no spaces please"):
        ensure_topics(apache_kafka.bootstrap, {"no spaces please": 1})


@pytest.mark.apache_kafka
def test_frozen_broker_is_unavailable_until_it_goes_on(apache_kafka: ApacheKafka) -> None:
    apache_kafka.pause()
    try:
        with pytest.raises(UnavailableError, match=apache_kafka.bootstrap):
            cluster_id(apache_kafka.bootstrap, timeout_seconds=1.0)
    finally:
        apache_kafka.resume()

    assert cluster_id(apache_kafka.bootstrap)
