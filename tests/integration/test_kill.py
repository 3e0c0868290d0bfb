"""A processor killed at random moments while events keep coming: once each, in every figure."""

import random
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from kafka import KafkaProducer

from lookup_audit.deploy.wiring import make_topics
from tests.support.brokers import RunningBroker
from tests.support.events import encode, make_lookup
from tests.support.killable import GROUP
from tests.support.outside import environment, python, read_engine, wait_until_committed

pytest_plugins = ["tests.support.broker_fixtures"]

TENANT = "kill"


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
    killable = python("-m", "tests.support.killable", broker.bootstrap, str(directory))
    try:
        for _ in range(kills):
            process = subprocess.Popen(
                killable, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment()
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
        killable, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment()
    )
    wait_until_committed(broker.bootstrap, GROUP)
    process.kill()
    process.wait()
    mine = f"WHERE tenant = '{TENANT}'"
    raw, ids, view, rate, candidates, repeats, dead, unknown = read_engine(
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
