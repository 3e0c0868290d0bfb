"""The HTTP surface: native events in, one honest answer out, and the operator's three pages.

A caller gets its 202 only after the broker has confirmed every accepted event. Whatever the input,
the answer is a reason and never a 500; every error body is ``{"error": …}``.
"""

import asyncio
import contextlib
import math
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

import msgspec
from opentelemetry.trace import NoOpTracerProvider
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from lookup_audit.collector.auth import RequireToken
from lookup_audit.collector.body import check_content_type
from lookup_audit.collector.config import CollectorConfig, is_loopback
from lookup_audit.collector.cross_site import RefuseCrossSite
from lookup_audit.collector.ingest import Sorted, sort_events
from lookup_audit.collector.otlp import OtlpReceiver
from lookup_audit.collector.otlp.answers import StatusBodies
from lookup_audit.collector.pressure import Budget, OverloadedError
from lookup_audit.collector.publishing import Health, Publisher
from lookup_audit.collector.request import arrival_of, taken_body
from lookup_audit.collector.split import TooManyEventsError
from lookup_audit.collector.telemetry import IngestMetrics, Telemetry, TimeRequests, make_telemetry
from lookup_audit.collector.tracing import TracedPublisher
from lookup_audit.schemas.errors import Rejected, UnavailableError
from lookup_audit.schemas.names import EventType

Check = Callable[[], Awaitable[Health]]

PATHS: Final[Mapping[str, EventType]] = {
    "/v1/lookups": EventType.LOOKUP,
    "/v1/outcomes": EventType.OUTCOME,
    "/v1/judgements": EventType.JUDGEMENT,
}
# Up to this size the event loop decodes by itself (about 5 ms); a thread takes what is larger.
_INLINE_BYTES: Final = 1024 * 1024
_CHECK_SECONDS: Final = 2.0


def utc_now() -> datetime:
    """The clock of a running service."""
    return datetime.now(UTC)


def make_app(
    config: CollectorConfig,
    publisher: Publisher,
    *,
    clock: Callable[[], datetime] = utc_now,
    telemetry: Telemetry | None = None,
    checks: Mapping[str, Check] | None = None,
    extra_routes: Sequence[BaseRoute] = (),
    open_paths: Collection[str] = (),
) -> Starlette:
    """Build the collector's ASGI app; its lifespan starts and closes the publisher.

    Args:
        config: Limits, tokens, timeouts.
        publisher: Takes accepted events.
        clock: Gives aware times.
        telemetry: Shared with other stages of the process, else made here.
        checks: Further dependencies for ``/readyz``, by name.
        extra_routes: Further routes, behind the same tokens; none may repeat a path of ours.
        open_paths: Of these, the ones that look at tokens themselves or show nothing stored.
    """
    telemetry = telemetry or make_telemetry()
    if not isinstance(telemetry.tracer_provider, NoOpTracerProvider):
        tracer = telemetry.tracer_provider.get_tracer("lookup_audit.collector")
        publisher = TracedPublisher(publisher, tracer, server=config.bootstrap_servers[0])
    metrics = IngestMetrics(
        telemetry.meter_provider,
        pending=lambda: publisher.pending,
        capacity=config.max_in_flight_events,
    )
    # Only bytes are charged here: events are counted by the publisher, once they are known.
    bodies = Budget(max_bytes=config.max_in_flight_bytes, max_events=0)
    receiver = _Receiver(config, publisher, clock, metrics, bodies)
    otlp = OtlpReceiver(config, publisher, clock=clock, metrics=metrics, bodies=bodies)
    probes = _Probes(publisher, telemetry, checks or {})

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        await publisher.start()
        await otlp.start()
        try:
            yield
        finally:
            await otlp.close()
            await publisher.close()

    middleware = [Middleware(TimeRequests, metrics=metrics), Middleware(StatusBodies)]
    # Behind tokens a browser has nothing to abuse, and the service may go by any name.
    is_known = is_loopback if not config.token_hashes else (lambda host: True)
    middleware.append(Middleware(RefuseCrossSite, is_known_host=is_known, linked_paths=open_paths))
    if config.token_hashes:
        middleware.append(
            Middleware(RequireToken, token_hashes=config.token_hashes, open_paths=open_paths)
        )
    return Starlette(
        routes=[
            *(
                Route(path, receiver.endpoint(event_type), methods=["POST"])
                for path, event_type in PATHS.items()
            ),
            *otlp.routes(),
            Route("/healthz", probes.healthz),
            Route("/readyz", probes.readyz),
            Route("/metrics", probes.metrics),
            *extra_routes,
        ],
        middleware=middleware,
        exception_handlers={
            HTTPException: _answer_http_error,
            UnavailableError: _answer_unavailable,
            Exception: _answer_bug,
        },
        lifespan=lifespan,
    )


