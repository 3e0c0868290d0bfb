"""A real collector on a free port, and one HTTP call to it."""

import http.client
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from starlette.routing import BaseRoute

from lookup_audit.collector.app import Check, make_app
from lookup_audit.collector.config import CollectorConfig
from lookup_audit.collector.memory import MemoryPublisher
from lookup_audit.collector.publishing import OutgoingRecord, Publisher
from lookup_audit.collector.server import CollectorServer

JSON = {"Content-Type": "application/json"}
NDJSON = {"Content-Type": "application/x-ndjson"}
Body = bytes | Iterator[bytes]


@dataclass
class Answer:
    """What came back."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Running:
    """A served collector and its publisher."""

    server: CollectorServer
    publisher: MemoryPublisher

    def call(
        self, method: str, path: str, body: Body = b"", headers: Mapping[str, str] | None = None
    ) -> Answer:
        return call(self.server.port, method, path, body, headers)

    def post(
        self, body: Body, path: str = "/v1/lookups", headers: Mapping[str, str] | None = None
    ) -> Answer:
        return self.call("POST", path, body, {**JSON, **(headers or {})})

    @property
    def values(self) -> list[bytes]:
        return [record.value for record in self.publisher.records]

    @property
    def records(self) -> list[OutgoingRecord]:
        return self.publisher.records


def call(
    port: int,
    method: str,
    path: str,
    body: Body = b"",
    headers: Mapping[str, str] | None = None,
) -> Answer:
    """One request on a connection of its own."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request(method, path, body or None, dict(headers or {}))
        response = connection.getresponse()
        return Answer(
            response.status,
            {name.lower(): value for name, value in response.getheaders()},
            response.read(),
        )
    finally:
        connection.close()


@contextmanager
def running(
    publisher: MemoryPublisher | None = None,
    *,
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    checks: Mapping[str, Check] | None = None,
    extra_routes: Sequence[BaseRoute] = (),
    **settings: Any,
) -> Iterator[Running]:
    """Serve a collector over a publisher in memory; settings are those of its config."""
    memory = publisher or MemoryPublisher()
    config = CollectorConfig(port=0, **settings)
    app = make_app(config, memory, clock=clock, checks=checks, extra_routes=extra_routes)
    with CollectorServer(app, config) as server:
        yield Running(server, memory)


@contextmanager
def serving(publisher: Publisher, config: CollectorConfig) -> Iterator[CollectorServer]:
    """Serve a collector over any publisher."""
    with CollectorServer(make_app(config, publisher), config) as server:
        yield server
