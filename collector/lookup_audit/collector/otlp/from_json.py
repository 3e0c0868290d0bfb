"""OTLP JSON into :mod:`lookup_audit.collector.otlp.spans`.

Not by protobuf's own JSON reader: OTLP writes ids in hex, where that one expects base64, and its
unknown fields must be ignored. Only lowerCamelCase names count; 64-bit integers come as text or
number; a number may be the text ``"NaN"``. A bare ``NaN`` is not JSON and refuses the body.
"""

import json
from collections.abc import Iterator
from typing import Any, Final, NoReturn

import msgspec

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

# The protobuf parser allows 100 nested messages, and a nested value is two.
_MAX_DEPTH: Final = 50
_SPECIAL: Final = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}


class _FaultError(ValueError):
    """One span or record is not as OTLP says."""


def read_traces(body: bytes) -> Payload:
    """Decode an ``ExportTraceServiceRequest``.

    Raises:
        BadPayloadError: The body is not JSON, or its frame is not OTLP's.
    """
    payload = Payload()
    may_be_half = _may_hold_half_a_pair(body)
    for source, message in _items(body, ("resourceSpans", "scopeSpans", "spans"), payload):
        try:
            span = _span(message, source, payload)
            fault = check_span(span) or (_half_a_pair(span) if may_be_half else "")
        except _FaultError as error:
            fault = str(error)
        if fault:
            payload.faults.append(fault)
        else:
            payload.spans.append(span)
    return payload


def read_logs(body: bytes) -> Payload:
    """Decode an ``ExportLogsServiceRequest``.

    Raises:
        BadPayloadError: The body is not JSON, or its frame is not OTLP's.
    """
    payload = Payload()
    may_be_half = _may_hold_half_a_pair(body)
    for source, message in _items(body, ("resourceLogs", "scopeLogs", "logRecords"), payload):
        try:
            log = _log(message, source, payload)
            fault = _half_a_pair(log) if may_be_half else ""
        except _FaultError as error:
            fault = str(error)
        if fault:
            payload.faults.append(fault)
        else:
            payload.logs.append(log)
    return payload


def _items(body: bytes, names: tuple[str, str, str], payload: Payload) -> Iterator[Any]:
    outer, middle, inner = names
    try:
        for group in _list(_load(body), outer):
            resource = _attributes(_dict(_dict(group), "resource"), payload)
            for part in _list(_dict(group), middle):
                scope = _dict(_dict(part), "scope")
                source = Source(resource, _text(scope, "name"), _text(scope, "version"))
                for item in _list(_dict(part), inner):
                    yield source, _dict(item)
    except _FaultError as error:
        raise BadPayloadError(f"the body is not OTLP JSON: {error}") from error


def _load(body: bytes) -> dict[str, Any]:
    try:
        return _dict(msgspec.json.decode(body))
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        # Half a surrogate pair in one span must not cost its neighbours; only this reader takes it.
        if not _may_hold_half_a_pair(body):
            raise BadPayloadError(f"the body is not JSON: {error}") from error
    try:
        return _dict(json.loads(body, parse_constant=_refuse))
    except (ValueError, RecursionError) as error:
        raise BadPayloadError(f"the body is not JSON: {error}") from error


def _may_hold_half_a_pair(body: bytes) -> bool:
    return b"\\ud" in body.lower()


def _half_a_pair(item: Span | LogEvent) -> str:
    """Why a text of the item cannot be stored, or ``""``."""
    try:
        msgspec.msgpack.encode(item)
    except UnicodeEncodeError:
        return "a text holds half of a surrogate pair; cut text at whole characters"
    return ""


def _refuse(token: str) -> NoReturn:
    raise ValueError(f"{token} is not JSON; OTLP writes it as text")


