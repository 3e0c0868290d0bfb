"""Payloads of real instrumentations, and what each must become."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lookup_audit.collector.otlp import from_json, from_protobuf
from lookup_audit.collector.otlp.mapping import Past, map_trace
from lookup_audit.collector.otlp.spans import Payload, Span
from lookup_audit.schemas.decode import LOOKUPS, Decoded
from lookup_audit.schemas.names import EventType
from tests.support.events import encode
from tests.unit.collector.otlp.expected import EXPECTED

SAMPLES = Path(__file__).parents[3] / "samples" / "otlp"
# Too long to write down; looked at in a test of its own.
BULK = "lc_oi_k100_limits_10000"
READERS: dict[str, Callable[[bytes], Payload]] = {
    ".otlp.json": from_json.read_traces,
    ".otlp.pb": from_protobuf.read_traces,
}


def read(name: str, suffix: str = ".otlp.json") -> Payload:
    payload = READERS[suffix]((SAMPLES / (name + suffix)).read_bytes())
    assert payload.faults == []
    return payload


def lookups(spans: list[Span]) -> list[dict[str, Any]]:
    """The events of a request's spans, trace by trace, in order of their first spans."""
    traces: dict[str, list[Span]] = {}
    for span in spans:
        traces.setdefault(span.trace_id, []).append(span)
    events = []
    for trace in traces.values():
        mapped = map_trace(trace, Past())
        assert mapped.used + sum(mapped.ignored.values()) == len(trace)
        assert {kind for kind, *_ in mapped.events} <= {EventType.LOOKUP}
        events += [event for _, event, _ in mapped.events]
    return events


def test_every_sample_is_expected() -> None:
    names = {path.name.removesuffix(".otlp.json") for path in SAMPLES.glob("*.otlp.json")}
    assert names - {BULK} == EXPECTED.keys()


@pytest.mark.parametrize("suffix", READERS)
@pytest.mark.parametrize("name", EXPECTED)
def test_a_sample_becomes_what_was_written_down_for_it(name: str, suffix: str) -> None:
    found = lookups(read(name, suffix).spans)

    ids = [event["event_id"] for event in EXPECTED[name]]
    assert [event["event_id"] for event in found] == ids
    for event, expected in zip(found, EXPECTED[name], strict=True):
        candidates = [_readable(c) for c in event["candidates"]]
        assert candidates == [_readable(c) for c in expected["candidates"]]
        assert event | {"candidates": []} == expected | {"candidates": []}


def _readable(candidate: dict[str, Any]) -> dict[str, Any]:
    """Metadata by its content: spaces and escapes are the instrumentation's."""
    try:
        return candidate | {"metadata": json.loads(candidate["metadata"])}
    except (KeyError, ValueError):
        return candidate


@pytest.mark.parametrize("name", [*EXPECTED, BULK])
def test_what_a_sample_becomes_is_accepted_with_nothing_unknown(name: str) -> None:
    for event in lookups(read(name).spans):
        decoded = LOOKUPS.decode(encode(event))
        assert isinstance(decoded, Decoded), decoded
        assert decoded.unknown_fields == ()


def test_a_hundred_documents_keep_their_order() -> None:
    [event] = lookups(read(BULK).spans)

    candidates = event["candidates"]
    assert [c["original_rank"] for c in candidates] == list(range(1, 101))
    assert [c["chunk_id"] for c in candidates[:4]] == ["bulk-16", "bulk-57", "bulk-78", "bulk-70"]
    assert [c["document_id"] for c in candidates[:4]] == ["bulk-1", "bulk-5", "bulk-7", "bulk-7"]
    assert "truncated" not in event
    assert event["returned_count"] == 100


@pytest.mark.parametrize("name", [*EXPECTED, BULK])
def test_the_order_of_the_spans_changes_nothing(name: str) -> None:
    spans = read(name).spans

    def by_id(events: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
        return {event["event_id"]: event for event in events}

    assert by_id(lookups(spans)) == by_id(lookups(spans[::-1]))


@pytest.mark.parametrize("name", ["lc_oi_hide_outputs", "lc_oi_hide_retrieval_documents"])
def test_nothing_hidden_is_in_the_event(name: str) -> None:
    [event] = lookups(read(name).spans)

    text = json.dumps(event)
    assert "Vacation carry-over" not in text
    assert "hr-policy" not in text
    assert "__REDACTED__" not in text


def test_vectors_are_left_at_the_door_and_counted() -> None:
    assert read("hs_oi_embedding").vectors == 1
    assert read("li_tl_retriever").vectors == 2
    assert read("li_oi_hide_vectors").vectors == 0
    for name in ("hs_oi_embedding", "li_tl_retriever"):
        for span in read(name).spans:
            assert "0.31622776601683794, 0.0" not in str(span.attributes)
