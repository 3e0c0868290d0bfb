"""The embedded stack: broker as a child process, engine in this one, collector and processor.

Start and stop are in an order that loses nothing: on the way down the collector stops taking
events, the processor stores what the broker still holds, and only then the broker goes, whose
memory is its only storage.
"""

import logging
import os
import threading
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

from starlette.routing import BaseRoute

from lookup_audit.collector.app import make_app
from lookup_audit.collector.config import CollectorConfig
from lookup_audit.collector.publisher import KafkaPublisher
from lookup_audit.collector.publishing import Health
from lookup_audit.collector.redaction import RedactionConfig
from lookup_audit.collector.server import CollectorServer, bind
from lookup_audit.collector.telemetry import Telemetry, make_telemetry
from lookup_audit.deploy import wiring
from lookup_audit.deploy.embedded.broker import EmbeddedBroker
from lookup_audit.deploy.embedded.clickhouse_http import clickhouse_routes
from lookup_audit.deploy.embedded.control_http import control_routes
from lookup_audit.deploy.embedded.data_dir import DataDir, Running
from lookup_audit.deploy.embedded.page_http import OPEN_PATHS, page_routes
from lookup_audit.deploy.embedded.read_only import ReadOnlyEngine
from lookup_audit.processors.drift.config import DriftConfig
from lookup_audit.processors.drift.watcher import Watcher
from lookup_audit.processors.kafka_source import KafkaConfig, end_offsets
from lookup_audit.processors.links import catch_up
from lookup_audit.processors.migrate import migrate, set_retention
from lookup_audit.processors.processor import Processor, ProcessorConfig
from lookup_audit.processors.registry import appoint
from lookup_audit.processors.store import ClickHouseStore, open_store
from lookup_audit.schemas.errors import UnavailableError
from lookup_audit.schemas.ruleset import Appointment

logger = logging.getLogger(__name__)

_DRAIN_SECONDS = 20.0
_CONNECT_SECONDS = 10.0
# Longer than the broker lets a fetch wait for records.
_QUIET_SECONDS = 0.8
# A kill loses what is read and not stored, so little is held, and not for long.
_PROCESSOR = ProcessorConfig(flush_seconds=0.3)


@dataclass(frozen=True, slots=True)
class StackConfig:
    """What a user chooses.

    Args:
        data_dir: Where everything is kept.
        host: Address of the HTTP port; loopback unless tokens are set.
        port: HTTP port, 0 for a free one.
        broker_port: Port of the embedded broker on loopback, ``None`` for a free one.
        token_hashes: See the collector's config.
        redaction: See the collector's config.
        processor: When batches are stored.
        appointments: Rulesets to put in force before the first event.
        drift: When to raise drift alarms.
        webhook: Where to post them, besides the alarm table and topic.
        webhook_token: Bearer token for it.
        board: Page that alarms link to; by default the stack's own.
    """

    data_dir: Path
    host: str = "127.0.0.1"
    port: int = 4318
    broker_port: int | None = None
    token_hashes: tuple[str, ...] = ()
    redaction: RedactionConfig | None = None
    processor: ProcessorConfig = field(default=_PROCESSOR)
    appointments: tuple[Appointment, ...] = ()
    drift: DriftConfig = field(default=DriftConfig())
    webhook: str | None = None
    webhook_token: str | None = None
    board: str | None = None


