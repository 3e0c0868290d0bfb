"""A collector that takes everything: it keeps the events and answers as the contract says."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Json = dict[str, Any]


@dataclass
class StubCollector:
    """What arrived, by path; ``answers`` are given first, then every request is accepted."""

    url: str = ""
    received: dict[str, list[Json]] = field(default_factory=dict)
    requests: int = 0
    answers: list[tuple[int, Json, dict[str, str]]] = field(default_factory=list)

    def take(self, path: str) -> list[Json]:
        """The events that were accepted at a path."""
        return self.received.get(path, [])


@contextmanager
def stub_collector() -> Iterator[StubCollector]:
    """Serve a stub on a free loopback port."""
    stub = StubCollector()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            length = int(self.headers["content-length"])
            body = json.loads(self.rfile.read(length))
            events = body if isinstance(body, list) else [body]
            stub.requests += 1
            status, headers = 202, dict[str, str]()
            answer: Json = {"accepted": len(events), "rejected": []}
            if stub.answers:
                status, answer, headers = stub.answers.pop(0)
            if status == 202:
                refused = {r["index"] for r in answer["rejected"]}
                kept = [e for i, e in enumerate(events) if i not in refused]
                stub.received.setdefault(self.path, []).extend(kept)
            raw = json.dumps(answer).encode()
            self.send_response(status)
            for name, value in {**headers, "content-length": str(len(raw))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(raw)

        def log_message(self, format: str, *args: object) -> None:
            del format, args

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    stub.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield stub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
