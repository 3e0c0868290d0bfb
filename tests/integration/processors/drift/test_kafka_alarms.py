import json
from datetime import UTC, datetime

from kafka import KafkaConsumer

from lookup_audit.deploy.topics import ensure_topics
from lookup_audit.processors.drift.kafka_alarms import KafkaAlarms
from lookup_audit.processors.kafka_source import KafkaConfig
from lookup_audit.schemas.alarm import DriftAlarm
from lookup_audit.schemas.names import ALARM_TYPE, Topic
from tests.support.alarms import make_alarm
from tests.support.brokers import EmbeddedBrokerUnderTest

pytest_plugins = ["tests.support.broker_fixtures"]


def test_every_revision_is_a_cloud_event_under_its_stratum(
    embedded_broker: EmbeddedBrokerUnderTest,
) -> None:
    ensure_topics(embedded_broker.bootstrap, {Topic.ALARMS.value: 1})
    channel = KafkaAlarms(KafkaConfig(bootstrap_servers=embedded_broker.bootstrap))
    alarms = [make_alarm(tenant="租户"), make_alarm(tenant="租户", revision=2)]
    channel.send(alarms, datetime.now(UTC))
    channel.close()

    consumer = KafkaConsumer(
        Topic.ALARMS.value,
        bootstrap_servers=embedded_broker.bootstrap,
        auto_offset_reset="earliest",
        consumer_timeout_ms=5_000,
    )
    records = [next(consumer) for _ in alarms]
    consumer.close()

    assert [DriftAlarm.model_validate_json(r.value) for r in records] == alarms
    assert json.loads(records[0].value)["tenant"] == "租户"
    assert len({r.key for r in records}) == 1
    headers = dict(records[0].headers)
    assert headers["ce_type"] == ALARM_TYPE.encode()
    assert headers["ce_id"] == b"8edd08fc9b3e7b3b/1"
