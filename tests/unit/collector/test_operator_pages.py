import asyncio
from typing import Any

import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Mount, Route

from lookup_audit.collector.memory import MemoryPublisher
from lookup_audit.collector.publishing import Health
from tests.support.events import encode, make_lookup
from tests.unit.collector.running import running


async def hello(_: Request) -> Response:
    return PlainTextResponse("hello")


async def bug(_: Request) -> Response:
    raise ZeroDivisionError("a secret of our insides")


def test_liveness_says_ok_even_in_an_outage() -> None:
    publisher = MemoryPublisher()
    publisher.available = False
    with running(publisher) as collector:
        answer = collector.call("GET", "/healthz")
    assert (answer.status, answer.json) == (200, {"status": "ok"})


def test_readiness_names_every_dependency() -> None:
    async def store() -> Health:
        return Health(True, "connected")

    with running(checks={"clickhouse": store}) as collector:
        answer = collector.call("GET", "/readyz")
    assert answer.status == 200
    assert answer.json == {
        "ready": True,
        "dependencies": {
            "kafka": {"ready": True, "detail": "in memory"},
            "clickhouse": {"ready": True, "detail": "connected"},
        },
    }


def test_readiness_is_red_while_one_dependency_is_down_or_fails_or_hangs() -> None:
    async def broken() -> Health:
        raise OSError("refused")

    async def hanging() -> Health:
        await asyncio.sleep(60)
        return Health(True, "")

    publisher = MemoryPublisher()
    publisher.available = False
    with running(publisher, checks={"broken": broken, "hanging": hanging}) as collector:
        answer = collector.call("GET", "/readyz")
    assert (answer.status, answer.headers["retry-after"]) == (503, "1")
    assert answer.json == {
        "ready": False,
        "dependencies": {
            "kafka": {"ready": False, "detail": "the broker is down"},
            "broken": {"ready": False, "detail": "OSError: refused"},
            "hanging": {"ready": False, "detail": "no answer within 2 seconds"},
        },
    }


def metric(text: str, name: str, **labels: str) -> float:
    total = 0.0
    for line in text.splitlines():
        if line.startswith(name) and all(f'{k}="{v}"' in line for k, v in labels.items()):
            total += float(line.rsplit(" ", 1)[1])
    return total


def test_metrics_count_events_by_result_and_reason() -> None:
    with running() as collector:
        collector.post(encode([make_lookup(), make_lookup(), make_lookup(mode=None)]))
        collector.post(b"nonsense")
        answer = collector.call("GET", "/metrics")
    text = answer.body.decode()
    events = "lookup_audit_ingest_events_total"
    assert answer.headers["content-type"].startswith("text/plain")
    assert metric(text, events, ingest_result="accepted", source_format="native") == 2
    assert metric(text, events, ingest_result="rejected", error_type="invalid_value") == 1
    assert metric(text, events, ingest_result="rejected", error_type="invalid_json") == 1
    assert metric(text, "lookup_audit_event_size_bytes_count") == 4
    assert metric(text, "lookup_audit_ingest_queue_capacity") == 50_000
    assert metric(text, "lookup_audit_ingest_queue_size") == 0
    assert metric(text, "messaging_client_operation_duration_seconds_count") == 1
    assert (
        metric(
            text,
            "http_server_request_duration_seconds_count",
            http_route="/v1/lookups",
            http_response_status_code="202",
        )
        == 1
    )


def test_no_metric_carries_an_id_a_path_or_a_scope() -> None:
    event = make_lookup(event_id="evt-secret", tenant="tenant-secret")
    with running() as collector:
        collector.post(encode(event))
        collector.call("GET", "/secret/path")
        collector.call("PROPFIND", "/healthz")
        text = collector.call("GET", "/metrics").body.decode()
    assert "secret" not in text
    assert "PROPFIND" not in text
    assert "otel_scope" not in text
    assert 'http_request_method="_OTHER"' in text


def test_two_collectors_in_one_process_count_for_themselves() -> None:
    with running() as one, running() as two:
        one.post(encode(make_lookup()))
        text = two.call("GET", "/metrics").body.decode()
    assert metric(text, "lookup_audit_ingest_events_total") == 0


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/no-such-page", 404),
        ("POST", "/v1/lookup", 404),
        ("GET", "/v1/lookups", 405),
        ("PUT", "/v1/judgements", 405),
        ("POST", "/healthz", 405),
    ],
)
def test_wrong_calls_are_answered_in_json(method: str, path: str, status: int) -> None:
    with running() as collector:
        answer = collector.call(method, path)
    assert answer.status == status
    assert list(answer.json) == ["error"]
    if status == 405:
        assert answer.headers["allow"] in ("POST", "GET, HEAD", "HEAD, GET")


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/metrics"])
def test_head_is_answered_where_get_is(path: str) -> None:
    with running() as collector:
        answer = collector.call("HEAD", path)
    assert (answer.status, answer.body) == (200, b"")


def test_further_routes_are_served_beside_ours() -> None:
    routes = [Route("/", hello), Mount("/ui", routes=[Route("/page", hello)])]
    with running(extra_routes=routes) as collector:
        assert collector.call("GET", "/").body == b"hello"
        assert collector.call("GET", "/ui/page").body == b"hello"
        assert collector.call("GET", "/healthz").status == 200


def test_a_bug_is_answered_500_in_json_without_its_insides(caplog: Any) -> None:
    with running(extra_routes=[Route("/bug", bug)]) as collector:
        answer = collector.call("GET", "/bug")
        text = collector.call("GET", "/metrics").body.decode()
    assert answer.status == 500
    assert "secret" not in answer.body.decode()
    assert "ZeroDivisionError" in caplog.text
    assert metric(text, "http_server_request_duration_seconds_count", http_route="/bug") == 1
