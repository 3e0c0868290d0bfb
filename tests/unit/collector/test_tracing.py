import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import NoOpTracerProvider, SpanKind, StatusCode
from prometheus_client import CollectorRegistry

from lookup_audit.collector.app import make_app
from lookup_audit.collector.config import CollectorConfig
from lookup_audit.collector.memory import MemoryPublisher
from lookup_audit.collector.server import CollectorServer
from lookup_audit.collector.telemetry import Telemetry, make_telemetry
from lookup_audit.collector.tracing import MAX_LINKS, TracedPublisher, wants_export
from tests.support.events import encode, make_lookup
from tests.unit.collector.publisher_contract import PublisherContract
from tests.unit.collector.running import JSON, call

ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"


class Traced:
    """A served collector with its spans in memory."""

    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()
        provider = TracerProvider(shutdown_on_exit=False)
        provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        meters = MeterProvider(shutdown_on_exit=False)
        self.publisher = MemoryPublisher(refused_ids=["refused"])
        self.config = CollectorConfig(port=0, bootstrap_servers=("kafka:9093",))
        telemetry = Telemetry(meters, CollectorRegistry(), provider)
        self.app = make_app(self.config, self.publisher, telemetry=telemetry)

    @property
    def spans(self) -> tuple[ReadableSpan, ...]:
        return self.exporter.get_finished_spans()


@pytest.fixture
def traced() -> Iterator[tuple[Traced, int]]:
    made = Traced()
    with CollectorServer(made.app, made.config) as server:
        yield made, server.port


class TestTracedPublisher(PublisherContract):
    """Traced or not, a publisher keeps its promises."""

    @pytest.fixture
    def publisher(self) -> TracedPublisher:
        return TracedPublisher(
            MemoryPublisher(), NoOpTracerProvider().get_tracer("t"), server="kafka:1"
        )

    def stored(self, publisher: TracedPublisher) -> list[tuple[str, bytes]]:
        inner = publisher._publisher
        assert isinstance(inner, MemoryPublisher)
        return [(record.event_id, record.value) for record in inner.records]


def test_a_request_is_one_span_linked_to_every_retrieval_in_it(
    traced: tuple[Traced, int],
) -> None:
    made, port = traced
    events = [make_lookup() for _ in range(3)]
    assert call(port, "POST", "/v1/lookups", encode(events), JSON).status == 202
    (span,) = made.spans
    assert (span.name, span.kind) == ("send lookup.results.v1", SpanKind.CLIENT)
    assert dict(span.attributes or {}) == {
        "messaging.system": "kafka",
        "messaging.operation.name": "send",
        "messaging.operation.type": "send",
        "messaging.destination.name": "lookup.results.v1",
        "messaging.batch.message_count": 3,
        "messaging.client.id": "lookup-audit-collector",
        "server.address": "kafka",
        "server.port": 9093,
    }
    linked = [
        (f"{link.context.trace_id:032x}", f"{link.context.span_id:016x}") for link in span.links
    ]
    assert linked == [(event["trace_id"], event["span_id"]) for event in events]
    ids = [(link.attributes or {})["messaging.message.id"] for link in span.links]
    assert ids == [event["event_id"] for event in events]


def test_the_record_keeps_the_retrieval_as_its_context(traced: tuple[Traced, int]) -> None:
    made, port = traced
    event = make_lookup()
    call(port, "POST", "/v1/lookups", encode(event), JSON)
    headers = dict(made.publisher.records[0].headers)
    expected = f"00-{event['trace_id']}-{event['span_id']}-01"
    assert headers["traceparent"].decode() == expected


def test_a_large_batch_has_as_many_links_as_a_span_holds(traced: tuple[Traced, int]) -> None:
    made, port = traced
    call(port, "POST", "/v1/lookups", encode([make_lookup() for _ in range(MAX_LINKS + 9)]), JSON)
    (span,) = made.spans
    assert len(span.links) == MAX_LINKS
    assert (span.attributes or {})["messaging.batch.message_count"] == MAX_LINKS + 9
    assert span.dropped_links == 0


def test_an_outage_is_an_error_by_its_kind_and_without_its_words(
    traced: tuple[Traced, int],
) -> None:
    made, port = traced
    made.publisher.available = False
    assert call(port, "POST", "/v1/lookups", encode(make_lookup()), JSON).status == 503
    (span,) = made.spans
    assert span.status.status_code is StatusCode.ERROR
    assert (span.attributes or {})["error.type"] == "UnavailableError"
    assert span.events == ()


def test_what_the_broker_refuses_is_counted_on_the_span(traced: tuple[Traced, int]) -> None:
    made, port = traced
    events = [make_lookup(event_id="refused"), make_lookup()]
    call(port, "POST", "/v1/lookups", encode(events), JSON)
    assert (made.spans[0].attributes or {})["lookup_audit.events.refused"] == 1


@pytest.mark.parametrize(
    ("environ", "wanted"),
    [
        pytest.param({}, False, id="nothing-set"),
        pytest.param({ENDPOINT: "http://x:4318"}, True, id="endpoint"),
        pytest.param({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://x"}, True, id="traces-only"),
        pytest.param({ENDPOINT: "http://x", "OTEL_SDK_DISABLED": "true"}, False, id="disabled"),
        pytest.param({ENDPOINT: "http://x", "OTEL_TRACES_EXPORTER": "none"}, False, id="none"),
    ],
)
def test_spans_go_where_the_environment_says(environ: dict[str, str], wanted: bool) -> None:
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http")
    assert wants_export("TRACES", environ) is wanted


def test_without_an_endpoint_no_span_is_made() -> None:
    assert isinstance(make_telemetry(environ={}).tracer_provider, NoOpTracerProvider)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_spans_and_metrics_leave_by_otlp(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http")
    received: dict[str, bytes] = {}

    class Backend(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            received[self.path] = received.get(self.path, b"") + body
            self.send_response(200)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    backend = ThreadingHTTPServer(("127.0.0.1", 0), Backend)
    thread = threading.Thread(target=backend.serve_forever, daemon=True)
    thread.start()
    try:
        monkeypatch.setenv(ENDPOINT, f"http://127.0.0.1:{backend.server_port}")
        telemetry = make_telemetry("collector-under-test")
        config = CollectorConfig(port=0)
        app = make_app(config, MemoryPublisher(), telemetry=telemetry)
        with CollectorServer(app, config) as server:
            call(server.port, "POST", "/v1/lookups", encode(make_lookup()), JSON)
        assert isinstance(telemetry.tracer_provider, TracerProvider)
        assert isinstance(telemetry.meter_provider, MeterProvider)
        telemetry.tracer_provider.shutdown()
        telemetry.meter_provider.shutdown()
    finally:
        backend.shutdown()
        backend.server_close()
        thread.join()
    assert b"send lookup.results.v1" in received["/v1/traces"]
    assert b"collector-under-test" in received["/v1/traces"]
    assert b"lookup_audit.ingest.events" in received["/v1/metrics"]
