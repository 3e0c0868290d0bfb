"""From an application's own OTel SDK exporter to a row, through the whole stack."""

import json
import re
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter

from tests.e2e.conftest import Up, run_command
from tests.unit.collector.otlp.payloads import encode, request, retriever, span

SAMPLES = Path(__file__).parents[1] / "samples" / "otlp"


# No span of the samples is younger than this.
_SAMPLED_NS = 1_796_073_000_000_000_000


def as_of_now(body: bytes) -> bytes:
    """The same spans, as if they had ended just now."""
    shift = time.time_ns() - _SAMPLED_NS
    return re.sub(
        rb'TimeUnixNano": "(\d{19})"',
        lambda found: b'TimeUnixNano": "%d"' % (int(found[1]) + shift),
        body,
    )


def exporter(url: str, compression: str) -> SpanExporter:
    """The SDK's own exporter; an extra of its own, not of the product's."""
    module = pytest.importorskip(
        "opentelemetry.exporter.otlp.proto.http.trace_exporter",
        reason="install opentelemetry-exporter-otlp-proto-http to run this",
    )
    http = pytest.importorskip("opentelemetry.exporter.otlp.proto.http")
    made: SpanExporter = module.OTLPSpanExporter(
        f"{url}/v1/traces", compression=http.Compression(compression)
    )
    return made


@pytest.mark.parametrize("compression", ["none", "gzip", "deflate"])
def test_what_the_sdk_exports_becomes_one_row_a_retrieval(up: Up, compression: str) -> None:
    service = f"sdk-{compression}"
    provider = TracerProvider(
        resource=Resource.create({"service.name": service}), shutdown_on_exit=False
    )
    provider.add_span_processor(BatchSpanProcessor(exporter(up.url, compression)))
    tracer = provider.get_tracer("my.app", "1.2")
    with tracer.start_as_current_span("ask") as root:
        root.set_attribute("session.id", "s-1")
        with tracer.start_as_current_span("retrieval handbook") as found:
            found.set_attributes(
                {
                    "gen_ai.operation.name": "retrieval",
                    "gen_ai.retrieval.query.text": "carry-over",
                    "gen_ai.retrieval.documents": json.dumps(
                        [{"id": "c-1", "score": 0.4}, {"id": "c-2", "score": None}]
                    ),
                    "lookup_audit.retrieval.mode": "dense",
                    "lookup_audit.retrieval.score.kind": "l2_distance",
                }
            )
    assert provider.force_flush()
    provider.shutdown()

    where = f"FROM lookups WHERE service = '{service}'"
    up.wait_for(f"SELECT count() {where}", "1")
    columns = "run_id, query_text, mode, source_format, level_check, length(degradations)"
    assert up.query(f"SELECT {columns} {where}").split("\t") == [
        *("s-1", "carry-over", "dense", "otlp/genai", "unverifiable", "4"),
    ]
    ids = up.query(
        f"SELECT chunk_id, dense_distance FROM candidates WHERE event_id IN "
        f"(SELECT event_id {where}) ORDER BY original_rank"
    )
    assert ids.splitlines() == ["c-1\t0.4", "c-2\t\\N"]


def test_every_sample_is_stored_once_however_often_it_is_sent(up: Up) -> None:
    bodies = [
        as_of_now(path.read_bytes().replace(b"rag-", b"sample-"))
        for path in SAMPLES.glob("*.otlp.json")
    ]
    for body in bodies * 2:
        assert up.post("/v1/traces", body) == {}
    up.wait_for("SELECT count() FROM lookups WHERE service LIKE 'sample-%'", "46")
    assert up.query("SELECT count() FROM dead_letters") == "0"


def test_spans_that_wait_survive_a_kill_and_are_joined(
    start: Callable[..., Up], tmp_path: Path
) -> None:
    first = start()
    child = as_of_now(encode(request(retriever("1", "a", parent="9"))))
    assert first.post("/v1/traces", child) == {}
    first.process.kill()
    first.process.wait(10)

    second = start(tmp_path / "data")
    tool = span("9", {"openinference.span.kind": "TOOL", "tool.id": "call-1"})
    assert second.post("/v1/traces", as_of_now(encode(request(tool)))) == {}
    second.wait_for("SELECT tool_call_id FROM lookups", "call-1")
    assert list((tmp_path / "data" / "otlp").iterdir()) == []


def test_one_lookup_is_explained_with_what_its_source_could_not_tell(up: Up) -> None:
    body = encode(request(retriever("1", "a", trace="e" * 32), **{"service.name": "explained"}))
    assert up.post("/v1/traces", as_of_now(body)) == {}
    where = "FROM lookups WHERE service = 'explained'"
    up.wait_for(f"SELECT count() {where}", "1")
    event_id = up.query(f"SELECT event_id {where}")
    answer = run_command("lookup", event_id, "--data-dir", up.data_dir)
    assert answer.returncode == 0
    assert "level_unknown" in answer.stdout


def test_metrics_of_the_receiver_are_scraped(up: Up) -> None:
    with urllib.request.urlopen(f"{up.url}/metrics", timeout=10) as answer:
        text = answer.read().decode()
    assert "lookup_audit_ingest_spans_total" in text
