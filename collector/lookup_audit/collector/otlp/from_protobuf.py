"""OTLP protobuf into :mod:`lookup_audit.collector.otlp.spans`."""

import base64
from typing import Any, Final

from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from lookup_audit.collector.otlp.spans import (
    STATUS_ERROR,
    VECTOR,
    Attributes,
    BadPayloadError,
    LogEvent,
    Payload,
    Source,
    Span,
    SpanEvent,
    check_span,
    is_vector,
    is_vector_text,
)


def read_traces(body: bytes) -> Payload:
    """Decode an ``ExportTraceServiceRequest``.

    Raises:
        BadPayloadError: The bytes are not one.
    """
    request = ExportTraceServiceRequest()
    _parse(request, body)
    payload = Payload()
    for resource_spans in request.resource_spans:
        resource = _attributes(resource_spans.resource.attributes, payload)
        for scope_spans in resource_spans.scope_spans:
            source = Source(resource, scope_spans.scope.name, scope_spans.scope.version)
            for message in scope_spans.spans:
                span = _span(message, source, payload)
                fault = check_span(span)
                if fault:
                    payload.faults.append(fault)
                else:
                    payload.spans.append(span)
    return payload


def read_logs(body: bytes) -> Payload:
    """Decode an ``ExportLogsServiceRequest``.

    Raises:
        BadPayloadError: The bytes are not one.
    """
    request = ExportLogsServiceRequest()
    _parse(request, body)
    payload = Payload()
    for resource_logs in request.resource_logs:
        resource = _attributes(resource_logs.resource.attributes, payload)
        for scope_logs in resource_logs.scope_logs:
            source = Source(resource, scope_logs.scope.name, scope_logs.scope.version)
            for record in scope_logs.log_records:
                attributes = _attributes(record.attributes, payload)
                payload.logs.append(
                    LogEvent(
                        name=record.event_name or str(attributes.get("event.name", "")),
                        trace_id=record.trace_id.hex(),
                        span_id=record.span_id.hex(),
                        time_ns=record.time_unix_nano or record.observed_time_unix_nano,
                        attributes=attributes,
                        source=source,
                    )
                )
    return payload


def _parse(request: Any, body: bytes) -> None:
    try:
        request.ParseFromString(body)
    except (DecodeError, RuntimeError) as error:
        raise BadPayloadError(f"the body is not an OTLP protobuf message: {error}") from error


def _span(message: Any, source: Source, payload: Payload) -> Span:
    return Span(
        trace_id=message.trace_id.hex(),
        span_id=message.span_id.hex(),
        parent_id=message.parent_span_id.hex(),
        name=message.name,
        start_ns=message.start_time_unix_nano,
        end_ns=message.end_time_unix_nano,
        attributes=_attributes(message.attributes, payload),
        source=source,
        events=[
            SpanEvent(event.name, event.time_unix_nano, _attributes(event.attributes, payload))
            for event in message.events
        ],
        links=[(link.trace_id.hex(), link.span_id.hex()) for link in message.links],
        failed=message.status.code == STATUS_ERROR,
        status_message=message.status.message,
        dropped_attributes=message.dropped_attributes_count,
        dropped_events=message.dropped_events_count,
    )


def _attributes(pairs: Any, payload: Payload) -> Attributes:
    attributes: Attributes = {}
    for pair in pairs:
        value = _value(pair.key, pair.value)
        if value is VECTOR:
            payload.vectors += 1
        else:
            attributes[pair.key] = value
    return attributes


def _value(key: str, message: Any) -> Any:
    # Its own recursion is bounded: the parser refuses messages nested deeper than 100.
    kind = message.WhichOneof("value")
    if kind is None:
        return None
    if kind == "array_value":
        values = [_value("", item) for item in message.array_value.values]
        return VECTOR if is_vector(key, values, len(values)) else _without_vectors(values)
    if kind == "kvlist_value":
        members = {pair.key: _value(pair.key, pair.value) for pair in message.kvlist_value.values}
        return {name: value for name, value in members.items() if value is not VECTOR}
    if kind == "bytes_value":
        return base64.b64encode(message.bytes_value).decode()
    if kind == "string_value":
        text = message.string_value
        return VECTOR if is_vector_text(text) else text
    if kind in _SCALARS:
        return getattr(message, kind)
    return None


_SCALARS: Final = frozenset({"bool_value", "int_value", "double_value"})


def _without_vectors(values: list[Any]) -> list[Any]:
    return [value for value in values if value is not VECTOR]
