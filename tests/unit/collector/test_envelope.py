import re
from collections import Counter
from datetime import UTC, datetime
from typing import Any

import pytest

from lookup_audit.collector.envelope import Arrival, read_trace_parent, wrap
from lookup_audit.collector.publishing import OutgoingRecord
from lookup_audit.schemas.decode import CODECS, Decoded
from lookup_audit.schemas.names import EventType, Header, Topic
from tests.support.events import encode, make_judgement, make_lookup, make_outcome

NOON = datetime(2026, 11, 30, 12, 0, 0, 250000, tzinfo=UTC)
TRACE, SPAN = "a1b2c3d4e5f60718293a4b5c6d7e8f90", "0f1e2d3c4b5a6978"
REQUEST = f"00-{'c' * 32}-{'d' * 16}-03"


def wrapped(
    event: dict[str, Any], event_type: EventType = EventType.LOOKUP, arrival: Arrival | None = None
) -> OutgoingRecord:
    decoded = CODECS[event_type].decode(encode(event))
    assert isinstance(decoded, Decoded)
    return wrap(decoded, event_type, arrival or Arrival(NOON))


def headers(record: OutgoingRecord) -> dict[str, str]:
    return {name: value.decode() for name, value in record.headers}


def test_a_record_carries_the_events_own_bytes() -> None:
    event = make_lookup()
    raw = b" " + encode(event).replace(b'","', b'" , "')
    decoded = CODECS[EventType.LOOKUP].decode(raw)
    assert isinstance(decoded, Decoded)
    assert wrap(decoded, EventType.LOOKUP, Arrival(NOON)).value == raw


def test_a_lookup_gets_cloudevents_headers_in_binary_mode() -> None:
    event = make_lookup(
        event_id="保-1",
        trace_id=TRACE,
        span_id=SPAN,
        tenant="a c",
        occurred_at="2026-11-30T11:00:00Z",
    )
    assert headers(wrapped(event)) == {
        "content-type": "application/json",
        "ce_specversion": "1.0",
        "ce_id": "保-1",
        "ce_source": "urn:lookup-audit:a%20c:kb-retrieval",
        "ce_type": "lookup_audit.lookup_result.v1",
        "ce_dataschema": "https://lookup-audit.dev/schemas/lookup-result/1.0.json",
        "ce_time": "2026-11-30T11:00:00Z",
        "ce_recordedtime": "2026-11-30T12:00:00.250000Z",
        "ce_subject": TRACE,
        "traceparent": f"00-{TRACE}-{SPAN}-01",
    }


@pytest.mark.parametrize(
    ("event", "event_type", "topic"),
    [
        (make_lookup(), EventType.LOOKUP, Topic.RESULTS),
        (make_outcome(), EventType.OUTCOME, Topic.OUTCOMES),
        (make_judgement(), EventType.JUDGEMENT, Topic.OUTCOMES),
    ],
)
def test_each_type_has_its_topic_and_every_header_once(
    event: dict[str, Any], event_type: EventType, topic: Topic
) -> None:
    record = wrapped(event, event_type)
    assert record.topic is topic
    assert headers(record)[Header.TYPE] == event_type
    assert set(Counter(name for name, _ in record.headers).values()) == {1}


def test_the_key_is_the_trace_id_or_else_the_event_id() -> None:
    assert wrapped(make_lookup(trace_id=TRACE)).key == TRACE.encode()
    assert wrapped(make_lookup(trace_id=None, event_id="e-1")).key == b"e-1"
    assert wrapped(make_lookup(trace_id="", event_id="e-1")).key == b"e-1"
    assert wrapped(make_outcome(outcome_id="o-1"), EventType.OUTCOME).key == b"o-1"
    assert wrapped(make_judgement(judgement_id="j-1"), EventType.JUDGEMENT).key == b"j-1"


def test_the_audited_retrieval_is_the_trace_context_even_when_the_request_has_one() -> None:
    arrival = Arrival(NOON, REQUEST, "vendor=1")
    found = headers(wrapped(make_lookup(trace_id=TRACE.upper(), span_id=SPAN), arrival=arrival))
    assert found[Header.TRACE_PARENT] == f"00-{TRACE}-{SPAN}-01"
    assert Header.TRACE_STATE not in found


@pytest.mark.parametrize("span_id", [None, "", "span-1", "0" * 16])
def test_a_trace_without_a_usable_span_keeps_its_trace_id(span_id: str | None) -> None:
    found = headers(wrapped(make_lookup(trace_id=TRACE, span_id=span_id)))
    assert re.fullmatch(f"00-{TRACE}-(?!0{{16}})[0-9a-f]{{16}}-01", found[Header.TRACE_PARENT])


@pytest.mark.parametrize("trace_id", [None, "", "trace-1", "0" * 32, TRACE[:-1]])
def test_without_a_usable_trace_id_the_request_decides_or_a_new_trace_begins(
    trace_id: str | None,
) -> None:
    event = make_lookup(trace_id=trace_id)
    found = headers(wrapped(event, arrival=Arrival(NOON, REQUEST, "vendor=1")))
    assert (found[Header.TRACE_PARENT], found[Header.TRACE_STATE]) == (REQUEST, "vendor=1")
    fresh = {headers(wrapped(event))[Header.TRACE_PARENT] for _ in range(3)}
    assert len(fresh) == 3
    assert all(read_trace_parent(value) == value for value in fresh)


@pytest.mark.parametrize(
    "value",
    [
        None,
        "",
        "nonsense",
        REQUEST.upper(),
        f"ff-{'c' * 32}-{'d' * 16}-01",
        f"00-{'0' * 32}-{'d' * 16}-01",
        f"00-{'c' * 32}-{'0' * 16}-01",
        REQUEST + "-extra",
    ],
)
def test_an_invalid_traceparent_of_a_request_is_not_passed_on(value: str | None) -> None:
    assert read_trace_parent(value) == ""
