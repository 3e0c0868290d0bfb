"""The source's own promises, on the embedded broker; groups and restarts are in test_brokers."""

import time
import uuid
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from kafka import KafkaProducer, codec

from lookup_audit.deploy.topics import ensure_topics
from lookup_audit.processors.batch import Message
from lookup_audit.processors.kafka_source import KafkaConfig, KafkaSource, missing_codecs
from lookup_audit.schemas.errors import UnavailableError
from tests.support.brokers import EmbeddedBrokerUnderTest

pytest_plugins = ["tests.support.broker_fixtures"]

WAIT_SECONDS = 20.0


def make_source(broker: EmbeddedBrokerUnderTest, topic: str) -> KafkaSource:
    config = KafkaConfig(
        bootstrap_servers=broker.bootstrap, group_id=f"g-{topic}", session_timeout_ms=6_000
    )
    return KafkaSource(config, [topic], lambda places: None)


def poll_until(source: KafkaSource, count: int) -> list[Message]:
    found: list[Message] = []
    deadline = time.monotonic() + WAIT_SECONDS
    while len(found) < count:
        assert time.monotonic() < deadline, f"only {len(found)} of {count} messages came"
        found += source.poll(0.1, 100)
    return found


@pytest.fixture
def topic(embedded_broker: EmbeddedBrokerUnderTest) -> str:
    name = f"test.{uuid.uuid4().hex}"
    ensure_topics(embedded_broker.bootstrap, {name: 1})
    return name


def send(broker: EmbeddedBrokerUnderTest, topic: str, values: list[bytes], codec_name: str) -> None:
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap, compression_type=codec_name)
    try:
        for value in values:
            producer.send(topic, value)
        producer.flush(10)
    finally:
        producer.close(2)


def test_every_codec_producers_use_can_be_read() -> None:
    assert missing_codecs() == []


def test_a_missing_codec_is_a_visible_error_and_skips_nothing(
    embedded_broker: EmbeddedBrokerUnderTest, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    send(embedded_broker, topic, [b"x" * 200] * 5, "zstd")
    with closing(make_source(embedded_broker, topic)) as source:
        with monkeypatch.context() as image:
            image.setattr(codec, "has_zstd", lambda: False)
            assert missing_codecs() == ["zstd"]
            # Not once: as long as it is so.
            for _ in range(2):
                with pytest.raises(UnavailableError, match="cannot decompress"):
                    poll_until(source, 1)
        assert [m.offset for m in poll_until(source, 5)] == [0, 1, 2, 3, 4]


@pytest.fixture
def own_broker(tmp_path: Path) -> Iterator[EmbeddedBrokerUnderTest]:
    with EmbeddedBrokerUnderTest(tmp_path) as broker:
        yield broker


@pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_broker_that_is_gone_is_told_from_a_quiet_topic(
    own_broker: EmbeddedBrokerUnderTest,
) -> None:
    ensure_topics(own_broker.bootstrap, {"quiet": 1})
    with closing(make_source(own_broker, "quiet")) as source:
        quiet_until = time.monotonic() + 6.0
        while time.monotonic() < quiet_until:
            assert source.poll(0.1, 10) == []
        own_broker.kill()
        for _ in range(2):
            with pytest.raises(UnavailableError, match="no Kafka broker answers"):
                poll_until(source, 1)
        own_broker.start()
        assert source.poll(0.1, 10) == []
