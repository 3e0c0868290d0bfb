"""What an exporter sees: the required behaviours of an OTLP/HTTP receiver, one by one."""

import gzip
import json
import time
import tracemalloc
import zlib
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from google.rpc.status_pb2 import Status
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

from lookup_audit.collector.auth import hash_token, make_token
from lookup_audit.collector.memory import MemoryPublisher
from tests.unit.collector.otlp.payloads import (
    NOW,
    START_NS,
    TRACE,
    any_value,
    encode,
    logs,
    request,
    retriever,
    span,
)
from tests.unit.collector.running import Answer, Running
from tests.unit.collector.running import running as serve

HTTP = Path(__file__).parents[3] / "samples" / "otlp" / "http"
running = partial(serve, clock=lambda: NOW)

JSON = {"Content-Type": "application/json"}
PROTOBUF = {"Content-Type": "application/x-protobuf"}
ONE = request(retriever("1", "c-0", "c-1"))


def traces(collector: Running, body: bytes, headers: dict[str, str] = JSON, **more: str) -> Answer:
    return collector.call("POST", "/v1/traces", body, headers | more)


def protobuf_of(*spans: tuple[bytes, bytes]) -> bytes:
    message = ExportTraceServiceRequest()
    scope = message.resource_spans.add().scope_spans.add()
    for trace_id, span_id in spans:
        made = scope.spans.add(trace_id=trace_id, span_id=span_id)
        made.start_time_unix_nano, made.end_time_unix_nano = START_NS, START_NS + 1
        made.attributes.add(key="openinference.span.kind").value.string_value = "RETRIEVER"
    return bytes(message.SerializeToString())


def events(collector: Running) -> list[dict[str, Any]]:
    return [json.loads(value) for value in collector.values]


# --- answers --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["protobuf", "protobuf-gzip", "protobuf-deflate", "json", "json-gzip"]
)
def test_a_request_of_an_official_exporter_is_taken(name: str) -> None:
    told = json.loads((HTTP / f"{name}.headers.json").read_text())
    headers = {k: v for k, v in told["headers"].items() if k not in ("Host", "Content-Length")}
    with running() as collector:
        answer = collector.call("POST", told["path"], (HTTP / f"{name}.body").read_bytes(), headers)
        assert answer.status == 200
        assert answer.headers["content-type"] == headers["content-type"]
        assert len(collector.values) >= 1


@pytest.mark.parametrize(
    ("body", "headers"), [(b"", JSON), (b"{}", JSON), (b"", PROTOBUF)], ids=["none", "{}", "pb"]
)
@pytest.mark.parametrize("path", ["/v1/traces", "/v1/logs"])
def test_an_empty_request_is_a_success(path: str, body: bytes, headers: dict[str, str]) -> None:
    with running() as collector:
        answer = collector.call("POST", path, body, headers)
    assert (answer.status, answer.body) == (200, b"{}" if headers is JSON else b"")


def test_metrics_are_accepted_and_left_alone() -> None:
    with running() as collector:
        for headers, body in ((PROTOBUF, b"\x0a\x00"), (JSON, b'{"resourceMetrics": []}')):
            answer = collector.call("POST", "/v1/metrics", body, headers)
            assert (answer.status, answer.headers["content-type"]) == (200, headers["Content-Type"])
        assert collector.values == []


def test_a_success_says_nothing_of_a_partial_success() -> None:
    with running() as collector:
        answer = traces(collector, encode(ONE))
        binary = traces(collector, protobuf_of((b"\1" * 16, b"\1" * 8)), PROTOBUF)
    assert (answer.status, answer.json) == (200, {})
    assert (binary.status, binary.headers["content-type"]) == (200, PROTOBUF["Content-Type"])
    assert not ExportTraceServiceResponse.FromString(binary.body).HasField("partial_success")


