"""Spans and log events as the mapper reads them, the same from protobuf and from JSON.

Attribute values are plain Python values. Vectors never get here: an embedding is of no use to an
audit and is most of a payload's bytes.
"""

import math
import re
from collections.abc import Iterable
from typing import Any, Final

import msgspec

from lookup_audit.collector.envelope import SPAN_ID, TRACE_ID

Attributes = dict[str, Any]

# Shorter lists of numbers may be anything; no embedding model has so few dimensions.
# OTLP's STATUS_CODE_ERROR.
STATUS_ERROR: Final = 2
# Stands for an attribute that was an embedding.
VECTOR: Final = object()
_VECTOR_LENGTH: Final = 16
_NUMBERS: Final = re.compile(r"\[[-+0-9.eE, \n]+\]?\Z")


class BadPayloadError(ValueError):
    """The whole body is not OTLP; the message says why."""


class Source(msgspec.Struct, gc=False):
    """Resource and instrumentation scope of a span."""

    resource: Attributes
    scope: str = ""
    scope_version: str = ""


class SpanEvent(msgspec.Struct, gc=False):
    """An event on a span; the time is in nanoseconds since 1970."""

    name: str
    time_ns: int
    attributes: Attributes


class Span(msgspec.Struct, gc=False):
    """One finished span; ids are lower-case hex, times nanoseconds since 1970."""

    trace_id: str
    span_id: str
    parent_id: str
    name: str
    start_ns: int
    end_ns: int
    attributes: Attributes
    source: Source
    events: list[SpanEvent] = []
    links: list[tuple[str, str]] = []
    failed: bool = False
    status_message: str = ""
    dropped_attributes: int = 0
    dropped_events: int = 0


class LogEvent(msgspec.Struct, gc=False):
    """One log record, as far as an evaluation needs it."""

    name: str
    trace_id: str
    span_id: str
    time_ns: int
    attributes: Attributes
    source: Source


class Payload(msgspec.Struct, gc=False):
    """What one request held.

    Args:
        spans: Sound spans.
        logs: Sound log records.
        faults: One sentence for each span or record that is not sound.
        vectors: How many vectors were left out.
    """

    spans: list[Span] = []
    logs: list[LogEvent] = []
    faults: list[str] = []
    vectors: int = 0


def check_span(span: Span) -> str:
    """What makes a span unusable, or ``""``."""
    if not TRACE_ID.fullmatch(span.trace_id):
        return "a span's trace id must be 16 bytes and not all zero"
    if not SPAN_ID.fullmatch(span.span_id):
        return "a span's id must be 8 bytes and not all zero"
    if span.parent_id and not SPAN_ID.fullmatch(span.parent_id):
        return f"the parent id of span {span.span_id} must be empty or 8 bytes and not all zero"
    if not 0 < span.end_ns < 2**63 or not 0 <= span.start_ns < 2**63:
        return f"span {span.span_id} has no end time"
    return ""


def is_vector(key: str, values: Iterable[Any], length: int) -> bool:
    """Whether an attribute's list is an embedding, by its name or by its many numbers."""
    if key.endswith(".vector"):
        return True
    return length >= _VECTOR_LENGTH and all(
        isinstance(value, (int, float)) and not isinstance(value, bool) for value in values
    )


def is_vector_text(text: str) -> bool:
    """Whether a text is the JSON of an embedding: OpenLLMetry writes them out.

    >>> is_vector_text("[" + ", ".join(["0.25"] * 64) + "]")
    True
    """
    return (
        text[:1] == "["
        and len(text) > 4 * _VECTOR_LENGTH
        and _NUMBERS.match(text, 0, 512) is not None
        and text.count(",", 0, 4096) >= _VECTOR_LENGTH - 1
    )


def text_of(value: Any) -> str:
    """A value as text: text as it is, a whole number as its digits, anything else ``""``."""
    if isinstance(value, str):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return ""


def number_of(value: Any) -> float | None:
    """A value as a number, NaN and infinities included; text and booleans are none."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        return float(value)
    except OverflowError:
        return math.inf


def count_of(value: Any) -> int | None:
    """A value as a count of at least 0, from an integer, ``3.0`` or digits."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 16:
        return int(value)
    number = number_of(value)
    if number is None or not number.is_integer() or not 0 <= number <= 2**53:
        return None
    return int(number)
