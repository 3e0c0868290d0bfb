"""A stand-in for Grafana 13's HTTP API, as far as publishing uses it and as it is documented.

What is put is what is got, with the fields that Grafana adds of its own. ``failures`` are answered
first, in order: each is a status, a body and headers.
"""

import json
import re
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self
from urllib.parse import unquote

TOKEN = "glsa_0123456789abcdef0123456789abcdef_01234567"

Failure = tuple[int, bytes, dict[str, str]]


@dataclass
class Call:
    """One request."""

    method: str
    path: str
    body: Any
    headers: dict[str, str]


@dataclass
class GrafanaStub:
    """Use as a context manager; ``url`` is its address, served under a path as behind a proxy."""

    folders: dict[str, dict[str, Any]] = field(default_factory=dict)
    dashboards: dict[str, dict[str, Any]] = field(default_factory=dict)
    groups: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    sources: set[str] = field(default_factory=lambda: {"la-clickhouse"})
    failures: list[Failure] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)

    def __enter__(self) -> Self:
        stub = self

        class Handler(BaseHTTPRequestHandler):
            def _serve(self) -> None:
                stub._serve(self)

            do_GET = do_POST = do_PUT = do_DELETE = _serve

            def log_message(self, format: str, *args: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.01,), daemon=True
        )
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_port}/grafana"
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def changes(self) -> list[str]:
        """Requests that are no reading, as ``METHOD path``."""
        return [f"{call.method} {call.path}" for call in self.calls if call.method != "GET"]

    def _serve(self, handler: BaseHTTPRequestHandler) -> None:
        length = int(handler.headers.get("Content-Length", "0"))
        text = handler.rfile.read(length)
        body = json.loads(text) if text else None
        headers = {name.lower(): value for name, value in handler.headers.items()}
        path = handler.path.removeprefix("/grafana/api")
        self.calls.append(Call(handler.command, path, body, headers))
        extra: dict[str, str] = {}
        if self.failures:
            status, data, extra = self.failures.pop(0)
        elif headers.get("authorization") != f"Bearer {TOKEN}":
            status, data = _json(401, {"message": "Invalid API key"})
        else:
            status, data = self._answer(handler.command, path, body, headers)
        handler.send_response(status)
        for name, value in extra.items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(data)))
        handler.end_headers()
        handler.wfile.write(data)

    def _answer(
        self, method: str, path: str, body: Any, headers: dict[str, str]
    ) -> tuple[int, bytes]:
        if path == "/health":
            return _json(200, {"database": "ok", "version": "13.2.3"})
        if match := re.fullmatch(r"/folders/(.+)", path):
            return _found(self.folders.get(unquote(match[1])), "folder not found")
        if (method, path) == ("POST", "/folders"):
            if body["uid"] in self.folders:
                return _json(412, {"message": "the folder has been changed by someone else"})
            self.folders[body["uid"]] = body
            return _json(200, body)
        if match := re.fullmatch(r"/datasources/uid/(.+)", path):
            known = unquote(match[1]) in self.sources
            return _found({"uid": match[1]} if known else None, "Data source not found")
        if match := re.fullmatch(r"/dashboards/uid/(.+)", path):
            return _found(self.dashboards.get(unquote(match[1])), "Dashboard not found")
        if (method, path) == ("POST", "/dashboards/db"):
            return self._put_dashboard(body)
        group = re.fullmatch(r"/v1/provisioning/folder/(.+)/rule-groups/(.+)", path)
        if group:
            key = (unquote(group[1]), unquote(group[2]))
            if method == "GET":
                return _found(self.groups.get(key), "rule group not found")
            if headers.get("x-disable-provenance") != "true":
                return _json(409, {"message": "cannot change provenance from '' to 'api'"})
            # Grafana numbers rules and stamps them.
            rules = [{**rule, "id": i, "updated": "now"} for i, rule in enumerate(body["rules"])]
            self.groups[key] = {**body, "rules": rules}
            return _json(200, self.groups[key])
        return _json(404, {"message": "Not found"})

    def _put_dashboard(self, body: Any) -> tuple[int, bytes]:
        model = body["dashboard"]
        if not body.get("overwrite"):
            return _json(412, {"status": "version-mismatch", "message": "changed by someone else"})
        if body["folderUid"] not in self.folders:
            return _json(400, {"message": "folder not found"})
        old = self.dashboards.get(model["uid"], {"dashboard": {"version": 0}})
        version = old["dashboard"]["version"] + 1
        self.dashboards[model["uid"]] = {
            "dashboard": {**model, "id": 17, "version": version},
            "meta": {"folderUid": body["folderUid"]},
        }
        return _json(200, {"status": "success", "uid": model["uid"], "version": version})


def _json(status: int, value: Any) -> tuple[int, bytes]:
    return status, json.dumps(value).encode()


def _found(value: dict[str, Any] | None, message: str) -> tuple[int, bytes]:
    return _json(404, {"message": message}) if value is None else _json(200, value)