def test_refused_spans_are_a_partial_success_and_harm_no_neighbour() -> None:
    short = retriever("2", "c") | {"spanId": "abc"}
    zero = retriever("3", "c") | {"traceId": "0" * 32}
    with running() as collector:
        answer = traces(collector, encode(request(short, retriever("1", "c-0"), zero)))
        binary = traces(
            collector, protobuf_of((b"\0" * 16, b"\1" * 8), (b"\2" * 16, b"\1" * 8)), PROTOBUF
        )
    assert answer.status == 200
    assert answer.json["partialSuccess"]["rejectedSpans"] == "2"
    assert "trace id must be 16 bytes" in answer.json["partialSuccess"]["errorMessage"]
    partial = ExportTraceServiceResponse.FromString(binary.body).partial_success
    assert (partial.rejected_spans, bool(partial.error_message)) == (1, True)
    assert len(collector.values) == 2


def test_a_span_from_the_future_or_before_the_retention_is_a_partial_success() -> None:
    day = 86_400_000_000_000
    good = retriever("1", "c", trace="1" * 32)
    future = retriever("2", "c", trace="2" * 32) | {"endTimeUnixNano": str(START_NS + 2 * day)}
    old = retriever("3", "c", trace="3" * 32) | {"endTimeUnixNano": str(START_NS - 31 * day)}
    far = retriever("4", "c", trace="4" * 32) | {"endTimeUnixNano": str(2**63 - 1)}
    with running(retention_days=30) as collector:
        answer = traces(collector, encode(request(old, good, future, far)))
        metrics = collector.call("GET", "/metrics").body.decode()
    assert answer.json["partialSuccess"]["rejectedSpans"] == "3"
    assert "retention of 30 days" in answer.json["partialSuccess"]["errorMessage"]
    assert 'reason="future_time"' in metrics
    assert [event["trace_id"] for event in events(collector)] == ["1" * 32]


def test_half_a_surrogate_pair_costs_its_own_span_only() -> None:
    body = encode(request(retriever("1", "c", query="half"), retriever("2", "c", trace="3" * 32)))
    body = body.replace(b'"half"', b'"half \\ud83d"')
    with running() as collector:
        answer = traces(collector, body)
    assert answer.json["partialSuccess"]["rejectedSpans"] == "1"
    assert [event["trace_id"] for event in events(collector)] == ["3" * 32]


BAD = [
    pytest.param(b"not json", JSON, id="no-json"),
    pytest.param(b'{"resourceSpans": 5}', JSON, id="no-list"),
    pytest.param(b'{"resourceSpans": [{"scopeSpans": [{"spans": [1]}]}]}', JSON, id="no-span"),
    pytest.param(b"[" * 100_000, JSON, id="deep"),
    pytest.param(b'{"a":' * 100_000 + b"1", JSON, id="deep-object"),
    pytest.param(encode(ONE).replace(b"0.9}", b"NaN}"), JSON, id="bare-nan"),
    pytest.param(b"\x0a\xff\xff\xff\xff\x0f", PROTOBUF, id="cut-protobuf"),
    pytest.param(b"\x0a" * 1000, PROTOBUF, id="no-protobuf"),
]


@pytest.mark.parametrize(("body", "headers"), BAD)
def test_bad_data_is_a_400_with_a_status(body: bytes, headers: dict[str, str]) -> None:
    with running() as collector:
        answer = traces(collector, body, headers)
    assert_status(answer, 400, headers, code=3)


def assert_status(answer: Answer, status: int, headers: dict[str, str], *, code: int) -> Status:
    """The answer is a ``google.rpc.Status`` in the request's content type."""
    assert answer.status == status
    assert answer.headers["content-type"] == headers["Content-Type"]
    if headers is PROTOBUF:
        told = Status.FromString(answer.body)
    else:
        told = Status(code=answer.json["code"], message=answer.json["message"])
    assert told.code == code
    assert told.message
    return told


