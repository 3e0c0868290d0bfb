"""The collector in front of a real broker: what arrives, what an outage is, how it stops."""

import gc
import http.client
import os
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaConsumer, TopicPartition

from lookup_audit.collector.config import CollectorConfig
from lookup_audit.collector.publisher import KafkaPublisher
from lookup_audit.collector.server import CollectorServer, bind
from lookup_audit.deploy.topics import ensure_topics
from lookup_audit.schemas.names import Header, Topic
from tests.support.brokers import EmbeddedBrokerUnderTest, RunningBroker
from tests.support.events import encode, make_judgement, make_lookup, make_outcome
from tests.unit.collector.publisher_contract import PublisherContract
from tests.unit.collector.running import JSON, NDJSON, Answer, call, serving

pytest_plugins = ["tests.support.broker_fixtures"]

TOPICS = {Topic.RESULTS: 3, Topic.OUTCOMES: 2}
ROOT = Path(__file__).parents[2]


def outage(test: Callable[..., None]) -> Callable[..., None]:
    """Mark a test with a broker away: kafka-python never closes a refused connection's socket."""
    marked: Callable[..., None] = pytest.mark.filterwarnings("ignore:unclosed <socket")(
        pytest.mark.usefixtures("refused_connections")(test)
    )
    return marked


@pytest.fixture
def refused_connections() -> Iterator[None]:
    yield
    gc.collect()


@pytest.fixture
def topics(broker: RunningBroker) -> None:
    ensure_topics(broker.bootstrap, {str(topic): size for topic, size in TOPICS.items()})


@pytest.fixture
def config(broker: RunningBroker, topics: None) -> CollectorConfig:
    return CollectorConfig(port=0, bootstrap_servers=(broker.bootstrap,))


@pytest.fixture
def collector(config: CollectorConfig) -> Iterator[CollectorServer]:
    with serving(KafkaPublisher(config), config) as server:
        until(lambda: _is_ready(server.port))
        yield server


def until(true: Callable[[], bool], seconds: float = 20) -> None:
    give_up = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < give_up
        time.sleep(0.05)


def read_topic(bootstrap: str, topic: Topic) -> list[Any]:
    """Every record of a topic, up to its end as it is now."""
    consumer = KafkaConsumer(
        bootstrap_servers=[bootstrap], enable_auto_commit=False, consumer_timeout_ms=1000
    )
    try:
        consumer.assign([TopicPartition(topic, p) for p in range(TOPICS[topic])])
        consumer.seek_to_beginning()
        return list(consumer)
    finally:
        consumer.close()


def stored(bootstrap: str, ids: Sequence[str], topic: Topic = Topic.RESULTS) -> list[Any]:
    """The records of these events."""
    wanted = {event_id.encode() for event_id in ids}
    return [r for r in read_topic(bootstrap, topic) if dict(r.headers).get(Header.ID) in wanted]


def post(
    server: CollectorServer,
    body: bytes,
    path: str = "/v1/lookups",
    headers: Mapping[str, str] = JSON,
) -> Answer:
    return call(server.port, "POST", path, body, headers)


class TestKafkaPublisher(PublisherContract):
    bootstrap = ""

    @pytest.fixture
    def publisher(self, config: CollectorConfig) -> KafkaPublisher:
        self.bootstrap = config.bootstrap_servers[0]
        return KafkaPublisher(config)

    def stored(self, publisher: KafkaPublisher) -> Sequence[tuple[str, bytes]]:
        return [
            (dict(found.headers)[Header.ID].decode(), found.value)
            for topic in TOPICS
            for found in read_topic(self.bootstrap, topic)
        ]


def test_events_arrive_with_their_bytes_key_and_headers(
    collector: CollectorServer, broker: RunningBroker
) -> None:
    lookup, outcome, judgement = make_lookup(), make_outcome(), make_judgement()
    assert post(collector, encode(lookup)).status == 202
    assert post(collector, encode(outcome), "/v1/outcomes").status == 202
    assert post(collector, encode(judgement), "/v1/judgements").status == 202

    [found] = stored(broker.bootstrap, [lookup["event_id"]])
    assert (found.value, found.key) == (encode(lookup), lookup["trace_id"].encode())
    names = Counter(name for name, _ in found.headers)
    assert names[Header.TRACE_PARENT] == 1
    assert set(names.values()) == {1}
    assert dict(found.headers)[Header.TYPE] == b"lookup_audit.lookup_result.v1"
    others = stored(
        broker.bootstrap, [outcome["outcome_id"], judgement["judgement_id"]], Topic.OUTCOMES
    )
    assert {r.value for r in others} == {encode(outcome), encode(judgement)}


