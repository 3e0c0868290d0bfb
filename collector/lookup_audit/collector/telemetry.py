"""What the collector counts and times, as OpenTelemetry metrics that Prometheus can scrape.

Attributes come from bounded sets only: routes, statuses, reason codes. An id, a query or a tenant
never becomes one. Names follow OpenTelemetry's conventions; Prometheus sees
``lookup_audit.ingest.events`` as ``lookup_audit_ingest_events_total``.
"""

import os
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from opentelemetry.exporter.prometheus import PrometheusMetricReader
from opentelemetry.metrics import CallbackOptions, MeterProvider, Observation
from opentelemetry.sdk.metrics import MeterProvider as SdkMeterProvider
from opentelemetry.sdk.metrics.export import MetricReader, PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.trace import NoOpTracerProvider, TracerProvider
from prometheus_client import CollectorRegistry, generate_latest
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lookup_audit.collector.envelope import is_without_content
from lookup_audit.collector.ingest import Sorted
from lookup_audit.collector.publishing import OutgoingRecord
from lookup_audit.collector.tracing import make_tracer_provider, wants_export

METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_DURATIONS: Final = (0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10)
_SIZES: Final = (256, 1024, 4096, 16384, 65536, 262144, 1048576)


@dataclass(frozen=True, slots=True)
class Telemetry:
    """Where a process's metrics go, and the registry that shows them.

    Args:
        meter_provider: Makes the instruments; shared by all stages of one process.
        registry: What ``/metrics`` prints.
        tracer_provider: Makes the spans; they go where the environment says, or nowhere.
    """

    meter_provider: MeterProvider
    registry: CollectorRegistry
    tracer_provider: TracerProvider = field(default_factory=NoOpTracerProvider)

    def render(self) -> bytes:
        """The metrics as Prometheus text."""
        return generate_latest(self.registry)


def make_telemetry(
    service_name: str = "lookup-audit-collector", environ: Mapping[str, str] = os.environ
) -> Telemetry:
    """Metrics with a registry of their own, so that two in one process do not mix.

    Metrics and spans also go out by OTLP where ``OTEL_EXPORTER_OTLP_ENDPOINT`` says where to.

    Args:
        service_name: ``service.name`` of both.
        environ: Variables of the process.
    """
    registry = CollectorRegistry()
    readers: list[MetricReader] = [
        PrometheusMetricReader(registry=registry, scope_info_enabled=False)
    ]
    if wants_export("METRICS", environ):
        from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter

        readers.append(PeriodicExportingMetricReader(OTLPMetricExporter()))
    provider = SdkMeterProvider(
        readers,
        resource=Resource.create({"service.name": service_name}),
        # What is only scraped has nothing to flush.
        shutdown_on_exit=len(readers) > 1,
    )
    return Telemetry(provider, registry, make_tracer_provider(service_name, environ))


