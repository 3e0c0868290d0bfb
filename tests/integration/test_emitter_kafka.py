"""The emitter straight to a broker: same records as through a collector, outages included."""

import gc
import uuid
from collections.abc import Iterator

import pytest
from kafka import KafkaConsumer, TopicPartition

from lookup_audit.collector import LookupEmitter
from lookup_audit.deploy.wiring import TOPIC_PARTITIONS, make_topics
from lookup_audit.schemas.names import EventType, Header, Topic
from tests.support.brokers import RunningBroker
from tests.support.events import make_judgement, make_lookup, make_outcome

pytest_plugins = ["tests.support.broker_fixtures"]


@pytest.fixture
def emitter(broker: RunningBroker) -> Iterator[LookupEmitter]:
    make_topics(broker.bootstrap)
    made = LookupEmitter(
        bootstrap_servers=broker.bootstrap, linger_seconds=0.05, service="kb", close_seconds=20
    )
    yield made
    made.close()


def read(bootstrap: str, tenant: str) -> list[tuple[str, dict[str, bytes], bytes]]:
    consumer = KafkaConsumer(
        bootstrap_servers=[bootstrap], enable_auto_commit=False, consumer_timeout_ms=1500
    )
    try:
        consumer.assign(
            [
                TopicPartition(str(topic), number)
                for topic in (Topic.RESULTS, Topic.OUTCOMES)
                for number in range(TOPIC_PARTITIONS[topic])
            ]
        )
        consumer.seek_to_beginning()
        found = [(r.topic, dict(r.headers), r.value) for r in consumer]
    finally:
        consumer.close()
    return [each for each in found if tenant.encode() in each[1].get(Header.SOURCE, b"")]


def test_events_arrive_as_through_a_collector(
    broker: RunningBroker, emitter: LookupEmitter
) -> None:
    tenant = uuid.uuid4().hex
    for _ in range(50):
        emitter.emit(make_lookup(tenant=tenant, service=None))
    emitter.emit_outcome(make_outcome(tenant=tenant))
    emitter.emit_judgement(make_judgement(tenant=tenant))
    emitter.emit(make_lookup(tenant=tenant, mode="fuzzy"))
    assert emitter.flush(30)
    stats = emitter.stats()
    assert (stats.accepted, stats.rejected) == (52, {"invalid_value": 1})
    found = read(broker.bootstrap, tenant)
    types = [headers[Header.TYPE].decode() for _, headers, _ in found]
    assert {kind: types.count(kind) for kind in EventType} == {
        EventType.LOOKUP: 50,
        EventType.OUTCOME: 1,
        EventType.JUDGEMENT: 1,
    }
    assert all(Header.TRACE_PARENT in headers for _, headers, _ in found)


@pytest.mark.filterwarnings("ignore:unclosed <socket")
def test_a_broker_that_is_not_there_yet_costs_only_patience(
    broker: RunningBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    emitter = LookupEmitter(
        bootstrap_servers="127.0.0.1:9",
        linger_seconds=0.05,
        retry_seconds=0.1,
        request_timeout_seconds=1,
    )
    emitter.emit(make_lookup())
    assert not emitter.flush(1)
    assert emitter.stats().retries >= 1
    emitter.close(0.1)
    assert emitter.stats().dropped == {"unsent_at_close": 1}
    gc.collect()