def test_an_event_that_is_too_large_is_refused_and_its_neighbours_arrive(
    collector: CollectorServer, broker: RunningBroker
) -> None:
    ids = [f"evt-{uuid.uuid4()}" for _ in range(4)]
    events = [make_lookup(event_id=event_id) for event_id in ids]
    events[1]["candidates"][0]["excerpt"] = "a" * 1_200_000
    # Just within the limit and hard to compress: the broker takes it.
    room = 999_000 - len(encode(events[2]))
    events[2]["candidates"][0]["excerpt"] = os.urandom(room // 2).hex()
    answer = post(collector, encode(events))
    assert (answer.status, answer.json["accepted"]) == (202, 3)
    assert [(r["index"], r["reason"]) for r in answer.json["rejected"]] == [(1, "too_large")]
    found = {r.value for r in stored(broker.bootstrap, ids)}
    assert found == {encode(event) for i, event in enumerate(events) if i != 1}
    metrics = call(collector.port, "GET", "/metrics").body.decode()
    [line] = [text for text in metrics.splitlines() if 'error_type="too_large"' in text]
    assert line.endswith(" 1.0")


def test_every_event_of_many_callers_is_stored_once(
    collector: CollectorServer, broker: RunningBroker
) -> None:
    run = uuid.uuid4()
    ids = [f"{run}-{number}" for number in range(1000)]

    def send(part: int) -> int:
        mine = [encode(make_lookup(event_id=i)) for i in ids[part * 50 : part * 50 + 50]]
        answer = post(collector, b"\n".join(mine), headers=NDJSON)
        return int(answer.json["accepted"])

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(send, range(20))) == 1000
    found = Counter(dict(r.headers)[Header.ID].decode() for r in stored(broker.bootstrap, ids))
    assert found == dict.fromkeys(ids, 1)


@outage
def test_an_outage_is_answered_503_and_the_collector_recovers_by_itself(
    broker: RunningBroker, config: CollectorConfig
) -> None:
    config = config.model_copy(update={"publish_timeout_seconds": 1.0})
    with serving(KafkaPublisher(config), config) as server:
        until(lambda: _is_ready(server.port))
        with _broker_away(broker):
            answers = [_timed(server) for _ in range(3)]
            assert [answer.status for answer, _ in answers] == [503] * 3
            assert all(answer.headers["retry-after"] == "1" for answer, _ in answers)
            assert all(seconds < 3 for _, seconds in answers)
            # Once the outage is known, nobody waits any more.
            assert answers[-1][1] < 0.5
            ready = call(server.port, "GET", "/readyz")
            assert ready.status == 503
            assert ready.json["dependencies"]["kafka"]["ready"] is False
            assert call(server.port, "GET", "/healthz").status == 200
        until(lambda: _is_ready(server.port))
        event = make_lookup()
        assert post(server, encode(event)).status == 202
        assert len(stored(broker.bootstrap, [event["event_id"]])) == 1


@outage
@pytest.mark.parametrize(
    "broker_kind", [pytest.param("apache", marks=pytest.mark.apache_kafka)], indirect=True
)
def test_every_event_that_was_accepted_around_a_crash_of_the_broker_is_in_the_log(
    broker: RunningBroker, config: CollectorConfig
) -> None:
    config = config.model_copy(update={"publish_timeout_seconds": 2.0})
    answered: dict[int, list[str]] = {202: [], 503: []}
    stop = threading.Event()

    def send() -> None:
        while not stop.is_set():
            ids = [f"evt-{uuid.uuid4()}" for _ in range(5)]
            answer = post(server, encode([make_lookup(event_id=i) for i in ids]))
            answered[answer.status] += ids

    with serving(KafkaPublisher(config), config) as server:
        until(lambda: _is_ready(server.port))
        threads = [threading.Thread(target=send) for _ in range(4)]
        for thread in threads:
            thread.start()
        time.sleep(1)
        with _broker_away(broker):
            time.sleep(3)
        until(lambda: _is_ready(server.port))
        time.sleep(1)
        stop.set()
        for thread in threads:
            thread.join()
    assert answered[503]
    found = Counter(
        dict(r.headers)[Header.ID].decode() for r in stored(broker.bootstrap, answered[202])
    )
    assert found == dict.fromkeys(answered[202], 1)


