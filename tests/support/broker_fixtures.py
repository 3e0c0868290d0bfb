"""Brokers as fixtures: a test that takes ``broker`` runs against every kind there is.

Load it with ``pytest_plugins = ["tests.support.broker_fixtures"]``. A test of one kind alone takes
``embedded_broker`` or ``apache_kafka``, or pins ``broker_kind`` with ``indirect``. Brokers live
for a module and are shared in it: use topics and groups of your own (``make_topic``), and start a
broker again that you ended. Types for annotations are in ``tests.support.brokers``; a test
module that imports this one keeps pytest from loading it as a plugin.
"""

import uuid
from collections.abc import Iterator

import pytest

from lookup_audit.deploy.topics import ensure_topics
from tests.support import apache_kafka as apache
from tests.support.brokers import (
    APACHE,
    DOCKER,
    EMBEDDED,
    EmbeddedBrokerUnderTest,
    RunningBroker,
    TopicFactory,
)
from tests.support.containers import KafkaInContainer, docker_unavailable

_FIXTURE_OF = {EMBEDDED: "embedded_broker", APACHE: "apache_kafka", DOCKER: "kafka_container"}


@pytest.fixture(scope="module")
def embedded_broker(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[EmbeddedBrokerUnderTest]:
    with EmbeddedBrokerUnderTest(tmp_path_factory.mktemp("embedded-broker")) as broker:
        yield broker


@pytest.fixture(scope="module")
def apache_kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[apache.ApacheKafka]:
    if reason := apache.available():
        pytest.skip(f"Apache Kafka cannot be started here: {reason}")
    with apache.ApacheKafka(tmp_path_factory.mktemp("apache-kafka")) as broker:
        yield broker


@pytest.fixture(scope="module")
def kafka_container() -> Iterator[KafkaInContainer]:
    if reason := docker_unavailable():
        pytest.skip(f"Kafka's container cannot be started here: {reason}")
    broker = KafkaInContainer()
    try:
        broker.start()
        yield broker
    finally:
        broker.stop()


@pytest.fixture(
    scope="module",
    params=[
        EMBEDDED,
        pytest.param(APACHE, marks=pytest.mark.apache_kafka),
        pytest.param(DOCKER, marks=pytest.mark.docker),
    ],
)
def broker_kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def broker(request: pytest.FixtureRequest, broker_kind: str) -> RunningBroker:
    running: RunningBroker = request.getfixturevalue(_FIXTURE_OF[broker_kind])
    return running


@pytest.fixture
def make_topic(broker: RunningBroker) -> TopicFactory:
    def make(partitions: int = 1) -> str:
        name = f"test.{uuid.uuid4().hex}"
        ensure_topics(broker.bootstrap, {name: partitions})
        return name

    return make
