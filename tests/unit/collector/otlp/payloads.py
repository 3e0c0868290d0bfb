"""Spans in OTLP JSON, made in a line."""

import json
import math
from datetime import UTC, datetime
from typing import Any

TRACE = "a1b2c3d4e5f60718293a4b5c6d7e8f90"
# 2026-11-30T12:00:00Z
START_NS = 1_796_040_000_000_000_000
# A day later: what the receiver's clock says, whatever the day of the test.
NOW = datetime(2026, 12, 1, 12, tzinfo=UTC)
MILLISECOND = 1_000_000
_NAMES = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}


def any_value(value: Any) -> dict[str, Any]:
    """A Python value as an AnyValue."""
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value if math.isfinite(value) else _NAMES[str(value)]}
    if isinstance(value, list):
        return {"arrayValue": {"values": [any_value(item) for item in value]}}
    if isinstance(value, dict):
        return {"kvlistValue": {"values": pairs(value)}}
    return {} if value is None else {"stringValue": value}


def pairs(attributes: dict[str, Any]) -> list[dict[str, Any]]:
    """Attributes as OTLP writes them."""
    return [{"key": key, "value": any_value(value)} for key, value in attributes.items()]


def span(
    span_id: str,
    attributes: dict[str, Any],
    *,
    parent: str = "",
    trace: str = TRACE,
    name: str = "span",
    begin: int = 0,
    end: int = 120,
    **more: Any,
) -> dict[str, Any]:
    """A span; ids are padded, times are milliseconds after :data:`START_NS`."""
    return {
        "traceId": trace,
        "spanId": span_id.rjust(16, "0"),
        "parentSpanId": parent.rjust(16, "0") if parent else "",
        "name": name,
        "kind": 1,
        "startTimeUnixNano": str(START_NS + begin * MILLISECOND),
        "endTimeUnixNano": str(START_NS + end * MILLISECOND),
        "attributes": pairs(attributes),
        "status": {},
        **more,
    }


def documents(*ids: str, prefix: str = "retrieval.documents", score: float = 0.9) -> dict[str, Any]:
    """Flattened documents."""
    found: dict[str, Any] = {}
    for index, chunk in enumerate(ids):
        start = f"{prefix}.{index}.document."
        found |= {
            start + "id": chunk,
            start + "content": f"text of {chunk}",
            start + "score": score - index / 100,
        }
    return found


def retriever(span_id: str, *ids: str, query: str = "q", **more: Any) -> dict[str, Any]:
    """An OpenInference retriever span."""
    attributes = {"openinference.span.kind": "RETRIEVER", "input.value": query, **documents(*ids)}
    attributes |= more.pop("attributes", {})
    return span(span_id, attributes, **more)


def request(*spans: dict[str, Any], scope: str = "t", **resource: Any) -> dict[str, Any]:
    """An ``ExportTraceServiceRequest`` of one scope."""
    attributes = {"service.name": "kb-search", **resource}
    return {
        "resourceSpans": [
            {
                "resource": {"attributes": pairs(attributes)},
                "scopeSpans": [{"scope": {"name": scope}, "spans": list(spans)}],
            }
        ]
    }


def logs(*records: dict[str, Any]) -> dict[str, Any]:
    """An ``ExportLogsServiceRequest`` of one scope."""
    return {"resourceLogs": [{"scopeLogs": [{"logRecords": list(records)}]}]}


def encode(message: dict[str, Any]) -> bytes:
    """JSON as OTLP sends it."""
    return json.dumps(message).encode()
