"""Parents that come in a later export: joined in time, never lost, never counted twice."""

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from lookup_audit.collector.memory import MemoryPublisher
from lookup_audit.collector.otlp.joining import Joiner, prune
from lookup_audit.collector.otlp.mapping import map_trace
from lookup_audit.collector.otlp.spans import Span
from lookup_audit.collector.otlp.spool import Spool
from tests.unit.collector.otlp.mapped import spans_of
from tests.unit.collector.otlp.payloads import NOW, TRACE, encode, request, retriever, span
from tests.unit.collector.running import Running
from tests.unit.collector.running import running as serve

running = partial(serve, clock=lambda: NOW)

CHILD = retriever("1", "a", parent="9")
TOOL = span("9", {"openinference.span.kind": "TOOL", "tool.id": "call-1"}, end=200)
ROOT = span("9", {"session.id": "s-1"}, end=200)


def post(collector: Running, *spans: dict[str, Any]) -> int:
    body = encode(request(*spans))
    return collector.call("POST", "/v1/traces", body, {"Content-Type": "application/json"}).status


def events(collector: Running) -> list[dict[str, Any]]:
    return [json.loads(value) for value in collector.values]


def until_published(collector: Running, count: int, seconds: float = 15) -> list[dict[str, Any]]:
    give_up = time.monotonic() + seconds
    while len(collector.values) < count:
        assert time.monotonic() < give_up
        time.sleep(0.02)
    return events(collector)


@contextmanager
def joining(
    directory: Path, publisher: MemoryPublisher | None = None, **settings: Any
) -> Iterator[Running]:
    settings = {"otlp_join_seconds": 30.0} | settings
    with running(publisher, otlp_spool_dir=directory / "spool", **settings) as collector:
        yield collector


def files(directory: Path) -> list[str]:
    return sorted(os.listdir(directory / "spool"))


# --- over HTTP ------------------------------------------------------------------------------


def test_a_parent_in_a_later_export_is_joined(tmp_path: Path) -> None:
    with joining(tmp_path) as collector:
        assert post(collector, CHILD) == 200
        assert (collector.values, len(files(tmp_path))) == ([], 1)
        assert post(collector, TOOL) == 200
        [event] = events(collector)
        assert files(tmp_path) == []
    assert event["tool_call_id"] == "call-1"
    assert "parent_not_seen" not in event["degradations"]


def test_a_trace_whose_root_has_come_does_not_wait(tmp_path: Path) -> None:
    with joining(tmp_path) as collector:
        assert post(collector, CHILD, ROOT) == 200
        assert [event["run_id"] for event in events(collector)] == ["s-1"]
        assert files(tmp_path) == []


def test_a_parent_that_does_not_come_is_not_waited_for_long(tmp_path: Path) -> None:
    with joining(tmp_path, otlp_join_seconds=0.3) as collector:
        assert post(collector, CHILD) == 200
        [event] = until_published(collector, 1)
        assert "parent_not_seen" in event["degradations"]
        metrics = collector.call("GET", "/metrics").body.decode()
        assert "lookup_audit_ingest_spans_waiting 0.0" in metrics
    assert files(tmp_path) == []


def test_what_waits_is_published_when_the_collector_stops(tmp_path: Path) -> None:
    publisher = MemoryPublisher()
    with joining(tmp_path, publisher) as collector:
        post(collector, CHILD)
        assert collector.values == []
    assert len(publisher.records) == 1
    assert files(tmp_path) == []


def test_what_waits_survives_a_stop_without_a_broker(tmp_path: Path) -> None:
    down = MemoryPublisher()
    with joining(tmp_path, down) as collector:
        post(collector, CHILD)
        down.available = False
    assert (down.records, len(files(tmp_path))) == ([], 1)
    with joining(tmp_path) as collector:
        assert post(collector, TOOL) == 200
        [event] = events(collector)
    assert event["tool_call_id"] == "call-1"
    assert files(tmp_path) == []


