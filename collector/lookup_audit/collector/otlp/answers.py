"""OTLP's answers: success, partial success, and a ``google.rpc.Status`` for everything else.

Whatever refuses a request to an OTLP path (a token, a browser's origin, the router) answers in its
own words; this makes a Status of it, in the content type that the client sent.
"""

import json
from typing import Final

import msgspec
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lookup_audit.collector.body import media_type

JSON: Final = "application/json"
PROTOBUF: Final = "application/x-protobuf"
TRACES, LOGS, METRICS = "/v1/traces", "/v1/logs", "/v1/metrics"
PATHS: Final = frozenset({TRACES, LOGS, METRICS})

# google.rpc.Code of an HTTP status.
_CODES: Final = {400: 3, 401: 16, 403: 7, 404: 5, 408: 4, 413: 8, 415: 3, 429: 8, 503: 14}
_UNKNOWN: Final = 2
_MAX_MESSAGE: Final = 4096


def success(path: str, content_type: str, *, rejected: int = 0, message: str = "") -> Response:
    """The 200 of an OTLP request; a partial success where something was rejected or is to say."""
    message = message[:_MAX_MESSAGE]
    if content_type == JSON:
        name = {TRACES: "rejectedSpans", LOGS: "rejectedLogRecords"}.get(path, "rejectedDataPoints")
        partial = {name: str(rejected), "errorMessage": message} if rejected or message else None
        body = msgspec.json.encode({"partialSuccess": partial} if partial else {})
        return Response(body, headers={"content-type": JSON})
    if path == TRACES:
        traces = ExportTraceServiceResponse()
        if rejected or message:
            traces.partial_success.rejected_spans = rejected
            traces.partial_success.error_message = message
        encoded = traces.SerializeToString()
    elif path == LOGS:
        logs = ExportLogsServiceResponse()
        if rejected or message:
            logs.partial_success.rejected_log_records = rejected
            logs.partial_success.error_message = message
        encoded = logs.SerializeToString()
    else:
        encoded = ExportMetricsServiceResponse().SerializeToString()
    return Response(encoded, headers={"content-type": PROTOBUF})


def status_body(status: int, message: str, content_type: str) -> bytes:
    """A ``google.rpc.Status`` (``int32 code = 1; string message = 2``) for an HTTP status."""
    code = _CODES.get(status, 13 if status >= 500 else _UNKNOWN)
    if content_type == JSON:
        return msgspec.json.encode({"code": code, "message": message})
    text = message.encode("utf-8", "replace")[:_MAX_MESSAGE]
    text = text.decode("utf-8", "ignore").encode()
    return bytes((0x08, code, 0x12)) + _varint(len(text)) + text


def _varint(number: int) -> bytes:
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)


class StatusBodies:
    """ASGI middleware that turns every refusal on an OTLP path into a Status."""

    def __init__(self, app: ASGIApp):
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the call on and rewrite an answer of 400 or above."""
        if scope["type"] != "http" or scope["path"] not in PATHS:
            await self.app(scope, receive, send)
            return
        sent = media_type(Headers(scope=scope).get("content-type", ""))
        content_type = PROTOBUF if sent == PROTOBUF else JSON
        held: list[Message] = []
        parts: list[bytes] = []

        async def rewrite(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] >= 400:
                held.append(message)
            elif not held:
                await send(message)
            else:
                parts.append(message.get("body", b""))
                if message.get("more_body"):
                    return
                start = held[0]
                body = status_body(start["status"], _message_of(b"".join(parts)), content_type)
                headers = MutableHeaders(scope=start)
                headers["content-type"] = content_type
                headers["content-length"] = str(len(body))
                await send(start)
                await send({"type": "http.response.body", "body": body})

        await self.app(scope, receive, rewrite)


def _message_of(body: bytes) -> str:
    try:
        answer = json.loads(body)
    except ValueError:
        return body.decode("utf-8", "replace")
    error = answer.get("error") if isinstance(answer, dict) else None
    return error if isinstance(error, str) else ""
