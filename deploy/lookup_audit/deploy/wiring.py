"""Where stages meet concrete things: brokers, stores, meters. Nothing else here has logic.

Both ``process`` and the embedded stack build their processor in this module, so that what is
tried embedded is what runs against a server.
"""

import gc
import os
import secrets
import socket
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from urllib.parse import urlencode

from opentelemetry.metrics import MeterProvider

from lookup_audit.dashboards.filters import option_value
from lookup_audit.deploy.topics import ensure_topics
from lookup_audit.processors.drift.channels import Channel, Outbox
from lookup_audit.processors.drift.config import DriftConfig
from lookup_audit.processors.drift.family import Told
from lookup_audit.processors.drift.kafka_alarms import KafkaAlarms
from lookup_audit.processors.drift.lease import Lease
from lookup_audit.processors.drift.ledger import Ledger
from lookup_audit.processors.drift.telemetry import DriftTelemetry
from lookup_audit.processors.drift.telling import instant
from lookup_audit.processors.drift.watcher import Watcher
from lookup_audit.processors.drift.webhook import Webhook
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
    is_alone: bool = False,
) -> Processor:
    """A processor that reads from Kafka and writes to a store.

    Args:
        kafka: The brokers and the group.
        store: Where rows go.
        config: When batches are stored.
        meters: Makes the instruments.
        is_alone: No other processor reads from these brokers, so that it need not wait for one.
    """
    encoder = Encoder(clock=utc_now, retention=timedelta(days=config.retention_days))

    def use(registry: Registry) -> None:
        encoder.registry = registry

    def make_source(on_revoked: Callable[[frozenset[Place]], None]) -> KafkaSource:
        return KafkaSource(kafka, PROCESSED_TOPICS, on_revoked, is_alone=is_alone)

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


@dataclass(frozen=True, slots=True)
class AlarmTargets:
    """Where drift alarms go besides the table.

    Args:
        kafka: The brokers, for ``lookup.alarms.v1``.
        webhook: Address that takes alerts in the form of the Alertmanager API v2.
        webhook_token: Bearer token for it.
        board: Page that alarms link to.
    """

    kafka: KafkaConfig | None = None
    webhook: str | None = None
    webhook_token: str | None = None
    board: str | None = None


def make_watcher(
    store: Store,
    config: DriftConfig,
    meters: MeterProvider,
    targets: AlarmTargets,
    *,
    is_alone: bool = False,
) -> Watcher:
    """A drift watcher over a store.

    Args:
        store: A migrated store, used by nobody else at the same time.
        config: The user's words.
        meters: Makes the instruments.
        targets: Where alarms go.
        is_alone: No other watcher can reach this store, so that it need not wait for one.
    """
    channels: list[Channel] = []
    if targets.kafka is not None:
        channels.append(KafkaAlarms(targets.kafka))
    if targets.webhook:
        channels.append(Webhook(targets.webhook, token=targets.webhook_token))
    name = f"{socket.gethostname()}/{os.getpid()}/{secrets.token_hex(4)}"
    if is_alone:
        # The same in each process, so that a lease of one that was killed is our own.
        name = "embedded"
    return Watcher(
        store,
        config,
        Lease(store, name, clock=utc_now, settle_seconds=0.0 if is_alone else 2.0),
        holder=name,
        clock=utc_now,
        outbox=Outbox(Ledger(store), channels),
        telemetry=DriftTelemetry(meters.get_meter("lookup_audit.processors.drift")),
        board_url=lambda told: board_link(targets.board, told),
    )


def board_link(board: str | None, told: Told) -> str | None:
    """The page of a stratum, from some hours before the change on; ``None`` without a page."""
    if not board:
        return None
    key, incident = told.key, told.transition.incident
    start = instant(incident.started) - timedelta(hours=6)
    query = urlencode(
        {
            "var-tenant": option_value(key.tenant),
            "var-service": option_value(key.service),
            "var-mode": option_value(key.mode),
            "var-model_version": option_value(key.model_version),
            "var-alarm_id": incident.alarm_id,
            "from": int(start.timestamp() * 1000),
            "to": "now",
        }
    )
    return f"{board}{'&' if '?' in board else '?'}{query}"


def make_topics(bootstrap_servers: str, security: dict[str, str] | None = None) -> dict[str, int]:
    """Create the topics that are missing; returns each with its partitions."""
    return ensure_topics(bootstrap_servers, TOPIC_PARTITIONS, client=security or {})


def tune_garbage_collection() -> None:
    """Let Python look for cycles less often: an event's objects have none, and there are many.

    With the defaults the search took a quarter of the processor's time (``tests/bench``).
    """
    gc.freeze()
    gc.set_threshold(100_000, 20, 100)