def _span(message: dict[str, Any], source: Source, payload: Payload) -> Span:
    status = _dict(message, "status")
    return Span(
        trace_id=_text(message, "traceId").lower(),
        span_id=_text(message, "spanId").lower(),
        parent_id=_text(message, "parentSpanId").lower(),
        name=_text(message, "name"),
        start_ns=_whole(message, "startTimeUnixNano"),
        end_ns=_whole(message, "endTimeUnixNano"),
        attributes=_attributes(message, payload),
        source=source,
        events=[
            SpanEvent(
                _text(event, "name"), _whole(event, "timeUnixNano"), _attributes(event, payload)
            )
            for event in map(_dict, _list(message, "events"))
        ],
        links=[
            (_text(link, "traceId").lower(), _text(link, "spanId").lower())
            for link in map(_dict, _list(message, "links"))
        ],
        failed=_whole(status, "code") == STATUS_ERROR,
        status_message=_text(status, "message"),
        dropped_attributes=_whole(message, "droppedAttributesCount"),
        dropped_events=_whole(message, "droppedEventsCount"),
    )


def _log(message: dict[str, Any], source: Source, payload: Payload) -> LogEvent:
    attributes = _attributes(message, payload)
    return LogEvent(
        name=_text(message, "eventName") or str(attributes.get("event.name", "")),
        trace_id=_text(message, "traceId").lower(),
        span_id=_text(message, "spanId").lower(),
        time_ns=_whole(message, "timeUnixNano") or _whole(message, "observedTimeUnixNano"),
        attributes=attributes,
        source=source,
    )


def _dict(value: Any, name: str = "") -> dict[str, Any]:
    if name:
        value = value.get(name)
        value = {} if value is None else value
    if not isinstance(value, dict):
        raise _FaultError(f"{name or 'an element'} must be an object")
    return value


def _list(message: dict[str, Any], name: str) -> list[Any]:
    value = message.get(name)
    if value is None:
        return []
    if not isinstance(value, list):
        raise _FaultError(f"{name} must be an array")
    return value


def _text(message: dict[str, Any], name: str) -> str:
    value = message.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise _FaultError(f"{name} must be text")
    return value


def _whole(message: dict[str, Any], name: str) -> int:
    return _integer(message.get(name), name)


def _integer(value: Any, name: str) -> int:
    if value is None:
        return 0
    if isinstance(value, str) and len(value) <= 20:
        try:
            value = int(value)
        except ValueError:
            value = None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not -(2**63) <= value < 2**64:
        raise _FaultError(f"{name} must be a 64-bit integer, as text or number")
    return value


def _attributes(message: dict[str, Any], payload: Payload) -> Attributes:
    attributes: Attributes = {}
    for pair in map(_dict, _list(message, "attributes")):
        key = _text(pair, "key")
        value = _value(key, _dict(pair, "value"), _MAX_DEPTH)
        if value is VECTOR:
            payload.vectors += 1
        else:
            attributes[key] = value
    return attributes


def _value(key: str, message: dict[str, Any], depth: int) -> Any:
    if depth == 0:
        raise _FaultError(f"attribute {key} is nested too deeply")
    for kind, value in message.items():
        if value is None:
            continue
        if kind in ("stringValue", "bytesValue"):
            text = _text(message, kind)
            return VECTOR if is_vector_text(text) else text
        if kind == "boolValue":
            if not isinstance(value, bool):
                raise _FaultError("boolValue must be true or false")
            return value
        if kind == "intValue":
            return _integer(value, kind)
        if kind == "doubleValue":
            return _double(value)
        if kind == "arrayValue":
            return _array(key, _list(_dict(value), "values"), depth)
        if kind == "kvlistValue":
            return _members(_list(_dict(value), "values"), depth)
    return None


def _double(value: Any) -> float:
    if isinstance(value, str):
        if value in _SPECIAL:
            return _SPECIAL[value]
        try:
            return float(value)
        except ValueError:
            value = None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise _FaultError("doubleValue must be a number, or 'NaN', 'Infinity', '-Infinity' as text")
    try:
        return float(value)
    except OverflowError:
        raise _FaultError("doubleValue is out of range") from None


def _array(key: str, items: list[Any], depth: int) -> Any:
    values = [_value("", _dict(item), depth - 1) for item in items]
    if is_vector(key, values, len(values)):
        return VECTOR
    return [value for value in values if value is not VECTOR]


def _members(pairs: list[Any], depth: int) -> dict[str, Any]:
    members = {}
    for pair in map(_dict, pairs):
        key = _text(pair, "key")
        value = _value(key, _dict(pair, "value"), depth - 1)
        if value is not VECTOR:
            members[key] = value
    return members
