"""A processor killed at random moments while events keep coming: once each, in every figure."""

import json
import os
import random
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from kafka import KafkaConsumer, KafkaProducer
from kafka.structs import TopicPartition

from lookup_audit.deploy.wiring import PROCESSED_TOPICS, make_topics
from lookup_audit.processors.kafka_source import KafkaConfig, end_offsets
from tests.support.brokers import RunningBroker
from tests.support.events import encode, make_lookup
from tests.support.killable import GROUP

pytest_plugins = ["tests.support.broker_fixtures"]

ROOT = Path(__file__).parents[2]
TENANT = "kill"
_READ = """
import json, sys
from lookup_audit.processors.store import open_store
store = open_store(f"embedded:{sys.argv[1]}")
print(json.dumps([list(store.query(sql)[0]) for sql in json.loads(sys.argv[2])], default=str))
"""


def _python(*arguments: str) -> list[str]:
    return [sys.executable, *arguments]


def _environment() -> dict[str, str]:
    return os.environ | {"PYTHONPATH": str(ROOT)}


def _read(directory: Path, statements: list[str]) -> list[list[object]]:
    done = subprocess.run(
        _python("-c", _READ, str(directory), json.dumps(statements)),
        capture_output=True,
        text=True,
        timeout=60,
        env=_environment(),
        check=True,
    )
    return [list(row) for row in json.loads(done.stdout)]


class _Producer(threading.Thread):
    """Sends lookups at a steady pace, one in ten twice, one in fifty broken."""

    def __init__(self, bootstrap: str):
        super().__init__()
        self._producer = KafkaProducer(bootstrap_servers=bootstrap, acks="all", linger_ms=5)
        self._stopping = threading.Event()
        self.sent: set[str] = set()
        self.repeated = self.broken = 0

    def run(self) -> None:
        chance = random.Random(11)
        while not self._stopping.wait(0.02):
            for _ in range(3):
                event = make_lookup(tenant=TENANT)
                key = event["event_id"].encode()
                self._producer.send("lookup.results.v1", value=encode(event), key=key)
                self.sent.add(event["event_id"])
                if chance.random() < 0.1:
                    self._producer.send("lookup.results.v1", value=encode(event), key=key)
                    self.repeated += 1
                if chance.random() < 0.02:
                    broken = b'{"event_id": "' + key
                    self._producer.send("lookup.results.v1", value=broken, key=key)
                    self.broken += 1

    def finish(self) -> None:
        self._stopping.set()
        self.join()
        self._producer.flush(30)
        self._producer.close(10)


def _wait_until_committed(bootstrap: str) -> None:
    ends = end_offsets(KafkaConfig(bootstrap_servers=bootstrap), PROCESSED_TOPICS)
    consumer = KafkaConsumer(bootstrap_servers=bootstrap, group_id=GROUP, enable_auto_commit=False)
    deadline = time.monotonic() + 240
    try:
        while any((consumer.committed(TopicPartition(*p)) or 0) < e for p, e in ends.items()):
            assert time.monotonic() < deadline, "the processor did not come to the end"
            time.sleep(0.1)
    finally:
        consumer.close(autocommit=False)


@pytest.mark.parametrize(
    "kills", [6, pytest.param(50, marks=pytest.mark.slow)], ids=lambda kills: f"{kills}-kills"
)
def test_a_processor_killed_at_random_moments_stores_everything_once(
    kills: int, broker: RunningBroker, tmp_path: Path
) -> None:
    make_topics(broker.bootstrap)
    directory = tmp_path / "engine"
    command = str(Path(sys.executable).with_name("lookup-audit"))
    subprocess.run(
        [command, "migrate", "--store", f"embedded:{directory}"],
        check=True,
        capture_output=True,
        timeout=60,
    )
    chance = random.Random(kills)
    producer = _Producer(broker.bootstrap)
    producer.start()
    killable = _python("-m", "tests.support.killable", broker.bootstrap, str(directory))
    try:
        for _ in range(kills):
            process = subprocess.Popen(
                killable, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=_environment()
            )
            assert process.stdout is not None
            process.stdout.readline()
            time.sleep(chance.uniform(0.0, 1.2))
            process.kill()
            process.wait()
            process.stdout.close()
    finally:
        producer.finish()
    process = subprocess.Popen(
        killable, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=_environment()
    )
    _wait_until_committed(broker.bootstrap)
    process.kill()
    process.wait()
    mine = f"WHERE tenant = '{TENANT}'"
    raw, ids, view, rate, candidates, repeats, dead, unknown = _read(
        directory,
        [
            f"SELECT count(), uniqExact(event_id) FROM audit_store.lookups {mine}",
            f"SELECT count(), uniqExact(id) FROM audit_store.event_ids {mine}",
            f"SELECT count(), uniqExact(event_id) FROM audit.lookups {mine}",
            f"SELECT sum(n) FROM audit.precise_rate {mine}",
            f"SELECT count() FROM audit.candidates {mine}",
            f"SELECT count() FROM audit.duplicates {mine}",
            "SELECT count() FROM audit.dead_letters WHERE reason = 'invalid_json' "
            "AND startsWith(ifNull(key, ''), 'evt-')",
            f"SELECT count() FROM audit.id_conflicts {mine}",
        ],
    )
    sent = len(producer.sent)
    assert sent > 100
    assert raw == ids == view == [sent, sent]
    assert rate == [sent]
    assert candidates == [2 * sent]
    assert repeats == [producer.repeated]
    assert dead == [producer.broken]
    assert unknown == [0]