class _Receiver:
    def __init__(
        self,
        config: CollectorConfig,
        publisher: Publisher,
        clock: Callable[[], datetime],
        metrics: IngestMetrics,
        bodies: Budget,
    ):
        self._config = config
        self._publisher = publisher
        self._clock = clock
        self._metrics = metrics
        self._bodies = bodies

    def endpoint(self, event_type: EventType) -> Callable[[Request], Awaitable[Response]]:
        async def receive(request: Request) -> Response:
            check_content_type(request.headers.get("content-type"))
            try:
                async with taken_body(request, self._config, self._bodies) as body:
                    return await self._ingest(request, body, event_type)
            except ClientDisconnect:
                # Nobody reads this answer; the status is for the metrics.
                return json_response(499, {"error": "the caller went away"})

        return receive

    async def _ingest(self, request: Request, body: bytes, event_type: EventType) -> Response:
        arrival = arrival_of(request, self._clock())
        try:
            if len(body) <= _INLINE_BYTES:
                result = sort_events(body, event_type, config=self._config, arrival=arrival)
            else:
                result = await asyncio.to_thread(
                    sort_events, body, event_type, config=self._config, arrival=arrival
                )
        except TooManyEventsError as error:
            raise HTTPException(413, str(error)) from error
        accepted = result.merge(await self._publish(result)) if result.records else 0
        self._metrics.count_events(result, accepted=accepted)
        status = 422 if result.rejected and not accepted else 202
        return json_response(status, {"accepted": accepted, "rejected": result.describe_rejected()})

    async def _publish(self, result: Sorted) -> list[Rejected | None]:
        started = time.perf_counter()
        try:
            answers = await self._publisher.publish(result.records)
        except UnavailableError as error:
            seconds = time.perf_counter() - started
            self._metrics.time_send(result.records, seconds, error=_error_type(error))
            raise
        self._metrics.time_send(result.records, time.perf_counter() - started)
        return answers


class _Probes:
    def __init__(self, publisher: Publisher, telemetry: Telemetry, checks: Mapping[str, Check]):
        async def kafka() -> Health:
            return publisher.health()

        self._telemetry = telemetry
        self._checks: dict[str, Check] = {"kafka": kafka, **checks}

    async def healthz(self, _: Request) -> Response:
        return json_response(200, {"status": "ok"})

    async def readyz(self, _: Request) -> Response:
        found = await asyncio.gather(*map(_ask, self._checks.values()))
        ready = all(health.ok for health in found)
        dependencies = {
            name: {"ready": health.ok, "detail": health.detail}
            for name, health in zip(self._checks, found, strict=True)
        }
        return json_response(
            200 if ready else 503,
            {"ready": ready, "dependencies": dependencies},
            {} if ready else {"Retry-After": "1"},
        )

    async def metrics(self, _: Request) -> Response:
        return Response(self._telemetry.render(), headers={"content-type": CONTENT_TYPE_LATEST})


async def _ask(check: Check) -> Health:
    try:
        async with asyncio.timeout(_CHECK_SECONDS):
            return await check()
    except TimeoutError:
        return Health(False, f"no answer within {_CHECK_SECONDS:g} seconds")
    except Exception as error:
        # A check that fails is an answer: the dependency cannot be used.
        return Health(False, f"{type(error).__name__}: {error}")


def json_response(
    status: int, content: object, headers: Mapping[str, str] | None = None
) -> Response:
    """An answer in JSON."""
    return Response(
        msgspec.json.encode(content),
        status_code=status,
        headers={"content-type": "application/json", **(headers or {})},
    )


async def _answer_http_error(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return json_response(error.status_code, {"error": error.detail}, error.headers)


async def _answer_unavailable(_: Request, error: Exception) -> Response:
    assert isinstance(error, UnavailableError)
    status = 429 if isinstance(error, OverloadedError) else 503
    seconds = max(1, math.ceil(error.retry_after_seconds))
    return json_response(status, {"error": str(error)}, {"Retry-After": str(seconds)})


async def _answer_bug(_: Request, error: Exception) -> Response:
    # The server logs the traceback; the caller learns nothing about our insides.
    return json_response(500, {"error": "the collector failed; its log tells why"})


def _error_type(error: UnavailableError) -> str:
    return "overloaded" if isinstance(error, OverloadedError) else "unavailable"