class IngestMetrics:
    """The instruments of the collector.

    Args:
        meter_provider: Where they are made.
        pending: How many events wait for the broker now.
        capacity: How many may.
    """

    def __init__(self, meter_provider: MeterProvider, *, pending: Callable[[], int], capacity: int):
        meter = meter_provider.get_meter("lookup_audit.collector")
        self._events = meter.create_counter(
            "lookup_audit.ingest.events",
            "{event}",
            "Events that callers sent, by what became of them",
        )
        self._sizes = meter.create_histogram(
            "lookup_audit.event.size",
            "By",
            "Size of an event as sent",
            explicit_bucket_boundaries_advisory=_SIZES,
        )
        self._requests = meter.create_histogram(
            "http.server.request.duration",
            "s",
            "Duration of HTTP requests",
            explicit_bucket_boundaries_advisory=_DURATIONS,
        )
        self._sends = meter.create_histogram(
            "messaging.client.operation.duration",
            "s",
            "Time until the broker confirmed the events of one request",
            explicit_bucket_boundaries_advisory=_DURATIONS,
        )

        def observe(_: CallbackOptions) -> Iterable[Observation]:
            return [Observation(pending())]

        def observe_capacity(_: CallbackOptions) -> Iterable[Observation]:
            return [Observation(capacity)]

        self._meter = meter
        self._spans = meter.create_counter(
            "lookup_audit.ingest.spans",
            "{span}",
            "Spans and log records that callers sent, by what became of them",
        )
        self._vectors = meter.create_counter(
            "lookup_audit.ingest.vectors.dropped", "{vector}", "Embeddings left out of spans"
        )
        self._withheld = meter.create_counter(
            "lookup_audit.ingest.withheld",
            "{event}",
            "Events whose redaction failed; they are dead letters without content",
        )
        meter.create_observable_gauge(
            "lookup_audit.ingest.queue.size", [observe], "{event}", "Events not yet confirmed"
        )
        meter.create_observable_gauge(
            "lookup_audit.ingest.queue.capacity",
            [observe_capacity],
            "{event}",
            "Most events that may be unconfirmed",
        )

    def count_events(self, result: Sorted, *, accepted: int) -> None:
        """Count the events of one answered request."""
        source = {"source.format": "native", "source.transport": "http"}
        if accepted:
            self._events.add(accepted, {**source, "ingest.result": "accepted"})
        for why in result.rejected.values():
            self._events.add(
                1, {**source, "ingest.result": "rejected", "error.type": str(why.reason)}
            )
        for size in result.sizes:
            self._sizes.record(size, {"source.format": "native"})

    def count_mapped(self, kind: str, source: str, *, size: int = 0, error: str = "") -> None:
        """Count one event that was made from spans, accepted or refused."""
        attributes = {
            "source.format": source,
            "source.transport": "http",
            "ingest.result": "rejected" if error else "accepted",
        }
        attributes |= {"error.type": error} if error else {"event.type": kind}
        self._events.add(1, attributes)
        if size:
            self._sizes.record(size, {"source.format": source})

    def count_spans(self, result: str, count: int, reason: str = "") -> None:
        """Count spans or log records by what became of them."""
        if count:
            attributes = {"source.transport": "http", "ingest.result": result}
            self._spans.add(count, attributes | ({"reason": reason} if reason else {}))

    def count_bad_request(self) -> None:
        """Count a body that is no OTLP at all; how many spans it held is unknown."""
        self._events.add(
            1,
            {
                "source.format": "otlp",
                "source.transport": "http",
                "ingest.result": "rejected",
                "error.type": "bad_request",
            },
        )

    def count_vectors(self, count: int) -> None:
        """Count embeddings that were left out."""
        if count:
            self._vectors.add(count)

    def watch_waiting(self, spans: Callable[[], int]) -> None:
        """Show how many spans wait for their parents."""

        def observe(_: CallbackOptions) -> Iterable[Observation]:
            return [Observation(spans())]

        self._meter.create_observable_gauge(
            "lookup_audit.ingest.spans.waiting", [observe], "{span}", "Spans that wait for parents"
        )

    def time_send(self, records: list[OutgoingRecord], seconds: float, *, error: str = "") -> None:
        """Note how long one request's events took to be confirmed, or to fail."""
        attributes = {
            "messaging.system": "kafka",
            "messaging.operation.name": "send",
            "messaging.destination.name": str(records[0].topic),
        }
        if error:
            attributes["error.type"] = error
        elif withheld := sum(map(is_without_content, records)):
            self._withheld.add(withheld)
        self._sends.record(seconds, attributes)

    def time_request(self, method: str, route: str, status: int, seconds: float) -> None:
        """Note one HTTP request."""
        attributes: dict[str, Any] = {
            "http.request.method": method if method in METHODS else "_OTHER",
            "http.response.status_code": status,
        }
        if route:
            attributes["http.route"] = route
        self._requests.record(seconds, attributes)


class TimeRequests:
    """ASGI middleware that times every request, refused ones too."""

    def __init__(self, app: ASGIApp, metrics: IngestMetrics):
        self.app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the call on and note its status and duration."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        # An exception that leaves the app is answered 500 further out.
        status = 500
        started = time.perf_counter()

        async def watch(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self.app(scope, receive, watch)
        finally:
            # Only the pattern of a matched route: a path is whatever a caller writes.
            route = getattr(scope.get("route"), "path", "")
            seconds = time.perf_counter() - started
            self._metrics.time_request(scope["method"], route, status, seconds)
