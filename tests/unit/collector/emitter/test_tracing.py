"""The application's own OpenTelemetry, real SDK: ids on the event, attributes on the span."""

from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry import metrics, trace
from opentelemetry.metrics import NoOpMeterProvider
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from lookup_audit.collector.emitter.metrics import make_count
from tests.support.events import make_lookup, make_outcome
from tests.unit.collector.emitter.receiving import SteeredTransport, emitting


@pytest.fixture
def spans() -> Iterator[tuple[trace.Tracer, InMemorySpanExporter]]:
    exporter = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    yield provider.get_tracer("app"), exporter
    provider.shutdown()


def test_the_current_spans_ids_are_the_events(
    spans: tuple[trace.Tracer, InMemorySpanExporter],
) -> None:
    tracer, _ = spans
    transport = SteeredTransport()
    with emitting(transport) as emitter:
        with tracer.start_as_current_span("retrieve") as span:
            emitter.emit(make_lookup(trace_id=None, span_id=None))
            emitter.emit_outcome(make_outcome())
            emitter.emit(make_lookup(trace_id="a" * 32, span_id="b" * 16))
        emitter.flush()
    context = span.get_span_context()
    lookup, mine, outcome = sorted(transport.events, key=lambda e: e.get("event_id", "~") != "")
    found = {e["trace_id"] for e in transport.events}
    assert found == {f"{context.trace_id:032x}", "a" * 32}
    assert f"{context.span_id:016x}" in [e.get("span_id") for e in (lookup, mine, outcome)]


def test_our_attributes_are_set_on_the_current_span_and_no_text_is(
    spans: tuple[trace.Tracer, InMemorySpanExporter],
) -> None:
    tracer, exporter = spans
    event = make_lookup()
    with emitting(SteeredTransport()) as emitter, tracer.start_as_current_span("retrieve"):
        emitter.emit(event)
    attributes: dict[str, Any] = dict(exporter.get_finished_spans()[0].attributes or {})
    assert attributes == {
        "gen_ai.operation.name": "retrieval",
        "gen_ai.retrieval.top_k": 4,
        "lookup_audit.event.id": event["event_id"],
        "lookup_audit.evidence.status": "EVIDENCE_FOUND",
        "lookup_audit.retrieval.mode": "dense",
        "lookup_audit.retrieval.quality.score": event["quality_score"],
        "lookup_audit.retrieval.relevance.level": "PRECISE",
        "lookup_audit.retrieval.selected_ids": ("doc-1#chunk-0",),
        "lookup_audit.retrieval.truncated": False,
    }


def test_a_service_may_keep_its_spans_as_they_are(
    spans: tuple[trace.Tracer, InMemorySpanExporter],
) -> None:
    tracer, exporter = spans
    with (
        emitting(SteeredTransport(), set_span_attributes=False) as emitter,
        tracer.start_as_current_span("retrieve"),
    ):
        emitter.emit(make_lookup())
    assert dict(exporter.get_finished_spans()[0].attributes or {}) == {}


def test_drops_are_a_metric_by_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    reader = InMemoryMetricReader()
    provider = MeterProvider([reader], shutdown_on_exit=False)
    monkeypatch.setattr(metrics, "get_meter", provider.get_meter)
    with emitting(SteeredTransport()) as emitter:
        emitter.emit(make_lookup())
        emitter.close()
        emitter.emit(make_lookup())
        data = reader.get_metrics_data()
    provider.shutdown()
    assert data is not None
    found = {
        (metric.name, *sorted(str(value) for value in (point.attributes or {}).values())): getattr(
            point, "value", None
        )
        for metric in data.resource_metrics[0].scope_metrics[0].metrics
        for point in metric.data.data_points
    }
    assert found == {
        ("lookup_audit.emitter.events", "accepted"): 1,
        ("lookup_audit.emitter.events", "closed", "dropped"): 1,
        ("lookup_audit.emitter.queue.size",): 0,
    }


def test_without_an_sdk_counting_costs_nothing_and_fails_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(metrics, "get_meter", NoOpMeterProvider().get_meter)
    count = make_count(lambda: 0)
    assert count is not None
    count("dropped", "closed", 1)
