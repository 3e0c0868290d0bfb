"""A drift alarm to start a test from, and a stub of what takes alerts."""

import json
import threading
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

from lookup_audit.schemas.alarm import DriftAlarm
from lookup_audit.schemas.names import DriftMetric

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)


def make_alarm(**over: Any) -> DriftAlarm:
    values: dict[str, Any] = {
        "alarm_id": "8edd08fc9b3e7b3b",
        "revision": 1,
        "state": "open",
        "metric": DriftMetric.PRECISE,
        "tenant": "acme",
        "service": "kb",
        "mode": "dense",
        "model_version": "m1",
        "quality_basis": "*",
        "direction": "down",
        "started_at": NOW - timedelta(hours=1),
        "detected_at": NOW,
        "reference_rate": 0.6,
        "observed_rate": 0.4,
        "change_points": -20.0,
        "change_low": -24.0,
        "change_high": -16.0,
        "calls": 500,
        "successes": 200,
        "reference_calls": 5000,
        "design_effect": 1.0,
        "summary": "The PRECISE rate fell.",
        "board_url": "http://board/?var-tenant=acme",
    }
    return DriftAlarm(**(values | over))


class Stub:
    """An Alertmanager that answers as it is told, 200 when nothing is left."""

    def __init__(self, answers: list[int]):
        self.answers = answers
        self.bodies: list[list[dict[str, Any]]] = []
        self.headers: list[dict[str, str]] = []
        stub = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:  # noqa: N802  the library's name
                body = self.rfile.read(int(self.headers["Content-Length"]))
                code = stub.answers.pop(0) if stub.answers else 200
                if code == 200:
                    stub.bodies.append(json.loads(body))
                    stub.headers.append(dict(self.headers))
                self.send_response(code)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/api/v2/alerts"
        self._thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        self._thread.join()
