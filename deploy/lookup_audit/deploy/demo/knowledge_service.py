"""The demo's retrieval service: ``POST /lookup_knowledge`` over HTTP, one instance a bundle.

The caller gets the projection, and the id of the event in a header so that it can name the
lookup later. The full event goes to the collector in the background.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from lookup_audit.deploy.demo.delivery import Delivery, wait_until
from lookup_audit.deploy.demo.events import CallContext, Json, lookup_result
from lookup_audit.deploy.demo.identifiers import Clock, Identifiers, utc_now
from lookup_audit.deploy.demo.lookup import KnowledgeBase, Query

SERVICE_NAME = "handbook-knowledge"
EVENT_ID_HEADER = "lookup-event-id"
MODES = ("dense", "hybrid")


class BadRequestError(ValueError):
    """A request that the service cannot answer; the message says what to send instead."""


@dataclass(frozen=True, slots=True)
class LookupRequest:
    """A checked request body."""

    query: Query
    model_version: str
    run_id: str
    tool_call_id: str


def read_request(body: object, model_versions: Sequence[str]) -> LookupRequest:
    """Check a request body.

    Raises:
        BadRequestError: A field is missing, of the wrong type or not one of the known values.
    """
    if not isinstance(body, dict):
        raise BadRequestError("the body must be a JSON object")

    def text(name: str) -> str:
        value = body.get(name)
        if not isinstance(value, str) or not value.strip():
            raise BadRequestError(f"{name} must be a non-empty string")
        return value

    top_k = body.get("top_k", 4)
    if not isinstance(top_k, int) or isinstance(top_k, bool) or not 1 <= top_k <= 10:
        raise BadRequestError("top_k must be a whole number from 1 to 10")
    mode = text("mode")
    if mode not in MODES:
        raise BadRequestError(f"mode must be one of {', '.join(MODES)}")
    model_version = text("model_version")
    if model_version not in model_versions:
        raise BadRequestError(f"model_version must be one of {', '.join(model_versions)}")
    category = body.get("category")
    if category is not None and not isinstance(category, str):
        raise BadRequestError("category must be a string or null")
    return LookupRequest(
        Query(text("query"), mode, top_k, category),
        model_version,
        text("run_id"),
        text("tool_call_id"),
    )


class KnowledgeService:
    """Answers lookups and reports each of them, whatever becomes of the answer."""

    def __init__(
        self,
        bases: Sequence[KnowledgeBase],
        delivery: Delivery,
        *,
        tenant: str,
        ids: Identifiers,
        clock: Clock = utc_now,
    ) -> None:
        self._bases: Mapping[str, KnowledgeBase] = {b.bundle.model_version: b for b in bases}
        self._delivery = delivery
        self._tenant = tenant
        self._ids = ids
        self._clock = clock
        boot = ids.short("boot")
        self._instances = {
            version: f"handbook-{base.bundle.service_version}/{boot}"
            for version, base in self._bases.items()
        }
        self._sequences = dict.fromkeys(self._bases, 0)
        self._lock = threading.Lock()

    def look_up(self, body: object, traceparent: str | None) -> tuple[Json, str]:
        """Answer one request: the projection and the event's id.

        Raises:
            BadRequestError: The request cannot be answered as it is.
        """
        request = read_request(body, tuple(self._bases))
        base = self._bases[request.model_version]
        # The sequence must be without holes and in the order of the events, so one at a time.
        with self._lock:
            occurred_at = self._clock()
            start = time.perf_counter()
            found = base.look_up(request.query)
            self._sequences[request.model_version] += 1
            call = CallContext(
                event_id=self._ids.event_id(),
                occurred_at=occurred_at,
                tenant=self._tenant,
                service=SERVICE_NAME,
                instance_id=self._instances[request.model_version],
                sequence=self._sequences[request.model_version],
                trace_id=trace_id_of(traceparent) or self._ids.trace_id(),
                span_id=self._ids.span_id(),
                run_id=request.run_id,
                tool_call_id=request.tool_call_id,
                latency_ms=round((time.perf_counter() - start) * 1000, 3),
            )
            event = lookup_result(found, call, base.bundle, base.thresholds, base.budget_tokens)
            self._delivery.send(event)
        answer: Json = event["projection"]
        return answer, call.event_id

    def app(self) -> Starlette:
        """The service as an ASGI application."""

        async def lookup_knowledge(request: Request) -> Response:
            try:
                body: Any = await request.json()
                answer, event_id = await run_in_threadpool(
                    self.look_up, body, request.headers.get("traceparent")
                )
            except ValueError as error:
                return JSONResponse({"error": str(error)}, status_code=400)
            return JSONResponse(answer, headers={EVENT_ID_HEADER: event_id})

        return Starlette(routes=[Route("/lookup_knowledge", lookup_knowledge, methods=["POST"])])


def trace_id_of(traceparent: str | None) -> str | None:
    """The trace id of a W3C ``traceparent`` header, None where there is no usable one.

    >>> trace_id_of("00-a1b2c3d4e5f60718293a4b5c6d7e8f90-0f1e2d3c4b5a6978-01")
    'a1b2c3d4e5f60718293a4b5c6d7e8f90'
    """
    parts = (traceparent or "").split("-")
    return parts[1] if len(parts) == 4 and len(parts[1]) == 32 else None


@contextmanager
def served(app: Starlette, *, port: int = 0, timeout_seconds: float = 10.0) -> Iterator[str]:
    """Serve an application on loopback in a thread; gives its base URL.

    Raises:
        RuntimeError: The server did not come up in time, for example on a taken port.
    """
    config = uvicorn.Config(
        app, host="127.0.0.1", port=port, log_level="warning", lifespan="off", ws="none"
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, name="knowledge service", daemon=True)
    thread.start()
    try:
        if not wait_until(lambda: server.started or not thread.is_alive(), timeout_seconds):
            raise RuntimeError(f"the retrieval service did not start in {timeout_seconds} s")
        if not thread.is_alive():
            raise RuntimeError(f"the retrieval service could not listen on port {port}")
        bound = server.servers[0].sockets[0].getsockname()[1]
        yield f"http://127.0.0.1:{bound}"
    finally:
        server.should_exit = True
        thread.join(timeout_seconds)
