"""The stages as they are deployed, each a process, against every kind of broker.

The store is the embedded engine (in the processor's process), or with the ``docker`` broker a
ClickHouse container.
"""

import json
import random
import signal
import subprocess
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from kafka import KafkaConsumer, KafkaProducer
from kafka.structs import TopicPartition

from lookup_audit.deploy.wiring import PROCESSED_TOPICS
from lookup_audit.processors.kafka_source import KafkaConfig, end_offsets
from tests.e2e.conftest import COMMAND, clean_environment, run_command
from tests.support.brokers import DOCKER, RunningBroker
from tests.support.containers import ClickHouseInContainer
from tests.support.events import encode, make_judgement, make_lookup, make_outcome

pytest_plugins = ["tests.support.broker_fixtures"]


@dataclass
class Deployment:
    """A broker with topics and a migrated store."""

    broker: RunningBroker
    store: str
    data_dir: Path
    group: str

    def process(self) -> "subprocess.Popen[bytes]":
        command = [
            *(str(COMMAND), "process", "--store", self.store, "--group", self.group),
            *("--bootstrap", self.broker.bootstrap),
        ]
        with self.log.open("ab") as log:
            return subprocess.Popen(
                command, stdout=subprocess.DEVNULL, stderr=log, env=clean_environment()
            )

    @property
    def log(self) -> Path:
        """What the processors said."""
        return self.data_dir.with_suffix(".log")

    def query(self, sql: str) -> list[dict[str, object]]:
        options = ["--data-dir", str(self.data_dir)]
        if self.store.startswith("http"):
            options = ["--store", self.store]
        answer = run_command("query", sql, "--json", *options)
        assert answer.returncode == 0, answer.stderr
        return [dict(row) for row in json.loads(answer.stdout)]

    def numbers(self, sql: str) -> list[int]:
        return [int(str(value)) for row in self.query(sql) for value in row.values()]

    def wait_until_committed(self, seconds: float = 90.0) -> None:
        """Wait until the group has committed everything that the topics hold."""
        ends = end_offsets(KafkaConfig(bootstrap_servers=self.broker.bootstrap), PROCESSED_TOPICS)
        consumer = KafkaConsumer(
            bootstrap_servers=self.broker.bootstrap, group_id=self.group, enable_auto_commit=False
        )
        try:
            deadline = time.monotonic() + seconds
            behind = True
            while behind:
                assert time.monotonic() < deadline, self.log.read_text("utf-8")[-4000:]
                time.sleep(0.2)
                behind = any(
                    (consumer.committed(TopicPartition(*place)) or 0) < end
                    for place, end in ends.items()
                )
        finally:
            consumer.close(autocommit=False)


@pytest.fixture
def deployment(broker: RunningBroker, tmp_path: Path) -> Iterator[Deployment]:
    container = None
    data_dir = tmp_path / "data"
    store = f"embedded:{data_dir / 'engine'}"
    if broker.kind == DOCKER:
        container = ClickHouseInContainer()
        container.start()
        store = "http://{username}:{password}@{host}:{port}".format(**container.connection())
    try:
        done = run_command("migrate", "--store", store, "--bootstrap", broker.bootstrap)
        assert done.returncode == 0, done.stderr
        yield Deployment(broker, store, data_dir, f"pipeline-{uuid.uuid4().hex}")
    finally:
        if container is not None:
            container.stop()


def _produce(bootstrap: str, records: list[tuple[str, bytes | None]]) -> None:
    producer = KafkaProducer(bootstrap_servers=bootstrap, acks="all", compression_type="lz4")
    futures = [
        producer.send(topic, value=value, key=None if value else b"k") for topic, value in records
    ]
    for future in futures:
        future.get(timeout=30)
    producer.close(timeout=10)


def _stop(process: "subprocess.Popen[bytes]") -> None:
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 0


def test_every_record_has_one_fate_whatever_is_killed(deployment: Deployment) -> None:
    chance = random.Random(2)
    lookups = [make_lookup(tenant="fate") for _ in range(1_500)]
    outcomes = [
        make_outcome(tenant="fate", lookup_event_ids=[lookup["event_id"]])
        for lookup in lookups[:200]
    ]
    judgements = [
        make_judgement(tenant="fate", outcome_id=outcome["outcome_id"]) for outcome in outcomes
    ]
    conflict = lookups[-1] | {"query": {"text": "other content under the same id"}}
    results, answers = "lookup.results.v1", "lookup.outcomes.v1"
    records: list[tuple[str, bytes | None]] = [(results, encode(event)) for event in lookups]
    records += [(results, encode(event)) for event in lookups[:100]]
    records += [(results, encode(conflict)), (results, None), (results, b""), (results, b"[")]
    records += [(answers, encode(event)) for event in (*judgements, *outcomes)]
    chance.shuffle(records)
    before = deployment.numbers("SELECT count() AS n FROM lookups WHERE tenant = 'fate'")
    assert before == [0]
    for start in range(0, len(records), 500):
        _produce(deployment.broker.bootstrap, records[start : start + 500])
        process = deployment.process()
        time.sleep(chance.uniform(2.0, 9.0))
        process.kill()
        process.wait()
    process = deployment.process()
    deployment.wait_until_committed()
    _stop(process)
    counted = deployment.query(
        "SELECT (SELECT count() FROM lookups WHERE tenant = 'fate') AS lookups, "
        "(SELECT count() FROM outcomes WHERE tenant = 'fate') AS outcomes, "
        "(SELECT count() FROM judgements WHERE tenant = 'fate') AS judgements, "
        "(SELECT count() FROM cells WHERE tenant = 'fate') AS cells, "
        "(SELECT count() FROM duplicates WHERE tenant = 'fate') AS duplicates, "
        "(SELECT count() FROM id_conflicts WHERE tenant = 'fate') AS conflicts"
    )[0]
    assert {name: int(str(value)) for name, value in counted.items()} == {
        "lookups": 1_500,
        "outcomes": 200,
        "judgements": 200,
        "cells": 200,
        "duplicates": 100,
        "conflicts": 1,
    }
    reasons = deployment.query(
        "SELECT reason, count() AS n FROM dead_letters GROUP BY reason ORDER BY reason"
    )
    assert [(row["reason"], int(str(row["n"]))) for row in reasons] == [
        ("empty_value", 1),
        ("invalid_json", 1),
        ("tombstone", 1),
    ]


def test_a_broker_that_dies_and_comes_back_costs_nothing(deployment: Deployment) -> None:
    if deployment.broker.kind == "embedded":
        pytest.skip("the embedded broker keeps its topics in memory only")
    first = [make_lookup(tenant="outage") for _ in range(300)]
    second = [make_lookup(tenant="outage") for _ in range(300)]
    process = deployment.process()
    _produce(deployment.broker.bootstrap, [("lookup.results.v1", encode(e)) for e in first])
    time.sleep(3)
    deployment.broker.kill()
    time.sleep(3)
    deployment.broker.start()
    _produce(deployment.broker.bootstrap, [("lookup.results.v1", encode(e)) for e in second])
    deployment.wait_until_committed()
    _stop(process)
    sql = "SELECT count() AS n FROM lookups WHERE tenant = 'outage'"
    assert deployment.numbers(sql) == [600]
