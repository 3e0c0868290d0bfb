"""An accepted event into a Kafka record: topic, key, CloudEvents headers, one trace context.

The value is the event's own bytes. Headers follow the CloudEvents 1.0 Kafka binding in binary
mode. ``traceparent`` names the audited retrieval where the event tells it, so that an auditor can
go from a record to the application's trace.
"""

import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any, Final
from urllib.parse import quote

from lookup_audit.collector.publishing import OutgoingRecord
from lookup_audit.collector.redaction import Withheld
from lookup_audit.schemas.decode import Decoded
from lookup_audit.schemas.fields import format_instant
from lookup_audit.schemas.names import REDACTION_FAILED, EventType, Header, Topic
from lookup_audit.schemas.publish import EVENTS, schema_uri

TOPICS: Final[Mapping[EventType, Topic]] = {
    EventType.LOOKUP: Topic.RESULTS,
    EventType.OUTCOME: Topic.OUTCOMES,
    EventType.JUDGEMENT: Topic.OUTCOMES,
}
ID_FIELDS: Final[Mapping[EventType, str]] = {
    EventType.LOOKUP: "event_id",
    EventType.OUTCOME: "outcome_id",
    EventType.JUDGEMENT: "judgement_id",
}

SCHEMAS: Final[Mapping[EventType, str]] = {
    event_type: schema_uri(name) for event_type, name in EVENTS.items()
}

_NO_CONTENT: Final = b"{}"
TRACE_ID: Final = re.compile(r"(?!0{32})[0-9a-f]{32}")
SPAN_ID: Final = re.compile(r"(?!0{16})[0-9a-f]{16}")
_TRACE_PARENT = re.compile(
    r"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}"
)


@dataclass(frozen=True, slots=True)
class Arrival:
    """What is known of the request that brought an event.

    Args:
        received_at: The receiver's clock.
        trace_parent: The request's valid ``traceparent``, or ``""``.
        trace_state: Its ``tracestate``, or ``""``.
    """

    received_at: datetime
    trace_parent: str = ""
    trace_state: str = ""


def read_trace_parent(value: str | None) -> str:
    """A request's ``traceparent`` if it is valid, else ``""``.

    >>> read_trace_parent("00-a1b2c3d4e5f60718293a4b5c6d7e8f90-0f1e2d3c4b5a6978-03")
    '00-a1b2c3d4e5f60718293a4b5c6d7e8f90-0f1e2d3c4b5a6978-03'
    >>> read_trace_parent("00-00000000000000000000000000000000-0f1e2d3c4b5a6978-01")
    ''
    """
    text = (value or "").strip()
    return text if _TRACE_PARENT.fullmatch(text) else ""


def wrap(
    decoded: Decoded[Any] | Withheld, event_type: EventType, arrival: Arrival
) -> OutgoingRecord:
    """Make the record of one accepted event, or of one that is to become a dead letter."""
    if isinstance(decoded, Withheld):
        return _without_content(event_type, arrival)
    record = decoded.record
    event_id: str = getattr(record, ID_FIELDS[event_type])
    trace_id: str = getattr(record, "trace_id", None) or ""
    headers = {
        Header.CONTENT_TYPE: "application/json",
        Header.SPEC_VERSION: "1.0",
        Header.ID: event_id,
        Header.SOURCE: source_urn(record),
        Header.TYPE: event_type,
        Header.DATA_SCHEMA: SCHEMAS[event_type],
        Header.TIME: record.occurred_at,
        Header.RECORDED_TIME: format_instant(arrival.received_at),
        **_trace_headers(trace_id.lower(), getattr(record, "span_id", None) or "", arrival),
    }
    if trace_id:
        headers[Header.SUBJECT] = trace_id
    return OutgoingRecord(
        topic=TOPICS[event_type],
        key=(trace_id or event_id).encode(),
        value=decoded.raw,
        headers=tuple((str(name), value.encode()) for name, value in headers.items()),
        event_id=event_id,
    )


def is_without_content(record: OutgoingRecord) -> bool:
    """Whether a record stands for an event that could not be redacted."""
    # A look at the value spares most records the look through their headers.
    return record.value == _NO_CONTENT and (
        (str(Header.REDACTION), REDACTION_FAILED.encode()) in record.headers
    )


def _without_content(event_type: EventType, arrival: Arrival) -> OutgoingRecord:
    """The record of an event that could not be redacted: the processor dead-letters it.

    Nothing of the event is in it, not even its id or its trace.
    """
    event_id = f"withheld-{_new_id(16)}"
    headers = {
        Header.CONTENT_TYPE: "application/json",
        Header.SPEC_VERSION: "1.0",
        Header.ID: event_id,
        Header.SOURCE: _urn("", ""),
        Header.TYPE: event_type,
        Header.RECORDED_TIME: format_instant(arrival.received_at),
        Header.REDACTION: REDACTION_FAILED,
    }
    return OutgoingRecord(
        topic=TOPICS[event_type],
        key=event_id.encode(),
        value=_NO_CONTENT,
        headers=tuple((str(name), value.encode()) for name, value in headers.items()),
        event_id=event_id,
    )


def source_urn(record: Any) -> str:
    """Who the event is from: ``urn:lookup-audit:<tenant>:<service>``, parts empty if unknown."""
    service = getattr(record, "service", None)
    return _urn(record.tenant or "", (service.name if service else None) or "")


@lru_cache(maxsize=1024)
def _urn(tenant: str, service: str) -> str:
    return f"urn:lookup-audit:{quote(tenant, safe='')}:{quote(service, safe='')}"


def _trace_headers(trace_id: str, span_id: str, arrival: Arrival) -> dict[str, str]:
    """Exactly one trace context: the event's, else the request's, else a new one."""
    if TRACE_ID.fullmatch(trace_id):
        span_id = span_id.lower()
        if not SPAN_ID.fullmatch(span_id):
            span_id = _new_id(8)
        return {Header.TRACE_PARENT: f"00-{trace_id}-{span_id}-01"}
    if arrival.trace_parent:
        headers: dict[str, str] = {Header.TRACE_PARENT: arrival.trace_parent}
        if arrival.trace_state:
            headers[Header.TRACE_STATE] = arrival.trace_state
        return headers
    return {Header.TRACE_PARENT: f"00-{_new_id(16)}-{_new_id(8)}-01"}


def _new_id(size: int) -> str:
    # The last byte is set, so that the id is never all zeros, which would be no id.
    return (secrets.token_bytes(size - 1) + b"\x01").hex()
