"""The OTLP/HTTP routes: a bounded body in, a decision on every span, OTLP's own answers out.

``/v1/metrics`` is accepted and left alone, so that an application configured for all signals does
not fill its log with refusals.
"""

import asyncio
from collections.abc import Callable
from datetime import datetime
from typing import Final

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from lookup_audit.collector.body import media_type
from lookup_audit.collector.config import CollectorConfig
from lookup_audit.collector.otlp import answers, from_json, from_protobuf
from lookup_audit.collector.otlp.evaluations import of_logs
from lookup_audit.collector.otlp.pipeline import Pipeline, describe
from lookup_audit.collector.otlp.spans import BadPayloadError, Payload
from lookup_audit.collector.pressure import Budget
from lookup_audit.collector.publishing import Publisher
from lookup_audit.collector.request import arrival_of, taken_body
from lookup_audit.collector.telemetry import IngestMetrics

# A batch of 512 spans has 0.8 MB and takes 5 ms; what is larger goes to a thread.
_INLINE_BYTES: Final = 1024 * 1024


class OtlpReceiver:
    """Serves ``/v1/traces``, ``/v1/logs`` and ``/v1/metrics``.

    Args:
        config: Limits and times.
        publisher: Takes the events.
        clock: Gives aware times.
        metrics: Counts every span and event.
        bodies: The budget of all bodies in flight, shared with the native routes.
    """

    def __init__(
        self,
        config: CollectorConfig,
        publisher: Publisher,
        *,
        clock: Callable[[], datetime],
        metrics: IngestMetrics,
        bodies: Budget,
    ):
        self._config = config
        self._clock = clock
        self._metrics = metrics
        self._bodies = bodies
        self._pipeline = Pipeline(config, publisher, clock, metrics)

    def routes(self) -> list[BaseRoute]:
        """The routes, for the app."""
        return [
            Route(answers.TRACES, self._answer, methods=["POST"]),
            Route(answers.LOGS, self._answer, methods=["POST"]),
            Route(answers.METRICS, self._answer, methods=["POST"]),
        ]

    async def start(self) -> None:
        """Take up what waited when the collector last stopped."""
        await self._pipeline.start()

    async def close(self) -> None:
        """Publish what waits."""
        await self._pipeline.close()

    async def _answer(self, request: Request) -> Response:
        content_type = media_type(request.headers.get("content-type", ""))
        if content_type not in (answers.JSON, answers.PROTOBUF):
            raise HTTPException(
                415,
                f"content type {content_type!r} is not taken; "
                f"send {answers.PROTOBUF} or {answers.JSON}",
            )
        try:
            async with taken_body(request, self._config, self._bodies) as body:
                return await self._receive(request, body, content_type)
        except ClientDisconnect:
            # Nobody reads this answer; the status is for the metrics.
            return Response(status_code=499)

    async def _receive(self, request: Request, body: bytes, content_type: str) -> Response:
        path = request.url.path
        if path == answers.METRICS or not body:
            return answers.success(path, content_type)
        read = _READERS[path, content_type]
        try:
            if len(body) <= _INLINE_BYTES:
                payload = read(body)
            else:
                payload = await asyncio.to_thread(read, body)
        except BadPayloadError as error:
            self._metrics.count_bad_request()
            raise HTTPException(400, str(error)) from error
        if len(payload.spans) + len(payload.logs) > self._config.max_events:
            raise HTTPException(
                413,
                f"the request holds more than {self._config.max_events} spans or records; "
                "send it in parts",
            )
        return await self._take(request, payload, content_type)

    async def _take(self, request: Request, payload: Payload, content_type: str) -> Response:
        arrival = arrival_of(request, self._clock())
        path = request.url.path
        if path == answers.TRACES:
            batch = await self._pipeline.take(payload.spans, arrival)
        else:
            batch = await self._pipeline.take_evaluations(of_logs(payload.logs), arrival)
        self._metrics.count_spans("rejected", len(payload.faults), "malformed")
        self._metrics.count_vectors(payload.vectors)
        return answers.success(
            path,
            content_type,
            rejected=len(payload.faults) + batch.rejected_spans,
            message=describe(batch.rejected, payload.faults),
        )


_READERS: Final = {
    (answers.TRACES, answers.JSON): from_json.read_traces,
    (answers.TRACES, answers.PROTOBUF): from_protobuf.read_traces,
    (answers.LOGS, answers.JSON): from_json.read_logs,
    (answers.LOGS, answers.PROTOBUF): from_protobuf.read_logs,
}