@pytest.mark.parametrize("headers", [JSON, PROTOBUF], ids=["json", "protobuf"])
def test_every_refusal_is_a_status_in_the_content_type_of_the_request(
    headers: dict[str, str],
) -> None:
    body = encode(ONE) if headers is JSON else protobuf_of((b"\1" * 16, b"\1" * 8))
    token = make_token()
    with running(token_hashes=(hash_token(token),)) as collector:
        assert_status(traces(collector, body, headers), 401, headers, code=16)
        bearer = {"Authorization": f"Bearer {token}"}
        assert traces(collector, body, headers | bearer).status == 200
    with running(max_body_bytes=2048, max_event_bytes=2048) as collector:
        assert_status(traces(collector, body * 100, headers), 413, headers, code=8)
        big = gzip.compress(b" " * 1_000_000)
        answer = traces(collector, big, headers, **{"Content-Encoding": "gzip"})
        assert_status(answer, 413, headers, code=8)
        answer = traces(collector, body, headers, **{"Content-Encoding": "br"})
        assert_status(answer, 415, headers, code=3)
        answer = traces(collector, body, headers, Origin="https://evil.example")
        assert_status(answer, 403, headers, code=7)
        assert_status(collector.call("GET", "/v1/traces", b"", headers), 405, headers, code=2)


@pytest.mark.parametrize("kind", ["text/plain", "application/grpc", ""])
def test_another_content_type_is_a_415(kind: str) -> None:
    with running() as collector:
        answer = traces(collector, encode(ONE), {"Content-Type": kind} if kind else {})
    assert (answer.status, answer.json["code"]) == (415, 3)


def test_parameters_and_capitals_of_a_content_type_are_tolerated() -> None:
    with running() as collector:
        answer = traces(collector, encode(ONE), {"Content-Type": "Application/JSON; charset=utf-8"})
    assert answer.status == 200


# --- encodings and limits -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("coding", "body"),
    [
        ("identity", encode(ONE)),
        ("gzip", gzip.compress(encode(ONE))),
        ("x-gzip", gzip.compress(encode(ONE))),
        ("gzip", gzip.compress(encode(ONE)[:99]) + gzip.compress(encode(ONE)[99:])),
        ("deflate", zlib.compress(encode(ONE))),
    ],
    ids=["identity", "gzip", "x-gzip", "two-members", "deflate"],
)
def test_every_encoding_gives_the_same_event(coding: str, body: bytes) -> None:
    with running() as collector, running() as plain:
        assert traces(collector, body, JSON, **{"Content-Encoding": coding}).status == 200
        assert traces(plain, encode(ONE)).status == 200
    assert len(collector.values) == 1
    assert collector.values == plain.values


def test_a_body_that_is_not_what_its_encoding_says_is_a_400() -> None:
    with running() as collector:
        answer = traces(collector, encode(ONE), JSON, **{"Content-Encoding": "gzip"})
    assert_status(answer, 400, JSON, code=3)


def test_a_gzip_bomb_costs_little_memory_and_one_413() -> None:
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    bomb = b"".join(packer.compress(b" " * 2**20) for _ in range(200)) + packer.flush()
    with running(max_body_bytes=32 * 2**20) as collector:
        tracemalloc.start()
        answer = traces(collector, bomb, JSON, **{"Content-Encoding": "gzip"})
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert_status(answer, 413, JSON, code=8)
    assert peak < 100 * 2**20


def test_a_request_of_too_many_spans_is_a_413() -> None:
    spans = [span(f"{n:x}", {}) for n in range(1, 12)]
    with running(max_events=10) as collector:
        assert_status(traces(collector, encode(request(*spans))), 413, JSON, code=8)
        assert traces(collector, encode(request(*spans[:10]))).status == 200


# --- retries --------------------------------------------------------------------------------