def test_a_broker_that_comes_back_gets_what_waited(tmp_path: Path) -> None:
    publisher = MemoryPublisher()
    publisher.available = False
    with joining(tmp_path, publisher, otlp_join_seconds=0.1) as collector:
        assert post(collector, CHILD) == 200
        time.sleep(0.6)
        assert collector.values == []
        publisher.available = True
        assert len(until_published(collector, 1)) == 1


def test_a_failed_join_can_be_sent_again(tmp_path: Path) -> None:
    publisher = MemoryPublisher()
    with joining(tmp_path, publisher) as collector:
        post(collector, CHILD)
        publisher.available = False
        assert post(collector, TOOL) == 503
        publisher.available = True
        assert post(collector, TOOL) == 200
        assert len(events(collector)) == 1


def test_without_a_spool_nothing_waits() -> None:
    with running() as collector:
        assert post(collector, CHILD) == 200
        [event] = events(collector)
    assert "parent_not_seen" in event["degradations"]


def test_beyond_its_bytes_nothing_waits(tmp_path: Path) -> None:
    with joining(tmp_path, otlp_join_bytes=100) as collector:
        assert post(collector, CHILD) == 200
        assert len(events(collector)) == 1


def test_a_spool_that_cannot_be_written_is_a_503(tmp_path: Path) -> None:
    with joining(tmp_path) as collector:
        (tmp_path / "spool").rmdir()
        assert post(collector, CHILD) == 503
        (tmp_path / "spool").mkdir()
        assert post(collector, CHILD) == 200
        assert post(collector, TOOL) == 200
        assert len(events(collector)) == 1


@pytest.mark.parametrize(
    ("late", "reason"),
    [
        pytest.param(retriever("9", "a", "b"), "late_parent", id="parent"),
        pytest.param(retriever("2", "a", parent="1"), "late_child", id="child"),
        pytest.param(
            span("3", {"openinference.span.kind": "RERANKER"}, parent="9"),
            "late_reranker",
            id="reranker",
        ),
    ],
)
def test_what_comes_after_its_lookup_makes_no_second_one(late: dict[str, Any], reason: str) -> None:
    with running() as collector:
        assert [post(collector, CHILD), post(collector, late)] == [200, 200]
        metrics = collector.call("GET", "/metrics").body.decode()
        assert len(events(collector)) == 1
    assert f'reason="{reason}"' in metrics


def test_another_retrieval_of_the_same_trace_is_a_lookup_of_its_own() -> None:
    with running() as collector:
        post(collector, CHILD)
        post(collector, retriever("5", "b", parent="9", begin=300, end=310))
        assert len({event["event_id"] for event in events(collector)}) == 2


def test_an_answer_in_a_later_export_names_the_lookups_before_it() -> None:
    answer = span("9", {"lookup_audit.answer.outcome": "answered"}, end=500)
    with running() as collector:
        post(collector, CHILD)
        post(collector, answer)
        lookup, outcome = events(collector)
    assert outcome["lookup_event_ids"] == [lookup["event_id"]]


def test_what_would_be_refused_is_refused_before_it_waits(tmp_path: Path) -> None:
    old = retriever("1", "a", parent="9", trace="b" * 32)
    half = retriever("2", "a", parent="9", trace="c" * 32, query="half")
    body = encode(request(old, half)).replace(b'"half"', b'"\\ud83d"')
    headers = {"Content-Type": "application/json"}
    with joining(tmp_path, retention_days=1, clock=lambda: NOW + timedelta(days=3)) as collector:
        answer = collector.call("POST", "/v1/traces", body, headers)
    assert answer.json["partialSuccess"]["rejectedSpans"] == "2"
    assert files(tmp_path) == []


