"""Row "emitter": what a call of ``emit`` costs its caller, and what memory an outage costs.

A service of 500 lookups a second of 8 kB; a receiver in a process of its own takes everything, or
nothing at all. Wall time contains what the machine does meanwhile; the thread's CPU time does not.
"""

import gzip
import json
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import islice
from pathlib import Path
from typing import Any

from lookup_audit.collector import LookupEmitter
from tests.bench.load import events
from tests.bench.measure import report, task
from tests.bench.memory import resident_bytes

EVENTS_PER_SECOND = 500
SECONDS = 20
_WARM_UP = 500


class Takes(BaseHTTPRequestHandler):
    """Answers as a collector that accepts everything."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        """Count the lines and accept them."""
        body = self.rfile.read(int(self.headers["content-length"]))
        if self.headers.get("content-encoding") == "gzip":
            body = gzip.decompress(body)
        answer = json.dumps({"accepted": body.count(b"\n") + 1, "rejected": []}).encode()
        self.send_response(202)
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def _receive() -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Takes)
    print(server.server_port, flush=True)
    server.serve_forever()


def main() -> None:
    """Emit at a steady pace and time each call."""
    given = task()
    settings: dict[str, Any] = dict(given.options)
    url = settings.pop("url")
    if settings.pop("spool", False):
        settings["spool_dir"] = Path(given.directory) / "spool"
    emitter = LookupEmitter(url, service="bench", close_seconds=0, **settings)
    wall: list[int] = []
    cpu: list[int] = []
    begin = time.perf_counter()
    resident = resident_bytes()
    for number, raw in enumerate(islice(events(given.events + _WARM_UP), given.events + _WARM_UP)):
        time.sleep(max(0.0, begin + number / EVENTS_PER_SECOND - time.perf_counter()))
        # A service has just made the event when it emits it.
        event = json.loads(raw)
        cpu_before, before = time.thread_time_ns(), time.perf_counter_ns()
        emitter.emit(event)
        after, cpu_after = time.perf_counter_ns(), time.thread_time_ns()
        if number >= _WARM_UP:
            wall.append(after - before)
            cpu.append(cpu_after - cpu_before)
    delivered = emitter.flush(10)
    stats = emitter.stats()
    report(
        {
            "wall": sorted(wall),
            "cpu": sorted(cpu),
            "grown": resident_bytes() - resident,
            "delivered": delivered,
            "dropped": sum(stats.dropped.values()),
        }
    )


if __name__ == "__main__":
    _receive() if sys.argv[1:] == ["receive"] else main()
