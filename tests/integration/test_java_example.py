"""The Java example of ``collector/examples``, compiled and run as its head says."""

import shutil
import subprocess
from pathlib import Path

import pytest
from kafka import KafkaConsumer, TopicPartition

from lookup_audit.collector.envelope import source_urn
from lookup_audit.deploy.wiring import TOPIC_PARTITIONS, make_topics
from lookup_audit.schemas.decode import LOOKUPS, Decoded
from lookup_audit.schemas.names import EventType, Header, Topic
from lookup_audit.schemas.publish import EVENTS, schema_uri
from lookup_audit.schemas.ruleset import Registry
from lookup_audit.schemas.verdict import audit
from tests.support import apache_kafka as apache
from tests.support.brokers import RunningBroker
from tests.support.twins import make_encoder, make_message

pytest_plugins = ["tests.support.broker_fixtures"]

EXAMPLE = Path(__file__).parents[2] / "collector" / "examples" / "java" / "LookupProducer.java"


@pytest.fixture(scope="module")
def classes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if reason := apache.available():
        pytest.skip(f"the jars cannot be had here: {reason}")
    directory = tmp_path_factory.mktemp("java")
    shutil.copy(EXAMPLE, directory)
    command = [str(apache.javac()), "-Xlint:all", "-Werror", "-proc:none", "-encoding", "utf-8"]
    command += ["-cp", apache.class_path(), EXAMPLE.name]
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return directory


@pytest.mark.apache_kafka
def test_the_java_example_is_audited_without_a_remark(
    classes: Path, apache_kafka: RunningBroker
) -> None:
    make_topics(apache_kafka.bootstrap)
    command = [str(apache.java()), "-Dfile.encoding=utf-8"]
    command += ["-cp", f"{apache.class_path()}:.", "LookupProducer", apache_kafka.bootstrap, "3"]
    done = subprocess.run(command, cwd=classes, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 3
    consumer = KafkaConsumer(
        bootstrap_servers=[apache_kafka.bootstrap],
        enable_auto_commit=False,
        consumer_timeout_ms=3000,
    )
    partitions = range(TOPIC_PARTITIONS[Topic.RESULTS])
    consumer.assign([TopicPartition(str(Topic.RESULTS), number) for number in partitions])
    consumer.seek_to_beginning()
    records = [record for record in consumer if b"kb-java" in record.value]
    consumer.close()
    assert len(records) == 3
    numbers = set()
    for record in records:
        decoded = LOOKUPS.decode(record.value)
        assert isinstance(decoded, Decoded)
        assert decoded.unknown_fields == ()
        verdict = audit(decoded, Registry()).verdict()
        assert (verdict.level_check, verdict.failed_checks) == ("pass", ())
        headers = dict(record.headers)
        assert headers[Header.ID].decode() == decoded.record.event_id
        assert headers[Header.TYPE].decode() == EventType.LOOKUP
        assert headers[Header.DATA_SCHEMA].decode() == schema_uri(EVENTS[EventType.LOOKUP])
        assert headers[Header.SOURCE].decode() == source_urn(decoded.record)
        assert record.key.decode() == decoded.record.trace_id
        message = make_message(record.value, headers=tuple(record.headers), key=record.key)
        assert make_encoder().encode([message]).dead_letters == []
        assert decoded.record.service is not None
        numbers.add(decoded.record.service.sequence)
    assert numbers == {1, 2, 3}