def test_a_broker_outage_is_a_503_that_says_when_to_come_back() -> None:
    publisher = MemoryPublisher()
    publisher.available = False
    with running(publisher) as collector:
        answer = traces(collector, encode(ONE))
        assert_status(answer, 503, JSON, code=14)
        assert answer.headers["retry-after"] == "1"
        publisher.available = True
        assert traces(collector, encode(ONE)).status == 200
    assert len(collector.values) == 1


def test_too_much_in_flight_is_a_429_that_says_when_to_come_back() -> None:
    with running(MemoryPublisher(max_in_flight_events=0)) as collector:
        answer = traces(collector, encode(ONE))
    assert_status(answer, 429, JSON, code=8)
    assert answer.headers["retry-after"] == "1"


def test_a_slow_broker_is_answered_within_five_seconds() -> None:
    with running(MemoryPublisher(ack_seconds=8), shutdown_seconds=1) as collector:
        started = time.monotonic()
        answer = traces(collector, encode(ONE))
    assert answer.status == 503
    assert time.monotonic() - started < 6


def test_the_same_export_twice_makes_the_same_event() -> None:
    with running() as one, running() as other:
        traces(one, encode(ONE))
        traces(other, encode(ONE))
    assert one.values == other.values


def test_an_export_that_comes_again_adds_nothing() -> None:
    with running() as collector:
        assert [traces(collector, encode(ONE)).status for _ in range(3)] == [200] * 3
        metrics = collector.call("GET", "/metrics").body.decode()
    assert len(collector.values) == 1
    assert 'ingest_result="ignored",reason="duplicate",source_transport="http"} 2.0' in metrics


def test_what_the_broker_refuses_is_a_partial_success() -> None:
    with running(MemoryPublisher(max_event_bytes=10)) as collector:
        answer = traces(collector, encode(ONE))
    assert answer.json["partialSuccess"]["rejectedSpans"] == "1"


# --- JSON -----------------------------------------------------------------------------------


def test_ids_are_hex_of_any_case_and_times_and_integers_text_or_number() -> None:
    told = retriever("1", "c-0", attributes={"retrieval.top_k": 3})
    told["attributes"][-1]["value"] = {"intValue": "3"}
    other = told | {
        "traceId": TRACE.upper(),
        "startTimeUnixNano": START_NS,
        "endTimeUnixNano": START_NS + 120_000_000,
    }
    other["attributes"] = [*told["attributes"][:-1]]
    other["attributes"].append({"key": "retrieval.top_k", "value": {"intValue": 3}})
    with running() as collector:
        assert traces(collector, encode(request(told))).json == {}
    with running() as another:
        assert traces(another, encode(request(other))).json == {}
    assert collector.values == another.values
    [event] = events(collector)
    assert (event["trace_id"], event["span_id"]) == (TRACE, "0000000000000001")
    assert (event["top_k"], event["occurred_at"]) == (3, "2026-11-30T12:00:00.120000Z")


def test_unknown_fields_and_other_spellings_of_names_are_ignored() -> None:
    told = request(retriever("1", "c-0") | {"flags": 257, "news": [1], "trace_id": "x"})
    told["resource_spans"] = [1]
    told["resourceSpans"][0]["scopeSpans"][0]["schemaUrl"] = "https://opentelemetry.io/schemas/9"
    with running() as collector:
        assert traces(collector, encode(told)).json == {}
    assert len(collector.values) == 1


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity"])
def test_a_number_that_is_none_comes_as_text_and_is_left_out(number: str) -> None:
    told = retriever("1", "c-0")
    score = next(a for a in told["attributes"] if a["key"].endswith(".score"))
    score["value"] = {"doubleValue": number}
    with running() as collector:
        assert traces(collector, encode(request(told))).json == {}
    [event] = events(collector)
    assert "score" not in event["candidates"][0]
    assert "score_not_finite" in event["degradations"]


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"stringValue": None},
        {"bytesValue": "AAEC"},
        {"somethingNew": 1},
        any_value([1, "a", [2.5, {"b": True}]]),
        any_value({"a": {"b": [1]}}),
    ],
    ids=["empty", "null", "bytes", "unknown", "array", "kvlist"],
)
def test_an_attribute_of_any_shape_harms_nothing(value: dict[str, Any]) -> None:
    told = retriever("1", "c-0")
    for key in ("input.value", "metadata", "output.value", "session.id", "retrieval.top_k"):
        told["attributes"] = [a for a in told["attributes"] if a["key"] != key]
        told["attributes"].append({"key": key, "value": value})
    with running() as collector:
        assert traces(collector, encode(request(told))).json == {}
    assert len(collector.values) == 1


