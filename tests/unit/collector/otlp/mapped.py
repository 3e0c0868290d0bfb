"""Spans in a line to events, for tests of the mapper."""

from collections.abc import Iterable
from typing import Any

from lookup_audit.collector.otlp import from_json
from lookup_audit.collector.otlp.mapping import Mapped, Past, map_trace
from lookup_audit.collector.otlp.spans import Span
from lookup_audit.schemas.decode import CODECS, Decoded
from lookup_audit.schemas.names import EventType
from tests.support.events import encode as encode_event
from tests.unit.collector.otlp.payloads import encode, request

Event = dict[str, Any]


def spans_of(*spans: Event, scope: str = "t") -> list[Span]:
    payload = from_json.read_traces(encode(request(*spans, scope=scope)))
    assert payload.faults == []
    return payload.spans


def mapped_of(spans: Iterable[Span], past: Past | None = None) -> Mapped:
    """Map one trace; every event must be acceptable and every span counted once."""
    spans = list(spans)
    mapped = map_trace(spans, past or Past())
    for kind, event, _ in mapped.events:
        decoded = CODECS[kind].decode(encode_event(event))
        assert isinstance(decoded, Decoded), decoded
        assert decoded.unknown_fields == ()
    ids = {span.span_id for span in spans}
    evaluations = {name for name in mapped.ignored if name.startswith("evaluation_")}
    ignored = sum(n for name, n in mapped.ignored.items() if name not in evaluations)
    assert mapped.used + ignored == len(ids)
    return mapped


def lookups_of(*spans: Event) -> list[Event]:
    events = mapped_of(spans_of(*spans)).events
    return [event for kind, event, _ in events if kind is EventType.LOOKUP]


def lookup_of(*spans: Event) -> Event:
    [event] = lookups_of(*spans)
    return event