@contextmanager
def _broker_away(broker: RunningBroker) -> Iterator[None]:
    broker.kill()
    try:
        yield
    finally:
        broker.start()
        ensure_topics(broker.bootstrap, {str(topic): size for topic, size in TOPICS.items()})


def _timed(server: CollectorServer) -> tuple[Answer, float]:
    started = time.monotonic()
    answer = post(server, encode(make_lookup()))
    return answer, time.monotonic() - started


@outage
def test_a_collector_that_starts_before_its_broker_is_red_and_then_ready(tmp_path: Path) -> None:
    broker = EmbeddedBrokerUnderTest(tmp_path)
    broker.start()
    address = broker.bootstrap
    broker.stop()
    config = CollectorConfig(port=0, bootstrap_servers=address)
    with serving(KafkaPublisher(config), config) as server:
        assert call(server.port, "GET", "/readyz").status == 503
        assert post(server, encode(make_lookup())).status == 503
        with broker:
            ensure_topics(address, {str(topic): size for topic, size in TOPICS.items()})
            until(lambda: _is_ready(server.port))
            assert post(server, encode(make_lookup())).status == 202


@outage
def test_an_outage_costs_no_descriptors_and_no_threads(tmp_path: Path) -> None:
    broker = EmbeddedBrokerUnderTest(tmp_path)
    broker.start()
    broker.stop()
    config = CollectorConfig(port=0, bootstrap_servers=broker.bootstrap)
    with serving(KafkaPublisher(config), config) as server:
        time.sleep(3)
        gc.collect()
        before = _descriptors(), threading.active_count()
        time.sleep(6)
        assert post(server, encode(make_lookup())).status == 503
        gc.collect()
        after = _descriptors(), threading.active_count()
    assert after[0] <= before[0] + 6
    assert after[1] <= before[1] + 2


def _descriptors() -> int:
    folder = Path("/proc/self/fd")
    if not folder.exists():
        pytest.skip("this system does not show its descriptors")
    return len(list(folder.iterdir()))


_SERVE = """
import sys
from lookup_audit.collector.config import CollectorConfig
from lookup_audit.collector.server import serve
serve(CollectorConfig(port=int(sys.argv[1]), bootstrap_servers=sys.argv[2]))
print("stopped in order", flush=True)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_lets_the_request_in_flight_finish_and_then_ends_the_process(
    broker: RunningBroker, topics: None, number: signal.Signals
) -> None:
    with bind("127.0.0.1", 0) as free:
        port = free.getsockname()[1]
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}/collector:{ROOT}/schemas"}
    process = subprocess.Popen(
        [sys.executable, "-c", _SERVE, str(port), broker.bootstrap],
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    )
    try:
        until(lambda: _is_ready(port))
        event = make_lookup()
        body = encode(event)
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        connection.putrequest("POST", "/v1/lookups")
        connection.putheader("Content-Type", "application/json")
        connection.putheader("Content-Length", str(len(body)))
        connection.endheaders(body[:100])
        time.sleep(0.2)
        process.send_signal(number)
        time.sleep(0.3)
        connection.send(body[100:])
        assert connection.getresponse().status == 202
        connection.close()
        output, _ = process.communicate(timeout=20)
    finally:
        process.kill()
        process.wait()
    assert (process.returncode, output) == (0, "stopped in order\n")
    assert len(stored(broker.bootstrap, [event["event_id"]])) == 1


def _is_ready(port: int) -> bool:
    try:
        return call(port, "GET", "/readyz").status == 200
    except OSError:
        return False