def test_protobuf_and_json_give_the_same_event() -> None:
    with running() as binary, running() as text:
        traces(binary, protobuf_of((bytes.fromhex(TRACE), b"\1" * 8)), PROTOBUF)
        told = span("01" * 8, {"openinference.span.kind": "RETRIEVER"}, name="")
        told |= {"startTimeUnixNano": START_NS, "endTimeUnixNano": START_NS + 1}
        message = {"resourceSpans": [{"scopeSpans": [{"spans": [told]}]}]}
        traces(text, encode(message))
    assert len(binary.values) == 1
    assert binary.values == text.values


# --- logs and counts ------------------------------------------------------------------------


@pytest.mark.parametrize("by_event_name", [True, False], ids=["field", "attribute"])
def test_an_evaluation_event_becomes_a_judgement(by_event_name: bool) -> None:
    attributes = {
        "gen_ai.evaluation.name": "correctness",
        "gen_ai.evaluation.score.value": 1.0,
        "gen_ai.evaluation.score.label": "pass",
        "gen_ai.evaluation.explanation": "as in the handbook",
    }
    record: dict[str, Any] = {
        "timeUnixNano": str(START_NS),
        "traceId": TRACE,
        "spanId": "00f1e2d3c4b5a697",
    }
    if by_event_name:
        record["eventName"] = "gen_ai.evaluation.result"
    else:
        attributes["event.name"] = "gen_ai.evaluation.result"
    record["attributes"] = [{"key": k, "value": any_value(v)} for k, v in attributes.items()]
    with running() as collector:
        answer = collector.call("POST", "/v1/logs", encode(logs(record, {"body": {}})), JSON)
        assert (answer.status, answer.json) == (200, {})
    [judgement] = events(collector)
    assert (judgement["verdict"], judgement["source"]) == ("correct", "llm")
    assert judgement["comment"] == "correctness, label pass, score 1: as in the handbook"


def test_bad_log_records_are_a_partial_success() -> None:
    record = {"timeUnixNano": "x"}
    with running() as collector:
        answer = collector.call("POST", "/v1/logs", encode(logs(record)), JSON)
    assert answer.json["partialSuccess"]["rejectedLogRecords"] == "1"
    assert ExportLogsServiceResponse.FromString(b"") == ExportLogsServiceResponse()


def test_every_span_is_counted_once() -> None:
    bad = retriever("4", "c") | {"spanId": "x"}
    vector = span("5", {"openinference.span.kind": "LLM", "embedding.vector": [0.5] * 64})
    body = request(retriever("1", "c-0", parent="2"), span("2", {}), span("3", {}), bad, vector)
    with running() as collector:
        traces(collector, encode(body))
        metrics = collector.call("GET", "/metrics").body.decode().splitlines()

    def total(name: str) -> float:
        return sum(float(line.rpartition(" ")[2]) for line in metrics if line.startswith(name))

    assert total('lookup_audit_ingest_spans_total{ingest_result="accepted"') == 1
    assert total('lookup_audit_ingest_spans_total{ingest_result="ignored"') == 3
    assert total('lookup_audit_ingest_spans_total{ingest_result="rejected"') == 1
    assert total("lookup_audit_ingest_spans_total") == 5
    assert total("lookup_audit_ingest_vectors_dropped_total") == 1
    assert any('source_format="otlp/openinference"' in line for line in metrics)
