"""The collector's own traces: one span a request's batch, linked to the retrievals in it.

The context of a record is the audited retrieval and stays that; a span of ours therefore links to
it and is not its parent. Spans go out by OTLP where the environment names an endpoint, by the
usual variables of OpenTelemetry, and nowhere else.
"""

import importlib.util
import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider as SdkTracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import (
    Link,
    NoOpTracerProvider,
    Span,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
    Tracer,
    TracerProvider,
)

from lookup_audit.collector.publishing import Health, OutgoingRecord, Publisher
from lookup_audit.schemas.errors import Rejected, UnavailableError
from lookup_audit.schemas.names import Header

logger = logging.getLogger(__name__)

# The SDK keeps this many of a span and drops the rest in silence.
MAX_LINKS: Final = 128
_ENDPOINTS: Final = "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_{signal}_ENDPOINT"
_EXPORTER: Final = "opentelemetry.exporter.otlp.proto.http"


def wants_export(signal: str, environ: Mapping[str, str] = os.environ) -> bool:
    """Whether the environment names an OTLP endpoint and the exporter is installed.

    Args:
        signal: ``TRACES`` or ``METRICS``.
        environ: Variables of the process.
    """
    if environ.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return False
    if environ.get(f"OTEL_{signal}_EXPORTER", "otlp") != "otlp":
        return False
    if not any(environ.get(name.format(signal=signal)) for name in _ENDPOINTS):
        return False
    try:
        found = importlib.util.find_spec(_EXPORTER)
    except ModuleNotFoundError:
        found = None
    if found is None:
        logger.warning(
            "An OTLP endpoint is set but its exporter is not installed; "
            "install it with pip install 'lookup-audit[otlp]'."
        )
    return found is not None


def make_tracer_provider(
    service_name: str, environ: Mapping[str, str] = os.environ
) -> TracerProvider:
    """Spans by OTLP/HTTP where the environment asks for it, else none at all."""
    if not wants_export("TRACES", environ):
        return NoOpTracerProvider()
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    provider = SdkTracerProvider(resource=Resource.create({"service.name": service_name}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return provider


class TracedPublisher:
    """A publisher whose every batch is a span ``send <topic>``.

    Args:
        publisher: Does the work.
        tracer: Makes the spans.
        server: First broker, ``host:port``.
    """

    def __init__(self, publisher: Publisher, tracer: Tracer, *, server: str):
        self._publisher = publisher
        self._tracer = tracer
        host, _, port = server.rpartition(":")
        self._server = {"server.address": host.strip("[]"), "server.port": int(port)}

    async def start(self) -> None:
        """Begin to connect."""
        await self._publisher.start()

    async def publish(self, records: Sequence[OutgoingRecord]) -> list[Rejected | None]:
        """Send records; see :class:`lookup_audit.collector.publishing.Publisher`."""
        if not records:
            return []
        with self._span(records) as span:
            try:
                answers = await self._publisher.publish(records)
            except UnavailableError as error:
                # Without the text: a broker's message may quote what it refuses.
                span.set_attribute("error.type", type(error).__name__)
                span.set_status(Status(StatusCode.ERROR))
                raise
            refused = sum(answer is not None for answer in answers)
            if refused:
                span.set_attribute("lookup_audit.events.refused", refused)
            return answers

    def _span(self, records: Sequence[OutgoingRecord]) -> AbstractContextManager[Span]:
        topics = sorted({str(record.topic) for record in records})
        attributes: dict[str, Any] = {
            "messaging.system": "kafka",
            "messaging.operation.name": "send",
            "messaging.operation.type": "send",
            "messaging.batch.message_count": len(records),
            "messaging.client.id": "lookup-audit-collector",
            **self._server,
        }
        if len(topics) == 1:
            attributes["messaging.destination.name"] = topics[0]
        return self._tracer.start_as_current_span(
            f"send {topics[0]}" if len(topics) == 1 else "send",
            kind=SpanKind.CLIENT,
            attributes=attributes,
            links=list(_links(records)),
            record_exception=False,
            set_status_on_exception=False,
        )

    async def close(self) -> None:
        """Flush and let go."""
        await self._publisher.close()

    def health(self) -> Health:
        """Whether it can be expected to work now."""
        return self._publisher.health()

    @property
    def pending(self) -> int:
        """Records sent and not yet confirmed."""
        return self._publisher.pending


def _links(records: Sequence[OutgoingRecord]) -> Iterator[Link]:
    """A link to the retrieval of each record, as far as a span holds them."""
    found = 0
    for record in records:
        context = _context(record)
        if context is not None:
            yield Link(context, {"messaging.message.id": record.event_id})
            found += 1
        if found == MAX_LINKS:
            return


def _context(record: OutgoingRecord) -> SpanContext | None:
    value = next((v for name, v in record.headers if name == Header.TRACE_PARENT), None)
    if value is None:
        return None
    _, trace_id, span_id, flags = value.decode().split("-")
    return SpanContext(
        int(trace_id, 16), int(span_id, 16), is_remote=True, trace_flags=TraceFlags(int(flags, 16))
    )
