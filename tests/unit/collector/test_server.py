import asyncio
import socket
import threading
import time

import pytest
from starlette.applications import Starlette

from lookup_audit.collector.app import make_app
from lookup_audit.collector.config import CollectorConfig
from lookup_audit.collector.memory import MemoryPublisher
from lookup_audit.collector.server import CollectorServer, bind
from lookup_audit.schemas.errors import ConfigError, UnavailableError
from tests.support.events import encode, make_lookup
from tests.unit.collector.running import Answer, call, running


def app(publisher: MemoryPublisher | None = None) -> Starlette:
    return make_app(CollectorConfig(), publisher or MemoryPublisher())


def test_port_zero_takes_a_free_port_and_tells_which() -> None:
    with running() as one, running() as two:
        assert one.server.port != two.server.port != 0
        assert one.server.url == f"http://127.0.0.1:{one.server.port}"
        assert call(two.server.port, "GET", "/healthz").status == 200


def test_a_taken_port_is_a_config_error_that_names_it() -> None:
    with running() as first:
        config = CollectorConfig(port=first.server.port)
        with pytest.raises(ConfigError, match=f"port {first.server.port} on 127.0.0.1"):
            CollectorServer(app(), config).start()


def test_an_address_of_another_machine_is_a_config_error() -> None:
    with pytest.raises(ConfigError, match="192.0.2.1"):
        bind("192.0.2.1", 0)
    with pytest.raises(ConfigError, match="no-such-host.invalid"):
        bind("no-such-host.invalid", 0)


def test_a_copied_config_cannot_open_the_port_to_others_without_tokens() -> None:
    config = CollectorConfig(port=0).model_copy(update={"host": "0.0.0.0"})
    with pytest.raises(ConfigError, match="set token_hashes"):
        CollectorServer(app(), config)


def test_ipv6_loopback_is_served() -> None:
    if not socket.has_ipv6:
        pytest.skip("no IPv6 here")
    try:
        bind("::1", 0).close()
    except ConfigError:
        pytest.skip("no IPv6 here")
    with CollectorServer(app(), CollectorConfig(host="::1", port=0)) as server:
        assert server.url == f"http://[::1]:{server.port}"
        with socket.create_connection(("::1", server.port), timeout=5) as sock:
            sock.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            assert sock.recv(20).startswith(b"HTTP/1.1 200")


def test_the_publisher_is_started_with_the_server_and_closed_after_it() -> None:
    publisher = MemoryPublisher()
    with running(publisher):
        assert publisher.started
        assert not publisher.closed
    assert publisher.closed


def test_a_request_in_flight_is_finished_before_the_server_stops() -> None:
    publisher = MemoryPublisher(ack_seconds=0.5)
    answers: list[Answer] = []
    with running(publisher) as collector:
        body = encode(make_lookup())
        thread = threading.Thread(target=lambda: answers.append(collector.post(body)))
        thread.start()
        while not publisher.pending:
            time.sleep(0.01)
    thread.join()
    assert [answer.status for answer in answers] == [202]
    assert len(publisher.records) == 1
    assert publisher.closed


def test_a_stopped_server_refuses_connections_and_can_be_stopped_again() -> None:
    config = CollectorConfig(port=0)
    server = CollectorServer(app(), config)
    server.start()
    port = server.port
    server.stop()
    server.stop()
    assert not server.is_alive
    with pytest.raises(ConnectionRefusedError):
        call(port, "GET", "/healthz")


def test_a_port_can_be_taken_again_at_once() -> None:
    with running() as first:
        first.post(encode(make_lookup()))
        port = first.server.port
    with CollectorServer(app(), CollectorConfig(port=port)):
        assert call(port, "GET", "/healthz").status == 200


def test_an_app_that_does_not_start_is_told(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(MemoryPublisher):
        async def start(self) -> None:
            await asyncio.sleep(0)
            raise OSError("no")

    with pytest.raises(UnavailableError, match="did not start"):
        CollectorServer(app(Broken()), CollectorConfig(port=0)).start()
    assert "OSError: no" in caplog.text


def test_a_server_that_is_not_started_has_no_port() -> None:
    with pytest.raises(RuntimeError, match="not started"):
        _ = CollectorServer(app(), CollectorConfig(port=0)).port
