"""What protects the collector: sizes, encodings, types, slow callers, back-pressure, outages."""

import asyncio
import gzip
import socket
import threading
import time
import tracemalloc
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from backports import zstd
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import Message

from lookup_audit.collector.body import read_body
from lookup_audit.collector.memory import MemoryPublisher
from tests.support.events import encode, make_lookup
from tests.unit.collector.running import Answer, Running, running

EVENT = encode(make_lookup())
COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "x-gzip": gzip.compress,
    "deflate": zlib.compress,
    "zstd": zstd.compress,
    "identity": bytes,
    "GZip": gzip.compress,
}


def bomb(size: int) -> bytes:
    packer = zlib.compressobj(wbits=16 + zlib.MAX_WBITS)
    block = bytes(1024 * 1024)
    return b"".join(packer.compress(block) for _ in range(size >> 20)) + packer.flush()


@pytest.mark.parametrize("coding", COMPRESS)
def test_every_promised_encoding_is_read(coding: str) -> None:
    with running() as collector:
        answer = collector.post(COMPRESS[coding](EVENT), headers={"Content-Encoding": coding})
    assert answer.status == 202
    assert collector.values == [EVENT]


@pytest.mark.parametrize("coding", ["br", "gzip, gzip", "compress"])
def test_an_unknown_encoding_is_answered_415_with_what_is_taken(coding: str) -> None:
    with running() as collector:
        answer = collector.post(EVENT, headers={"Content-Encoding": coding})
    assert answer.status == 415
    assert answer.headers["accept-encoding"] == "deflate, gzip, x-gzip, zstd"
    assert "gzip" in answer.json["error"]


@pytest.mark.parametrize("coding", ["gzip", "deflate", "zstd"])
@pytest.mark.parametrize("body", [EVENT, b"\x1f\x8b", b"\xff" * 100])
def test_a_corrupt_encoding_is_answered_400(coding: str, body: bytes) -> None:
    with running() as collector:
        answer = collector.post(body, headers={"Content-Encoding": coding})
    assert answer.status == 400
    assert coding in answer.json["error"]


@pytest.mark.parametrize(
    "content_type",
    [
        None,
        "",
        "application/json",
        "Application/JSON; charset=utf-8",
        "application/x-ndjson",
        "application/ndjson;charset=UTF-8",
        "text/json",
    ],
)
def test_json_types_and_no_type_are_taken(content_type: str | None) -> None:
    headers = {} if content_type is None else {"Content-Type": content_type}
    with running() as collector:
        assert collector.call("POST", "/v1/lookups", EVENT, headers).status == 202


@pytest.mark.parametrize(
    "content_type",
    ["text/plain", "application/x-protobuf", "application/x-www-form-urlencoded", "json", ";"],
)
def test_another_type_is_answered_415_with_the_type_to_send(content_type: str) -> None:
    with running() as collector:
        answer = collector.post(EVENT, headers={"Content-Type": content_type})
    assert answer.status == 415
    assert "Content-Type: application/json" in answer.json["error"]


def test_a_body_that_says_it_is_too_large_is_refused_unread() -> None:
    head = b"POST /v1/lookups HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2001\r\n\r\n"
    with (
        running(max_body_bytes=2000, max_event_bytes=2000) as collector,
        socket.create_connection(("127.0.0.1", collector.server.port), timeout=10) as sock,
    ):
        sock.sendall(head)
        assert sock.recv(100).startswith(b"HTTP/1.1 413 ")


def test_a_streamed_body_is_refused_as_soon_as_it_is_too_large() -> None:
    def chunks() -> Iterator[bytes]:
        for _ in range(50):
            yield b" " * 1000

    with running(max_body_bytes=20_000, max_event_bytes=20_000) as collector:
        answer = collector.post(chunks())
    assert answer.status == 413
    assert "larger than 20000 bytes" in answer.json["error"]


def test_a_body_that_grows_too_large_by_inflating_is_answered_413() -> None:
    with running(max_body_bytes=1024 * 1024) as collector:
        for coding in ("gzip", "deflate", "zstd"):
            body = COMPRESS[coding](b" " * (1024 * 1024 + 1))
            answer = collector.post(body, headers={"Content-Encoding": coding})
            assert answer.status == 413


