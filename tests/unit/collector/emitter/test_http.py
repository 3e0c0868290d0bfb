import json
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from lookup_audit.collector.auth import hash_token, make_token
from lookup_audit.collector.emitter.http import HttpTransport, read_answer, read_retry_after
from lookup_audit.collector.emitter.transport import Answer, Delivered, TryAgain, TryInParts
from lookup_audit.schemas.names import EventType, Topic
from tests.support.events import encode, make_judgement, make_lookup, make_outcome
from tests.unit.collector.running import running


@contextmanager
def transport_to(url: str, token: str | None = None) -> Iterator[HttpTransport]:
    transport = HttpTransport(url, token=token, timeout_seconds=10)
    try:
        yield transport
    finally:
        transport.close()


def test_batches_of_every_kind_arrive_byte_for_byte() -> None:
    lookups = [encode(make_lookup()) for _ in range(3)]
    outcomes, judgements = [encode(make_outcome())], [encode(make_judgement())]
    with running() as collector, transport_to(collector.server.url) as transport:
        answers = [
            transport.send(EventType.LOOKUP, lookups),
            transport.send(EventType.OUTCOME, outcomes),
            transport.send(EventType.JUDGEMENT, judgements),
        ]
        assert answers == [Delivered()] * 3
        assert collector.values == [*lookups, *outcomes, *judgements]
        topics = [record.topic for record in collector.records]
        assert topics == [Topic.RESULTS] * 3 + [Topic.OUTCOMES] * 2


def test_refused_events_are_told_by_reason_and_their_neighbours_arrive() -> None:
    values = [encode(make_lookup()), encode(make_lookup(mode="fuzzy")), encode({"a": 1})]
    with running() as collector, transport_to(collector.server.url) as transport:
        answer = transport.send(EventType.LOOKUP, values)
        assert answer == Delivered(Counter({"invalid_value": 1, "missing_field": 1}))
        assert collector.values == values[:1]


def test_a_batch_of_nothing_but_nan_is_refused_event_by_event() -> None:
    values = [encode(make_lookup(quality_score=float("nan"))) for _ in range(2)]
    with running() as collector, transport_to(collector.server.url) as transport:
        answer = transport.send(EventType.LOOKUP, values)
        assert answer == Delivered(Counter({"non_finite": 2}))


def test_a_token_opens_the_door_and_a_wrong_one_is_tried_again_later() -> None:
    token = make_token()
    with running(token_hashes=(hash_token(token),)) as collector:
        with transport_to(collector.server.url, token) as transport:
            assert transport.send(EventType.LOOKUP, [encode(make_lookup())]) == Delivered()
        with transport_to(collector.server.url, "wrong") as transport:
            answer = transport.send(EventType.LOOKUP, [encode(make_lookup())])
            assert answer == TryAgain("the collector answers 401")


def test_a_broker_outage_asks_for_patience() -> None:
    with running() as collector, transport_to(collector.server.url) as transport:
        collector.publisher.available = False
        answer = transport.send(EventType.LOOKUP, [encode(make_lookup())])
        assert answer == TryAgain("the collector answers 503", 1.0)


def test_too_large_a_batch_is_sent_in_parts() -> None:
    with (
        running(max_body_bytes=4096, max_event_bytes=4096) as collector,
        transport_to(collector.server.url) as transport,
    ):
        values = [encode(make_lookup()) for _ in range(8)]
        assert transport.send(EventType.LOOKUP, values) == TryInParts("too_large")


def test_nobody_there_is_no_exception() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with transport_to(f"http://127.0.0.1:{port}") as transport:
        answer = transport.send(EventType.LOOKUP, [b"{}"])
    assert isinstance(answer, TryAgain)
    assert "refused" in answer.why


def test_a_kept_connection_that_was_closed_is_made_anew_at_once() -> None:
    class Once(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            body = b'{"accepted": 1, "rejected": []}'
            self.send_response(202)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
            # Without saying so: what an idle time-out looks like.
            self.close_connection = True

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Once)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        with transport_to(f"http://127.0.0.1:{server.server_port}") as transport:
            for _ in range(3):
                assert transport.send(EventType.LOOKUP, [b"{}"]) == Delivered()
                time.sleep(0.05)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.mark.parametrize(
    ("status", "body", "answer"),
    [
        pytest.param(202, b"<html>", TryAgain("the answer is not a collector's"), id="proxy"),
        pytest.param(
            202,
            b'{"accepted": 1, "rejected": []}',
            TryAgain("the answer is not a collector's"),
            id="wrong-count",
        ),
        pytest.param(400, b"", TryInParts("http_400"), id="400"),
        pytest.param(302, b"", TryAgain("the collector answers 302"), id="redirect"),
        pytest.param(404, b"", TryAgain("the collector answers 404"), id="404"),
        pytest.param(500, b"", TryAgain("the collector answers 500"), id="500"),
    ],
)
def test_an_answer_that_proves_nothing_loses_nothing(
    status: int, body: bytes, answer: Answer
) -> None:
    assert read_answer(status, body, None, 2) == answer


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        pytest.param("7", 7.0, id="seconds"),
        pytest.param("86400", 300.0, id="a-day-is-too-long"),
        pytest.param("Mon, 30 Nov 2026 12:00:10 GMT", 10.0, id="date"),
        pytest.param("Mon, 30 Nov 2026 11:00:00 GMT", 0.0, id="past"),
        pytest.param("soon", None, id="nonsense"),
        pytest.param(None, None, id="none"),
    ],
)
def test_retry_after_is_a_number_or_a_date(header: str | None, seconds: float | None) -> None:
    noon = 1796040000.0
    assert read_retry_after(header, now=noon) == seconds


def test_the_body_of_an_error_is_no_secret_keeper() -> None:
    answer = read_answer(401, json.dumps({"error": "la_secret"}).encode(), None, 1)
    assert "la_secret" not in repr(answer)
