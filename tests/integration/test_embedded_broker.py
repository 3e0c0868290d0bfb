"""The embedded broker as a process of its own: ports, crashes, parents and signals."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lookup_audit.deploy.embedded.broker import EmbeddedBroker
from lookup_audit.deploy.topics import cluster_id
from lookup_audit.schemas.errors import ConfigError, UnavailableError
from tests.support.brokers import (
    EmbeddedBrokerUnderTest,
    wait_until,
)

pytest_plugins = ["tests.support.broker_fixtures"]

WAIT_SECONDS = 40.0
# Half of the session timeout is what the embedded broker lets a group wait.
GROUP = {"session_timeout_ms": 6000, "heartbeat_interval_ms": 1000, "enable_auto_commit": False}


def test_embedded_broker_starts_as_a_new_cluster_on_the_same_port(tmp_path: Path) -> None:
    broker = EmbeddedBroker(tmp_path)
    with broker:
        bootstrap, first = broker.bootstrap, broker.cluster_id
        assert cluster_id(bootstrap) == first
        assert (broker.resident_bytes() or 1) > 0
    assert not broker.is_alive
    with broker:
        assert broker.bootstrap == bootstrap
        assert cluster_id(bootstrap) == broker.cluster_id != first


def test_embedded_broker_notices_its_crash(tmp_path: Path) -> None:
    with EmbeddedBrokerUnderTest(tmp_path) as broker:
        broker.kill()
        assert not broker.is_alive
        broker.start()
        assert broker.is_alive


def test_embedded_broker_names_the_port_that_is_taken(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(ConfigError, match=rf"cannot use port {port} on 127\.0\.0\.1"):
            EmbeddedBroker(tmp_path, port=port).start()


def test_embedded_broker_that_cannot_start_shows_its_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    impostor = tmp_path / "impostor"
    impostor.write_text("#!/bin/sh\necho no such storage\nexit 3\n")
    impostor.chmod(0o755)
    monkeypatch.setenv("CALF_TANSU_BIN", str(impostor))

    broker = EmbeddedBroker(tmp_path)
    with pytest.raises(UnavailableError, match=r"ended while starting(?s:.*)no such storage"):
        broker.start()
    assert not broker.is_alive


def test_embedded_broker_listens_on_loopback_only(
    embedded_broker: EmbeddedBrokerUnderTest,
) -> None:
    port = int(embedded_broker.bootstrap.partition(":")[2])
    with pytest.raises(OSError, match=r"."):
        socket.create_connection(("127.0.0.2", port), timeout=1.0)


PARENT = """
import sys, time
from pathlib import Path
from lookup_audit.deploy.embedded.broker import EmbeddedBroker
broker = EmbeddedBroker(Path(sys.argv[1]))
broker.start()
try:
    print(broker.bootstrap, flush=True)
    time.sleep(60)
except KeyboardInterrupt:
    time.sleep(0.5)
    print(broker.is_alive, flush=True)
    broker.stop()
    print(broker.is_alive, flush=True)
"""


@contextmanager
def broker_in_another_process(directory: Path) -> Iterator[tuple[subprocess.Popen[str], int]]:
    (directory / "home").mkdir()
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(sys.path),
        "HOME": str(directory / "home"),
    }
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, str(directory / "data")],
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
        start_new_session=True,
    )
    with parent:
        try:
            assert parent.stdout is not None
            port = int(parent.stdout.readline().partition(":")[2])
            yield parent, port
        finally:
            parent.kill()


def is_served(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1.0):
            return True
    except OSError:
        return False


def test_embedded_broker_dies_with_its_parent(tmp_path: Path) -> None:
    with broker_in_another_process(tmp_path) as (parent, port):
        assert is_served(port)
        os.kill(parent.pid, signal.SIGKILL)
        wait_until(lambda: not is_served(port), "the end of the orphan")
    wait_until(lambda: not (tmp_path / "data" / "broker.pid").exists(), "the end of its supervisor")


def test_embedded_broker_outlives_the_terminals_interrupt_until_it_is_stopped(
    tmp_path: Path,
) -> None:
    with broker_in_another_process(tmp_path) as (parent, port):
        os.killpg(parent.pid, signal.SIGINT)
        printed, _ = parent.communicate(timeout=WAIT_SECONDS)
        assert printed.split() == ["True", "False"]
        assert not is_served(port)


def test_embedded_broker_leaves_the_home_directory_alone(tmp_path: Path) -> None:
    with broker_in_another_process(tmp_path):
        assert list((tmp_path / "home").iterdir()) == []
