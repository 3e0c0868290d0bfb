"""One measured run in a process of its own, since the engine belongs to one process.

The parent calls :func:`run_child`; the child's module calls :func:`report` with what it measured.
"""

import json
import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from lookup_audit.deploy.embedded.read_only import ReadOnlyEngine

_POLL_SECONDS = 0.02
_RESULT = "RESULT "


@dataclass(frozen=True, slots=True)
class Task:
    """What a child is asked to do.

    Args:
        directory: A fresh directory.
        bootstrap: Broker whose topic holds the events, where the row reads from one.
        events: How many there are.
        options: What only this row knows.
    """

    directory: str
    bootstrap: str = ""
    events: int = 0
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def engine(self) -> str:
        """Directory of the engine."""
        return str(Path(self.directory) / "engine")

    @property
    def group(self) -> str:
        """A consumer group that nobody used before."""
        return f"bench-{Path(self.directory).name}"


def run_child(module: str, task: Task) -> dict[str, Any]:
    """Run a module of this package on a task; returns what it reported.

    Raises:
        RuntimeError: It ended without a result; the message ends with its output.
    """
    command = [sys.executable, "-m", f"{__package__}.{module}", json.dumps(asdict(task))]
    done = subprocess.run(command, capture_output=True, text=True)
    for line in done.stdout.splitlines():
        if line.startswith(_RESULT):
            found: dict[str, Any] = json.loads(line.removeprefix(_RESULT))
            return found
    raise RuntimeError(f"{module} ended with {done.returncode}:\n{done.stderr[-4000:]}")


def task() -> Task:
    """The child's task."""
    return Task(**json.loads(sys.argv[1]))


def report(result: Mapping[str, Any]) -> None:
    """Hand the result to the parent and end at once: nothing after it is of interest."""
    print(f"{_RESULT}{json.dumps(result)}", flush=True)
    os._exit(0)


class Start(logging.Handler):
    """The moment a library logs that partitions were assigned: what precedes the first poll.

    A consumer group takes seconds to settle on the embedded broker, which says nothing of a peer.

    Args:
        logger: Name of the logger.
        prefix: How the message begins.
    """

    def __init__(self, logger: str, prefix: str):
        super().__init__(logging.DEBUG)
        self._prefix = prefix
        self._children: Callable[[], list[int]] = list
        self.seconds: float | None = None
        self.cpu_seconds = 0.0
        source = logging.getLogger(logger)
        source.setLevel(logging.DEBUG)
        source.addHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        """Note the first."""
        if self.seconds is None and record.getMessage().startswith(self._prefix):
            self.now()

    def listen_to(self, children: Callable[[], list[int]]) -> None:
        """Start at the same words on standard error, which child processes share; count them in."""
        self._children = children
        reading, writing = os.pipe()
        before = os.dup(2)
        os.dup2(writing, 2)

        def listen() -> None:
            with open(reading, encoding="utf-8", errors="replace") as lines:
                for line in lines:
                    if self.seconds is None and self._prefix in line:
                        self.now()
                    os.write(before, line.encode())

        threading.Thread(target=listen, daemon=True).start()

    def now(self) -> None:
        """Start here."""
        self.cpu_seconds = self._cpu_seconds()
        self.seconds = time.perf_counter()

    def _cpu_seconds(self) -> float:
        return time.process_time() + sum(map(cpu_seconds_of, self._children()))

    def stop(self) -> dict[str, float]:
        """Wall and CPU seconds since then."""
        assert self.seconds is not None, "no partition was ever assigned"
        return {
            "seconds": time.perf_counter() - self.seconds,
            "cpu_seconds": self._cpu_seconds() - self.cpu_seconds,
        }


def cpu_seconds_of(pid: int) -> float:
    """User and system time of another process so far (Linux)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def wait_for_rows(engine: str, table: str, rows: int, is_alive: Callable[[], bool]) -> None:
    """Return when a query sees that many rows.

    Raises:
        RuntimeError: The side under measurement died, or stores more than it was given.
    """
    reader = ReadOnlyEngine(engine, connections=1)
    while True:
        seen = int(reader.query(f"SELECT count() FROM {table}")[0])
        if seen == rows:
            break
        if seen > rows or not is_alive():
            raise RuntimeError(f"{seen} of {rows} rows in {table}")
        time.sleep(_POLL_SECONDS)
    reader.close()
