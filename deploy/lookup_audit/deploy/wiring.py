"""Where stages meet concrete things: brokers, stores, meters. Nothing else here has logic.

Both ``process`` and the embedded stack build their processor in this module, so that what is
tried embedded is what runs against a server.
"""

import gc
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from opentelemetry.metrics import MeterProvider

from lookup_audit.deploy.topics import ensure_topics
from lookup_audit.processors.encode import Encoder
from lookup_audit.processors.kafka_dead_letters import KafkaDeadLetters
from lookup_audit.processors.kafka_source import KafkaConfig, KafkaSource, Place
from lookup_audit.processors.processor import Processor, ProcessorConfig
from lookup_audit.processors.registry import RegistryKeeper
from lookup_audit.processors.sink import Sink
from lookup_audit.processors.store import Store
from lookup_audit.processors.telemetry import ProcessorTelemetry
from lookup_audit.schemas.names import Topic
from lookup_audit.schemas.ruleset import Registry

TOPIC_PARTITIONS = {
    Topic.RESULTS.value: 4,
    Topic.OUTCOMES.value: 4,
    Topic.ALARMS.value: 1,
    Topic.DEAD_LETTERS.value: 1,
}
PROCESSED_TOPICS = (Topic.RESULTS.value, Topic.OUTCOMES.value)


def utc_now() -> datetime:
    """The clock."""
    return datetime.now(UTC)


def make_processor(
    kafka: KafkaConfig,
    store: Store,
    config: ProcessorConfig,
    meters: MeterProvider,
    *,
    source_type: type[KafkaSource] = KafkaSource,
) -> Processor:
    """A processor that reads from Kafka and writes to a store.

    Args:
        kafka: The brokers and the group.
        store: Where rows go.
        config: When batches are stored.
        meters: Makes the instruments.
        source_type: Another way to take partitions than as a member of the group.
    """
    encoder = Encoder(clock=utc_now, retention=timedelta(days=config.retention_days))

    def use(registry: Registry) -> None:
        encoder.registry = registry

    def make_source(on_revoked: Callable[[frozenset[Place]], None]) -> KafkaSource:
        return source_type(kafka, PROCESSED_TOPICS, on_revoked)

    def make_sink(cluster_id: str) -> Sink:
        return Sink(store, KafkaDeadLetters(kafka), cluster_id=cluster_id, clock=utc_now)

    return Processor(
        make_source,
        encoder.encode,
        make_sink,
        RegistryKeeper(store, use).refresh,
        config,
        ProcessorTelemetry(meters.get_meter("lookup_audit.processors"), kafka.group_id),
    )


def make_topics(bootstrap_servers: str, security: dict[str, str] | None = None) -> dict[str, int]:
    """Create the topics that are missing; returns each with its partitions."""
    return ensure_topics(bootstrap_servers, TOPIC_PARTITIONS, client=security or {})


def tune_garbage_collection() -> None:
    """Let Python look for cycles less often: an event's objects have none, and there are many.

    With the defaults the search took a quarter of the processor's time (``tests/bench``).
    """
    gc.freeze()
    gc.set_threshold(100_000, 20, 100)
