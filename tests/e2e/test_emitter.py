"""The emitter in a service's process, a collector that is killed, and what the audit sees of it."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lookup_audit.collector import LookupEmitter
from tests.e2e.conftest import COMMAND, Up, clean_environment
from tests.support.events import make_lookup
from tests.unit.collector.running import call

ROOT = Path(__file__).parents[2]


class Collector:
    """``lookup-audit collect`` on one port, killed and started again."""

    def __init__(self, bootstrap: str):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            self.port = int(taken.getsockname()[1])
        self._bootstrap = bootstrap
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        self._process = subprocess.Popen(
            [COMMAND, "collect", "--bootstrap", self._bootstrap, "--port", str(self.port)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=clean_environment(),
        )
        deadline = time.monotonic() + 60
        while not self._is_ready():
            assert time.monotonic() < deadline
            time.sleep(0.05)

    def _is_ready(self) -> bool:
        try:
            return call(self.port, "GET", "/readyz").status == 200
        except OSError:
            return False

    def kill(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.send_signal(signal.SIGKILL)
            process.wait(20)


@pytest.fixture
def collector(start: Callable[..., Up]) -> Iterator[tuple[Up, Collector]]:
    up = start()
    collector = Collector(up.bootstrap_servers)
    collector.start()
    yield up, collector
    collector.kill()


def serve(collector: Collector, spool: Path, *arguments: object) -> "subprocess.Popen[str]":
    path = filter(None, [os.environ.get("PYTHONPATH")])
    return subprocess.Popen(
        [
            *(sys.executable, "-m", "tests.support.emitting_service"),
            *(collector.url, str(spool), *map(str, arguments)),
        ],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**clean_environment(), "PYTHONPATH": os.pathsep.join([str(ROOT), *path])},
    )


def account(tenant: str) -> str:
    """Stored lookups, different ones, processes, and processes with a hole in their numbers."""
    return (
        "SELECT sum(n), sum(u), count(), countIf(low != 1 OR high != n) FROM ("
        "SELECT JSONExtractString(raw, 'service', 'instance_id') AS instance, count() AS n, "
        "uniqExact(event_id) AS u, "
        "min(JSONExtractUInt(raw, 'service', 'sequence')) AS low, "
        "max(JSONExtractUInt(raw, 'service', 'sequence')) AS high "
        f"FROM lookups WHERE tenant = '{tenant}' GROUP BY instance)"
    )


def test_a_collector_killed_and_a_service_forked_lose_and_double_nothing(
    collector: tuple[Up, Collector], tmp_path: Path
) -> None:
    up, receiver = collector
    with serve(receiver, tmp_path / "spool", "fork", 200, "fork") as service:
        for _ in range(2):
            time.sleep(0.7)
            receiver.kill()
            time.sleep(0.5)
            receiver.start()
        assert service.wait(90) == 0
    up.wait_for(account("fork"), "600\t600\t2\t0", seconds=60)


def test_what_was_on_disk_when_the_service_was_killed_arrives_after_its_restart(
    collector: tuple[Up, Collector], tmp_path: Path
) -> None:
    up, receiver = collector
    spool = tmp_path / "spool"
    receiver.kill()
    with serve(receiver, spool, "spool", 150, "hang") as service:
        assert service.stdout is not None
        assert service.stdout.readline() == "spooled\n"
        service.kill()
    receiver.start()
    with serve(receiver, spool, "spool", 50) as service:
        assert service.wait(90) == 0
    up.wait_for(account("spool"), "200\t200\t2\t0", seconds=60)
    assert list(spool.rglob("*.spool")) == []


def test_what_redaction_takes_out_is_in_no_column_and_the_level_still_passes(
    start: Callable[..., Up], tmp_path: Path
) -> None:
    rules = tmp_path / "redaction.json"
    fields = {"query.text": "hash", "candidates.*.excerpt": "drop"}
    rules.write_text(json.dumps({"key": "k" * 32, "fields": fields}))
    up = start(None, "--redaction", str(rules))
    with LookupEmitter(up.url) as emitter:
        emitter.emit(make_lookup(tenant="redacted", further="write to jane.doe@mail.example"))
    up.wait_for(
        "SELECT level_check, startsWith(query_text, 'hmac:'), "
        "has(degradations, 'redacted:query.text'), JSONExtractString(raw, 'further'), "
        "position(raw, 'thirty seconds') FROM lookups WHERE tenant = 'redacted'",
        "pass\t1\t1\twrite to [email]\t0",
    )
