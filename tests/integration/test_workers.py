"""``lookup-audit process --workers``: killed workers, a killed owner, and a clean end."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from lookup_audit.deploy.wiring import make_topics
from lookup_audit.deploy.workers import Workers, WorkerTask
from lookup_audit.processors.kafka_source import KafkaConfig
from lookup_audit.processors.processor import ProcessorConfig
from lookup_audit.schemas.errors import UnavailableError
from lookup_audit.schemas.names import Topic
from tests.support.brokers import RunningBroker
from tests.support.events import encode, make_lookup
from tests.support.outside import publish, read_engine, wait_until_committed

pytest_plugins = ["tests.support.broker_fixtures"]
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="workers share files in memory")

COMMAND = str(Path(sys.executable).with_name("lookup-audit"))


def start(broker: RunningBroker, store: str, group: str, log: Path) -> subprocess.Popen[bytes]:
    with log.open("wb") as file:
        return subprocess.Popen(
            [COMMAND, "process", "--bootstrap", broker.bootstrap, "--store", store]
            + ["--group", group, "--workers", "2"],
            stderr=file,
        )


def workers_of(owner: int) -> list[int]:
    children = Path(f"/proc/{owner}/task/{owner}/children")
    # Whatever thread started them, the kernel lists them under it.
    found = [path.read_text().split() for path in children.parents[1].glob("*/children")]
    return [int(pid) for pids in found for pid in pids]


def is_running(pid: int) -> bool:
    stat = Path(f"/proc/{pid}/stat")
    return stat.exists() and stat.read_text().rpartition(")")[2].split()[0] != "Z"


def wait_for(condition: Callable[[], bool], log: Path, seconds: float = 90.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.1)


def lookups(ids: list[str]) -> list[bytes]:
    return [encode(make_lookup(event_id=event_id, tenant="w")) for event_id in ids]


def test_workers_that_are_killed_lose_and_double_nothing(
    embedded_broker: RunningBroker, tmp_path: Path
) -> None:
    make_topics(embedded_broker.bootstrap)
    directory, log = tmp_path / "engine", tmp_path / "log"
    store = f"embedded:{directory}"
    subprocess.run([COMMAND, "migrate", "--store", store], check=True, capture_output=True)
    ids = [f"worker-{number}" for number in range(3_000)]
    publish(embedded_broker.bootstrap, Topic.RESULTS, lookups(ids[:1_500]))
    owner = start(embedded_broker, store, "killed-workers", log)
    try:
        wait_for(lambda: log.read_text().count("Reading lookup.") >= 2, log)
        time.sleep(0.3)
        os.kill(workers_of(owner.pid)[0], signal.SIGKILL)
        wait_for(lambda: "started again" in log.read_text(), log)
        publish(embedded_broker.bootstrap, Topic.RESULTS, lookups(ids[1_500:]))
        wait_until_committed(embedded_broker.bootstrap, "killed-workers", log.read_text)
        assert len(workers_of(owner.pid)) == 2
        owner.terminate()
        assert owner.wait(60) == 0, log.read_text()
    finally:
        owner.kill()
        owner.wait()
    stored, seen, repeated = read_engine(
        directory,
        [
            "SELECT count(), uniqExact(event_id) FROM audit_store.lookups WHERE tenant = 'w'",
            "SELECT count(), uniqExact(event_id) FROM audit.lookups WHERE tenant = 'w'",
            "SELECT count() FROM audit.duplicates WHERE tenant = 'w'",
        ],
    )
    assert stored == seen == [3_000, 3_000]
    assert repeated == [0]


def test_workers_end_with_their_owner_however_it_ends(
    embedded_broker: RunningBroker, tmp_path: Path
) -> None:
    make_topics(embedded_broker.bootstrap)
    directory, log = tmp_path / "engine", tmp_path / "log"
    store = f"embedded:{directory}"
    subprocess.run([COMMAND, "migrate", "--store", store], check=True, capture_output=True)
    owner = start(embedded_broker, store, "killed-owner", log)
    wait_for(lambda: log.read_text().count("Processor started.") == 2, log)
    workers = workers_of(owner.pid)
    assert len(workers) == 2
    owner.kill()
    owner.wait()
    wait_for(lambda: not any(map(is_running, workers)), log, seconds=5.0)


@pytest.mark.parametrize("text", ["-1", "two", "65", "²", ""])
def test_a_number_of_workers_that_is_none_is_refused(text: str) -> None:
    done = subprocess.run([COMMAND, "process", "--workers", text], capture_output=True, text=True)
    assert done.returncode == 2
    assert "0 to 64" in done.stderr


def test_workers_that_cannot_start_are_given_up_with_a_reason(
    capfd: pytest.CaptureFixture[str],
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        task = WorkerTask(
            kafka=KafkaConfig(),
            processor=ProcessorConfig(workers=1),
            store="http://127.0.0.1:1",
            metrics_port=taken.getsockname()[1],
        )
        with pytest.raises(UnavailableError, match="worker 0 ended 3 times"):
            Workers(task).run()
    assert "Address already in use" in capfd.readouterr().err