@pytest.mark.parametrize("coding", ["gzip", "zstd"])
def test_a_bomb_of_200_mb_costs_less_than_100_mb_of_memory(coding: str) -> None:
    body = bomb(200 << 20) if coding == "gzip" else zstd.compress(bytes(200 << 20))
    assert len(body) < 1 << 20

    async def receive() -> Message:
        return {"type": "http.request", "body": body, "more_body": False}

    request = Request(
        {"type": "http", "headers": [(b"content-encoding", coding.encode())]}, receive
    )
    tracemalloc.start()
    try:
        with pytest.raises(HTTPException) as caught:
            asyncio.run(read_body(request, max_bytes=64 << 20, timeout_seconds=30))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert caught.value.status_code == 413
    assert peak < 100 << 20


def test_a_slow_caller_is_answered_408_and_others_are_served_meanwhile() -> None:
    with running(body_timeout_seconds=0.5) as collector:
        with socket.create_connection(("127.0.0.1", collector.server.port), timeout=10) as slow:
            slow.sendall(
                b"POST /v1/lookups HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n"
                b"Content-Type: application/json\r\n\r\n{"
            )
            started = time.monotonic()
            assert collector.post(EVENT).status == 202
            assert time.monotonic() - started < 0.4
            answer = b"".join(iter(lambda: slow.recv(4096), b""))
        assert answer.startswith(b"HTTP/1.1 408 ")
        assert b"connection: close" in answer.lower()


def test_a_caller_that_sends_byte_by_byte_in_time_is_served() -> None:
    with running() as collector:
        answer = collector.post(EVENT[i : i + 1] for i in range(len(EVENT)))
    assert (answer.status, collector.values) == (202, [EVENT])


def test_a_caller_that_goes_away_in_the_middle_does_no_harm() -> None:
    with running() as collector:
        for _ in range(5):
            with socket.create_connection(("127.0.0.1", collector.server.port)) as sock:
                sock.sendall(
                    b"POST /v1/lookups HTTP/1.1\r\nHost: [::1]\r\nContent-Length: 9\r\n\r\n{"
                )
        assert collector.post(EVENT).status == 202
    assert collector.values == [EVENT]


def at_once(collector: Running, count: int, body: bytes = EVENT) -> list[Answer]:
    answers: list[Answer] = []
    threads = [
        threading.Thread(target=lambda: answers.append(collector.post(body))) for _ in range(count)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers


def test_too_many_unconfirmed_events_are_answered_429_with_retry_after() -> None:
    publisher = MemoryPublisher(ack_seconds=0.5, max_in_flight_events=3)
    with running(publisher) as collector:
        answers = at_once(collector, 6)
        assert collector.post(EVENT).status == 202
    assert sorted(answer.status for answer in answers) == [202] * 3 + [429] * 3
    refused = next(answer for answer in answers if answer.status == 429)
    assert refused.headers["retry-after"] == "1"
    assert "in flight" in refused.json["error"]


def test_too_many_bytes_in_flight_are_answered_429_and_given_back() -> None:
    publisher = MemoryPublisher(ack_seconds=0.5)
    size = len(EVENT) + 100
    limits: dict[str, Any] = {
        "max_body_bytes": size,
        "max_event_bytes": size,
        "max_in_flight_bytes": 2 * size,
    }
    with running(publisher, **limits) as collector:
        answers = at_once(collector, 4)
        assert collector.post(EVENT).status == 202
    assert sorted(answer.status for answer in answers) == [202, 202, 429, 429]


def test_an_outage_is_answered_503_with_retry_after_and_ends_by_itself() -> None:
    publisher = MemoryPublisher()
    with running(publisher) as collector:
        publisher.available = False
        answer = collector.post(EVENT)
        assert (answer.status, answer.headers["retry-after"]) == (503, "1")
        assert "error" in answer.json
        assert collector.post(encode(make_lookup(mode=None))).status == 422
        publisher.available = True
        assert collector.post(EVENT).status == 202
    assert collector.values == [EVENT]
