"""The product as a user starts it: the installed command, in processes of its own."""

import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

COMMAND = Path(sys.executable).with_name("lookup-audit")


@dataclass
class Up:
    """A running ``lookup-audit up``."""

    process: subprocess.Popen[str]
    data_dir: Path
    url: str
    bootstrap_servers: str

    def stop(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(60)

    def post(self, path: str, body: bytes) -> dict[str, object]:
        request = urllib.request.Request(
            self.url + path, body, {"content-type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=10) as answer:
            return dict(json.load(answer))

    def query(self, sql: str) -> str:
        request = urllib.request.Request(self.url + "/clickhouse", sql.encode())
        with urllib.request.urlopen(request, timeout=10) as answer:
            text: str = answer.read().decode()
            return text.strip()

    def wait_for(self, sql: str, expected: str, seconds: float = 20.0) -> None:
        """Wait until a query answers as expected."""
        deadline = time.monotonic() + seconds
        while (found := self.query(sql)) != expected:
            assert time.monotonic() < deadline, f"{sql} answers {found}, not {expected}"
            time.sleep(0.05)


def clean_environment() -> dict[str, str]:
    return {k: v for k, v in os.environ.items() if not k.startswith("LOOKUP_AUDIT_")}


def run_command(*arguments: object, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(COMMAND), *map(str, arguments)],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=240,
        env=clean_environment(),
        check=False,
    )


def start_up(data_dir: Path, *options: str) -> Up:
    process = subprocess.Popen(
        [str(COMMAND), "up", "--data-dir", str(data_dir), "--port", "0", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=clean_environment(),
    )
    assert process.stdout is not None
    text = ""
    for line in process.stdout:
        text += line
        if "readyz" in line:
            break
    found = re.search(r"send events\s+(http://\S+)/v1/lookups", text)
    broker = re.search(r"by Kafka\s+(\S+)", text)
    assert found, f"the stack did not come up: {text} (exit {process.poll()})"
    assert broker
    return Up(process, data_dir, found[1], broker[1])


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Up]]:
    """Starts stacks that are stopped afterwards."""
    started: list[Up] = []

    def make(data_dir: Path | None = None, *options: str) -> Up:
        started.append(start_up(data_dir or tmp_path / "data", *options))
        return started[-1]

    yield make
    for one in started:
        if one.process.poll() is None:
            one.process.kill()
        one.process.wait(20)
        assert one.process.stdout is not None
        one.process.stdout.close()


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """One stack for the tests of a module."""
    one = start_up(tmp_path_factory.mktemp("stack") / "data")
    yield one
    one.stop()
    assert one.process.stdout is not None
    one.process.stdout.close()
