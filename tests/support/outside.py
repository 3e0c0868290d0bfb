"""A processor in another process, seen from outside: its offsets, its engine at rest."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from kafka import KafkaConsumer, KafkaProducer
from kafka.structs import TopicPartition

from lookup_audit.deploy.wiring import PROCESSED_TOPICS
from lookup_audit.processors.kafka_source import KafkaConfig, end_offsets

ROOT = Path(__file__).parents[2]
_READ = """
import json, sys
from lookup_audit.processors.store import open_store
store = open_store(f"embedded:{sys.argv[1]}")
print(json.dumps([list(store.query(sql)[0]) for sql in json.loads(sys.argv[2])], default=str))
"""


def python(*arguments: str) -> list[str]:
    """A command that runs this interpreter."""
    return [sys.executable, *arguments]


def environment() -> dict[str, str]:
    """Ours, with the tests importable."""
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))
    return os.environ | {"PYTHONPATH": path}


def read_engine(directory: Path, statements: list[str]) -> list[list[object]]:
    """First row of each statement, asked of an engine that nobody has open."""
    done = subprocess.run(
        python("-c", _READ, str(directory), json.dumps(statements)),
        capture_output=True,
        text=True,
        timeout=60,
        env=environment(),
        check=True,
    )
    return [list(row) for row in json.loads(done.stdout)]


def wait_until_committed(
    bootstrap: str, group: str, explain: Callable[[], str] = lambda: ""
) -> None:
    """Return when a group has committed everything that the topics hold now."""
    ends = end_offsets(KafkaConfig(bootstrap_servers=bootstrap), PROCESSED_TOPICS)
    consumer = KafkaConsumer(bootstrap_servers=bootstrap, group_id=group, enable_auto_commit=False)
    deadline = time.monotonic() + 240
    try:
        while any((consumer.committed(TopicPartition(*p)) or 0) < e for p, e in ends.items()):
            assert time.monotonic() < deadline, f"the group did not come to the end {explain()}"
            time.sleep(0.1)
    finally:
        consumer.close(autocommit=False)


def publish(bootstrap: str, topic: str, values: Iterable[bytes]) -> None:
    """Send values as a producer without headers would."""
    producer = KafkaProducer(bootstrap_servers=bootstrap, acks="all", linger_ms=5)
    try:
        for number, value in enumerate(values):
            producer.send(topic, value=value, key=str(number).encode())
        producer.flush(30)
    finally:
        producer.close(10)