class Stack:
    """The running whole; a context manager.

    Raises:
        ConfigError: On start, where the directory or a port is taken.
        UnavailableError: On start, where the broker does not come up.
    """

    def __init__(self, config: StackConfig):
        self._config = config
        self._data_dir = DataDir(config.data_dir)
        self._broker = EmbeddedBroker(config.data_dir / "broker", port=config.broker_port)
        self._store: ClickHouseStore | None = None
        self._reader: ReadOnlyEngine | None = None
        self._server: CollectorServer | None = None
        self._processor: Processor | None = None
        self._thread: threading.Thread | None = None
        self._watcher: Watcher | None = None
        self._watch_store: ClickHouseStore | None = None
        self._watch_thread: threading.Thread | None = None

    @property
    def url(self) -> str:
        """Base URL of the HTTP port."""
        assert self._server is not None, "the stack is started"
        return self._server.url

    @property
    def bootstrap_servers(self) -> str:
        """Address of the broker, for producers that speak Kafka."""
        return self._broker.bootstrap

    @property
    def store(self) -> ClickHouseStore:
        """The engine, for the process that holds it."""
        assert self._store is not None, "the stack is started"
        return self._store

    @property
    def problem(self) -> str | None:
        """What keeps events from being stored, or ``None``."""
        if not self._broker.is_alive:
            return "the embedded broker has died; restart the stack"
        if self._thread is None or not self._thread.is_alive():
            return "the processor has ended; its log tells why"
        return self._processor.problem if self._processor else "starting"

    def start(self) -> None:
        """Bring everything up; returns when events are taken and stored."""
        self._data_dir.acquire()
        try:
            self._start()
        except BaseException:
            self.stop()
            raise

    def _start(self) -> None:
        # A taken port is found before anything is started that would have to be stopped again.
        bind(self._config.host, self._config.port).close()
        engine = str(self._data_dir.engine)
        self._store = open_store(f"embedded:{engine}")
        migrate(self._store)
        set_retention(self._store, self._config.processor.retention_days)
        catch_up(self._store)
        if self._config.appointments:
            now = datetime.now(UTC)
            appoint(self._store, self._config.appointments, added_by="stack", now=now)
        self._reader = ReadOnlyEngine(engine)
        telemetry = make_telemetry("lookup-audit")
        collector = CollectorConfig.load(
            host=self._config.host,
            port=self._config.port,
            token_hashes=self._config.token_hashes,
            redaction=self._config.redaction,
            retention_days=self._config.processor.retention_days,
            bootstrap_servers=("127.0.0.1:1",),
            # Spans that wait are on disk as they came.
            otlp_spool_dir=None if self._config.redaction else self._config.data_dir / "otlp",
        )
        self._broker.start()
        wiring.make_topics(self._broker.bootstrap)
        collector = collector.model_copy(update={"bootstrap_servers": (self._broker.bootstrap,)})
        kafka = KafkaConfig(bootstrap_servers=self._broker.bootstrap)
        self._processor = wiring.make_processor(
            kafka, self._store, self._config.processor, telemetry.meter_provider, is_alone=True
        )
        self._thread = threading.Thread(
            target=self._processor.run, name="lookup-audit-processor", daemon=True
        )
        self._thread.start()
        publisher = KafkaPublisher(collector)
        app = make_app(
            collector,
            publisher,
            telemetry=telemetry,
            checks={"processor": self._check_processor},
            extra_routes=self._routes(self._reader, self._store),
            open_paths=OPEN_PATHS,
        )
        self._server = CollectorServer(app, collector)
        self._server.start()
        _wait_until_connected(publisher)
        self._watch(engine, kafka, telemetry)
        self._data_dir.publish(Running(os.getpid(), self.url, self._broker.bootstrap))

    def _watch(self, engine: str, kafka: KafkaConfig, telemetry: Telemetry) -> None:
        """Watch for drift on a connection of its own, so that no insert waits for a count."""
        self._watch_store = open_store(f"embedded:{engine}")
        targets = wiring.AlarmTargets(
            kafka,
            self._config.webhook,
            self._config.webhook_token,
            self._config.board or f"{self.url}/?board=drift",
        )
        # The directory is held by this process alone.
        self._watcher = wiring.make_watcher(
            self._watch_store,
            self._config.drift,
            telemetry.meter_provider,
            targets,
            is_alone=True,
        )
        self._watch_thread = threading.Thread(
            target=self._watcher.run, name="lookup-audit-watcher", daemon=True
        )
        self._watch_thread.start()

    def _routes(self, reader: ReadOnlyEngine, store: ClickHouseStore) -> list[BaseRoute]:
        return [
            *page_routes(reader, self.describe, self._config.token_hashes),
            *clickhouse_routes(reader),
            *control_routes(store),
        ]

    def describe(self) -> str:
        """Where to send and where to read, for a person."""
        return (
            f"  send events   {self.url}/v1/lookups   (also /v1/outcomes, /v1/judgements)\n"
            f"  or by Kafka   {self.bootstrap_servers}   topics lookup.results.v1, "
            "lookup.outcomes.v1\n"
            f"  read by SQL   {self.url}/clickhouse   (ClickHouse HTTP, read-only)\n"
            f"  look at it    {self.url}/   (boards, in a browser)\n"
            f"  watch it      {self.url}/readyz   {self.url}/metrics"
        )

    async def _check_processor(self) -> Health:
        problem = self.problem
        return Health(problem is None, problem or "events are being stored")

    def stop(self) -> None:
        """Drain and close; safe to call twice and after a failed start."""
        if self._watcher is not None:
            self._watcher.stop()
        if self._server is not None:
            self._server.stop()
        if self._processor is not None and self._thread is not None and self._broker.is_alive:
            # The broker's memory goes with it.
            try:
                self.wait_until_stored()
            except UnavailableError as error:
                logger.error("Stopped with events in the broker that were not stored: %s", error)
        if self._processor is not None:
            self._processor.stop()
        if self._thread is not None:
            self._thread.join(_DRAIN_SECONDS)
        if self._watch_thread is not None:
            self._watch_thread.join(_DRAIN_SECONDS)
        if self._watch_store is not None:
            self._watch_store.close()
        self._broker.stop()
        if self._reader is not None:
            self._reader.close()
        if self._store is not None:
            self._store.close()
        self._watcher = self._watch_thread = self._watch_store = None
        self._server = self._processor = self._thread = self._reader = self._store = None
        self._data_dir.release()

    def wait_until_stored(self, timeout_seconds: float = _DRAIN_SECONDS) -> None:
        """Return when everything the broker holds now has been stored.

        Raises:
            UnavailableError: It takes longer than the time given.
        """
        processor = self._processor
        assert processor is not None, "the stack is started"
        deadline = time.monotonic() + timeout_seconds
        kafka = KafkaConfig(bootstrap_servers=self._broker.bootstrap)
        ends = end_offsets(kafka, wiring.PROCESSED_TOPICS)
        # The embedded broker may name an end before its last batch: wait for quiet as well.
        while not processor.has_settled(ends) or processor.idle_seconds() < _QUIET_SECONDS:
            if time.monotonic() > deadline:
                raise UnavailableError(processor.problem or "the processor is too slow")
            time.sleep(0.02)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def _wait_until_connected(publisher: KafkaPublisher) -> None:
    deadline = time.monotonic() + _CONNECT_SECONDS
    while not publisher.health().ok:
        if time.monotonic() > deadline:
            raise UnavailableError(f"the embedded broker: {publisher.health().detail}")
        time.sleep(0.005)