def test_an_event_refused_after_its_spans_were_acknowledged_goes_on_to_the_processor(
    tmp_path: Path,
) -> None:
    times = iter([NOW])
    publisher = MemoryPublisher()
    late = NOW + timedelta(days=800)
    with joining(tmp_path, publisher, clock=lambda: next(times, late)) as collector:
        assert post(collector, CHILD) == 200
    [record] = publisher.records
    assert json.loads(record.value)["trace_id"] == TRACE
    assert files(tmp_path) == []


# --- the joiner alone -----------------------------------------------------------------------


def finish(joiner: Joiner, traces: dict[str, list[Span]]) -> set[str]:
    free = set()
    for trace_id, spans in traces.items():
        free |= joiner.done(trace_id, map_trace(spans, joiner.past(trace_id)).past, spans)
    return free


def test_a_file_is_free_when_the_last_of_its_traces_is_done() -> None:
    joiner = Joiner(join_seconds=5, max_bytes=2**20)
    spans = spans_of(CHILD, retriever("1", "a", parent="9", trace="b" * 32))
    taken = joiner.take(spans, now=0)
    joiner.note_file(taken.held, "one")
    due = joiner.due(5.0)
    assert len(due) == 2
    assert joiner.due(6.0) == {}
    first, second = due.items()
    assert finish(joiner, dict([first])) == set()
    assert finish(joiner, dict([second])) == {"one"}
    assert (joiner.spans, joiner.bytes) == (0, 0)


def test_what_comes_while_a_trace_is_published_waits_on() -> None:
    joiner = Joiner(join_seconds=5, max_bytes=2**20)
    joiner.take(spans_of(CHILD), now=0)
    due = joiner.due(5.0)
    joiner.take(spans_of(retriever("7", "b", parent="9")), now=5.0)
    finish(joiner, due)
    assert joiner.spans == 1
    assert len(joiner.due(11.0)) == 1


def test_a_trace_put_back_is_due_again() -> None:
    joiner = Joiner(join_seconds=5, max_bytes=2**20)
    joiner.take(spans_of(CHILD), now=0)
    joiner.put_back(joiner.due(5.0))
    assert len(joiner.due(5.0)) == 1


def test_embeddings_without_a_retrieval_leave_in_time() -> None:
    joiner = Joiner(join_seconds=5, max_bytes=2**20)
    taken = joiner.take(
        spans_of(span("1", {"openinference.span.kind": "EMBEDDING"}, parent="9")), now=0
    )
    assert (len(taken.held), taken.ready) == (1, {})
    [(_, spans)] = joiner.due(5.0).items()
    mapped = map_trace(spans, joiner.past(spans[0].trace_id))
    assert mapped.ignored == {"embedding_without_retrieval": 1}


def test_what_has_no_part_in_a_retrieval_keeps_only_what_one_needs_of_it() -> None:
    told = {
        "openinference.span.kind": "CHAIN",
        "session.id": "s",
        "input.value": "x" * 100_000,
        "lookup_audit.answer.outcome": "answered",
    }
    [made] = spans_of(span("1", told))
    kept = {"openinference.span.kind", "session.id", "lookup_audit.answer.outcome"}
    assert prune(made).attributes.keys() == kept


# --- the spool alone ------------------------------------------------------------------------


def test_a_spool_gives_back_what_it_was_given(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool")
    spool.open()
    told = {"openinference.span.kind": "RETRIEVER", "retrieval.documents.0.document.score": "NaN"}
    spans = spans_of(span("1", told), CHILD)
    spans[0].attributes["retrieval.documents.0.document.score"] = float("inf")
    name = spool.write(spans)
    assert list(Spool(tmp_path / "spool").read()) == [(name, spans)]
    spool.delete([name, "gone"])
    assert list(spool.read()) == []


def test_a_spool_file_that_was_cut_is_set_aside(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool")
    spool.open()
    name = spool.write(spans_of(CHILD))
    path = tmp_path / "spool" / name
    path.write_bytes(path.read_bytes()[:-3])
    good = spool.write(spans_of(CHILD))
    assert [found for found, _ in spool.read()] == [good]
    assert path.with_suffix(".unreadable").exists()
