"""Row "memory": resident memory of a processor under steady load.

Once with a store that takes everything and keeps nothing, which is the processor alone, and once
with the embedded engine in the same process, whose caches and merges come on top.
"""

import os
import threading
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
from kafka import KafkaProducer

from lookup_audit.collector.envelope import Arrival
from lookup_audit.processors.migrate import migrate
from lookup_audit.processors.store import Rows, open_store
from tests.bench import ours
from tests.bench.load import events, send
from tests.bench.measure import Task, report, run_child, task

EVENTS_PER_SECOND = 1_000
SECONDS = 60
_STEP = 50
_SETTLE_SECONDS = 5.0


class Discard:
    """A store that knows no id and keeps nothing."""

    parameter_bytes = 60_000

    def insert(self, table: str, batch: pa.Table, *, token: str) -> None:
        """Take a batch."""

    def query(self, sql: str, parameters: Mapping[str, Any] | None = None) -> Rows:
        """Find nothing."""
        return Rows((), ())

    def command(self, sql: str, parameters: Mapping[str, Any] | None = None) -> None:
        """Do nothing."""

    def raw(
        self, sql: str, *, output_format: str, parameters: Mapping[str, Any] | None = None
    ) -> bytes:
        """Find nothing."""
        return b""

    def sole_writer(self) -> AbstractContextManager[bool]:
        """Nobody else writes either."""
        return nullcontext(True)

    def close(self) -> None:
        """Nothing is open."""


def measure(directory: Path, bootstrap: str, *, with_engine: bool, seconds: int) -> list[int]:
    """Resident bytes after each quarter of the load."""
    options = {"with_engine": with_engine, "seconds": seconds}
    given = Task(str(directory), bootstrap, seconds * EVENTS_PER_SECOND, options)
    sender = threading.Thread(target=_send, args=(bootstrap, seconds), daemon=True)
    sender.start()
    found: list[int] = run_child("memory", given)["resident"]
    sender.join()
    return found


def _send(bootstrap: str, seconds: int) -> None:
    producer = KafkaProducer(
        bootstrap_servers=bootstrap, compression_type="lz4", linger_ms=5, batch_size=256 * 1024
    )
    arrival = Arrival(datetime.now(UTC))
    values = events(seconds * EVENTS_PER_SECOND)
    begin = time.perf_counter() + _SETTLE_SECONDS
    number = 0
    while chunk := list(islice(values, _STEP)):
        time.sleep(max(0.0, begin + number / EVENTS_PER_SECOND - time.perf_counter()))
        for raw in chunk:
            send(producer, raw, arrival)
        number += len(chunk)
    producer.close()


def resident_bytes() -> int:
    """Memory of this process now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def main() -> None:
    """Run a processor and sample."""
    given = task()
    store: Any = Discard()
    if given.options["with_engine"]:
        store = open_store(f"embedded:{given.engine}")
        migrate(store)
    thread = threading.Thread(target=ours.make(given, store), daemon=True)
    thread.start()
    time.sleep(_SETTLE_SECONDS)
    resident = []
    for _ in range(4):
        time.sleep(given.options["seconds"] / 4)
        if not thread.is_alive():
            raise RuntimeError("the processor ended")
        resident.append(resident_bytes())
    report({"resident": resident})


if __name__ == "__main__":
    main()
