import json
import logging
import math
import os
import threading
import time
from collections import Counter
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lookup_audit.collector import EmitterStats, LookupEmitter
from lookup_audit.collector.emitter.transport import Answer, Delivered, TryAgain, TryInParts
from lookup_audit.schemas.errors import ConfigError
from lookup_audit.schemas.lookup import LookupResult
from lookup_audit.schemas.names import EventType
from tests.support.events import encode, make_judgement, make_lookup, make_outcome
from tests.unit.collector.emitter.receiving import SteeredTransport, emitting


def accounted(stats: EmitterStats) -> bool:
    out = stats.accepted + sum(stats.rejected.values()) + sum(stats.dropped.values())
    return stats.emitted + stats.recovered == out + stats.queued + stats.pending


def test_what_is_emitted_arrives_in_order_with_its_kind() -> None:
    transport = SteeredTransport()
    with emitting(transport) as emitter:
        lookup, outcome, judgement = make_lookup(), make_outcome(), make_judgement()
        assert emitter.emit(lookup)
        assert emitter.emit_outcome(outcome)
        assert emitter.emit_judgement(judgement)
        assert emitter.flush()
    assert [kind for kind, _ in transport.received] == list(EventType)
    assert transport.events == [lookup, outcome, judgement]


def test_tenant_service_and_unbroken_numbers_are_added_where_the_event_has_none() -> None:
    transport = SteeredTransport()
    with emitting(transport, tenant="acme", service="kb", service_version="2") as emitter:
        for _ in range(3):
            emitter.emit(make_lookup(tenant=None, service=None))
        emitter.emit(make_lookup(tenant="other", service={"name": "mine"}))
        emitter.flush()
        boot = emitter.instance_id
    found = [(e["tenant"], e["service"]) for e in transport.events]
    expected = {"name": "kb", "version": "2", "instance_id": boot}
    assert found == [
        ("acme", {**expected, "sequence": 1}),
        ("acme", {**expected, "sequence": 2}),
        ("acme", {**expected, "sequence": 3}),
        ("other", {**expected, "name": "mine", "sequence": 4}),
    ]


def test_an_event_with_an_instance_of_its_own_keeps_it() -> None:
    transport = SteeredTransport()
    with emitting(transport, service="kb") as emitter:
        emitter.emit(make_lookup())
        emitter.flush()
    assert transport.events[0]["service"] == make_lookup()["service"]


def test_a_model_is_taken_like_a_mapping() -> None:
    transport = SteeredTransport()
    event = LookupResult.model_validate_json(encode(make_lookup()))
    with emitting(transport) as emitter:
        emitter.emit(event)
        emitter.flush()
    assert LookupResult.model_validate_json(transport.received[0][1]) == event


def test_an_event_changed_after_the_call_arrives_as_it_was() -> None:
    transport = SteeredTransport()
    event = make_lookup()
    with emitting(transport) as emitter:
        emitter.emit(event)
        event["candidates"][0]["excerpt"] = "changed"
        event["mode"] = "hybrid"
        emitter.flush()
    assert transport.events[0]["mode"] == "dense"
    assert transport.events[0]["candidates"][0]["excerpt"] != "changed"


def test_times_and_numbers_of_numeric_libraries_are_written_as_json() -> None:
    class Scalar:
        def item(self) -> float:
            return 0.5

    transport = SteeredTransport()
    moment = datetime(2026, 11, 30, 12, tzinfo=UTC)
    with emitting(transport) as emitter:
        emitter.emit(make_lookup(occurred_at=moment, quality_score=Scalar()))
        emitter.flush()
    assert transport.events[0]["occurred_at"] == "2026-11-30T12:00:00Z"
    assert transport.events[0]["quality_score"] == 0.5


def test_nan_half_characters_and_huge_numbers_are_not_repaired_in_silence() -> None:
    transport = SteeredTransport()
    with emitting(transport) as emitter:
        emitter.emit(make_lookup(quality_score=math.nan))
        emitter.emit(make_lookup(run_id="a\ud800"))
        emitter.emit(make_lookup(top_k=2**70))
        emitter.flush()
    nan, half, huge = transport.events
    assert math.isnan(nan["quality_score"])
    assert half["run_id"] == "a\ud800"
    assert huge["top_k"] == 2**70


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        pytest.param({"a": object()}, "unencodable", id="object"),
        pytest.param({"a": "x" * 2000}, "too_large", id="large"),
        pytest.param(None, "internal_error", id="none"),
        pytest.param(17, "internal_error", id="number"),
    ],
)
def test_what_cannot_be_sent_is_counted_and_never_raised(
    event: Any, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    transport = SteeredTransport()
    with emitting(transport, max_event_bytes=1024) as emitter:
        assert not emitter.emit(event)
        stats = emitter.stats()
    assert stats.dropped == {reason: 1}
    assert accounted(stats)
    caplog.clear()


def test_an_event_that_holds_itself_is_dropped(caplog: pytest.LogCaptureFixture) -> None:
    event = make_lookup()
    event["further"] = event
    with emitting(SteeredTransport()) as emitter:
        assert not emitter.emit(event)
        assert emitter.stats().dropped == {"unencodable": 1}
    caplog.clear()


def test_a_full_queue_drops_the_newest_at_once_and_leaves_a_hole_in_the_numbers() -> None:
    transport = SteeredTransport()
    transport.open.clear()
    with emitting(transport, max_queue_events=3, batch_events=1) as emitter:
        emitter.emit(make_lookup(service=None))
        while emitter.stats().queued:
            time.sleep(0.005)
        started = time.monotonic()
        taken = [emitter.emit(make_lookup(service=None)) for _ in range(5)]
        assert time.monotonic() - started < 1.0
        assert taken == [True, True, True, False, False]
        transport.open.set()
        emitter.flush()
        emitter.emit(make_lookup(service=None))
        emitter.flush()
        stats = emitter.stats()
    assert stats.dropped == {"queue_full": 2}
    assert [e["service"]["sequence"] for e in transport.events] == [1, 2, 3, 4, 7]
    assert accounted(stats)


def test_bytes_bound_the_queue_as_events_do() -> None:
    transport = SteeredTransport()
    transport.open.clear()
    with emitting(transport, max_queue_bytes=20_000, max_event_bytes=20_000) as emitter:
        taken = [emitter.emit(make_lookup(run_id="x" * 5000)) for _ in range(20)]
        assert not all(taken)
        assert emitter._queue.bytes <= 20_000


def test_a_caller_that_may_wait_waits_no_longer_than_its_bound() -> None:
    transport = SteeredTransport()
    transport.open.clear()
    with emitting(transport, max_queue_events=1, batch_events=1, block_seconds=0.2) as emitter:
        emitter.emit(make_lookup())
        while emitter.stats().queued:
            time.sleep(0.005)
        emitter.emit(make_lookup())
        started = time.monotonic()
        assert not emitter.emit(make_lookup())
        assert 0.2 <= time.monotonic() - started < 5.0
        threading.Timer(0.05, transport.open.set).start()
        emitter._config = emitter._config.model_copy(update={"block_seconds": 5.0})
        assert emitter.emit(make_lookup())


def test_a_failed_send_is_tried_again_until_it_works(caplog: pytest.LogCaptureFixture) -> None:
    answers: list[Answer] = [TryAgain("down"), TryAgain("busy", 0.02)]
    transport = SteeredTransport(lambda kind, values: answers.pop(0) if answers else Delivered())
    with emitting(transport) as emitter:
        events = [make_lookup() for _ in range(5)]
        for event in events:
            emitter.emit(event)
        emitter.flush()
        assert emitter.stats().retries == 2
    assert transport.events == events
    assert "receiver does not take them: down" in caplog.text


def test_a_transport_that_raises_is_tried_again() -> None:
    failures = [RuntimeError("bug")]

    def reply(kind: EventType, values: object) -> Answer:
        if failures:
            raise failures.pop()
        return Delivered()

    transport = SteeredTransport(reply)
    with emitting(transport) as emitter:
        emitter.emit(make_lookup())
        assert emitter.flush()
        assert emitter.stats().accepted == 1


def test_rejections_are_counted_by_reason() -> None:
    transport = SteeredTransport(lambda kind, values: Delivered(Counter({"wrong_type": 1})))
    with emitting(transport) as emitter:
        emitter.emit(make_lookup())
        emitter.flush()
        stats = emitter.stats()
    assert (stats.accepted, stats.rejected) == (0, {"wrong_type": 1})


def test_a_batch_refused_as_a_whole_costs_only_the_event_that_is_at_fault() -> None:
    def reply(kind: EventType, values: Any) -> Answer:
        poisoned = any(b"poison" in value for value in values)
        return TryInParts("too_large") if poisoned else Delivered()

    transport = SteeredTransport(reply)
    transport.open.clear()
    with emitting(transport) as emitter:
        events = [make_lookup(run_id="poison" if i == 5 else "fine") for i in range(12)]
        for event in events:
            emitter.emit(event)
        transport.open.set()
        emitter.flush()
        stats = emitter.stats()
    assert stats.rejected == {"too_large": 1}
    assert transport.events == [e for e in events if e["run_id"] == "fine"]


def test_batches_keep_to_their_limits() -> None:
    transport = SteeredTransport()
    transport.open.clear()
    with emitting(transport, batch_events=4) as emitter:
        for _ in range(11):
            emitter.emit(make_lookup())
        transport.open.set()
        emitter.flush()
    assert max(transport.batches) <= 4
    assert sum(transport.batches) == 11


def test_after_close_events_are_dropped_and_counted() -> None:
    with emitting(SteeredTransport()) as emitter:
        emitter.emit(make_lookup())
        emitter.close()
        emitter.close()
        assert not emitter.emit(make_lookup())
        stats = emitter.stats()
    assert (stats.accepted, stats.dropped) == (1, {"closed": 1})


def test_close_ends_in_time_and_counts_what_it_could_not_deliver() -> None:
    transport = SteeredTransport(lambda kind, values: TryAgain("down"))
    with emitting(transport, retry_seconds=5.0) as emitter:
        for _ in range(7):
            emitter.emit(make_lookup())
        started = time.monotonic()
        emitter.close(0.3)
        assert time.monotonic() - started < 5.0
        stats = emitter.stats()
    assert stats.dropped == {"unsent_at_close": 7}
    assert accounted(stats)


@settings(max_examples=15, deadline=None)
@given(
    plan=st.lists(st.sampled_from(["ok", "again", "parts", "reject"]), max_size=8),
    count=st.integers(0, 30),
    capacity=st.integers(1, 40),
)
def test_whatever_happens_every_event_is_in_exactly_one_line_of_the_account(
    plan: list[str], count: int, capacity: int
) -> None:
    script = list(plan)

    def reply(kind: EventType, values: Any) -> Answer:
        step = script.pop(0) if script else "ok"
        if step == "again":
            return TryAgain("down")
        if step == "parts":
            return TryInParts("http_400")
        return Delivered(Counter({"wrong_type": 1} if step == "reject" else {}))

    logging.getLogger("lookup_audit.collector.emitter.worker").setLevel(logging.ERROR)
    with emitting(SteeredTransport(reply), max_queue_events=capacity, batch_events=5) as emitter:
        for _ in range(count):
            emitter.emit(make_lookup())
        emitter.close(5)
        stats = emitter.stats()
    assert accounted(stats)
    assert stats.queued == stats.pending == 0
    assert stats.emitted == count


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_child_has_a_boot_of_its_own_and_leaves_the_parents_events_alone() -> None:
    transport = SteeredTransport()
    transport.open.clear()
    with emitting(transport, service="kb") as emitter:
        emitter.emit(make_lookup(service=None))
        boot = emitter.instance_id
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            # Nothing of the test framework may run in here.
            try:
                transport.open.set()
                transport.received.clear()
                fresh = emitter.stats() == EmitterStats()
                emitter.emit(make_lookup(service=None))
                delivered = emitter.flush()
                found = [event["service"] for event in transport.events]
                os.write(writer, json.dumps([fresh, delivered, found]).encode())
            finally:
                os._exit(0)
        os.close(writer)
        os.waitpid(child, 0)
        with os.fdopen(reader, "rb") as pipe:
            fresh, delivered, found = json.loads(pipe.read())
        transport.open.set()
        emitter.flush()
    assert (fresh, delivered) == (True, True)
    assert [service["sequence"] for service in found] == [1]
    assert found[0]["instance_id"] != boot
    assert [e["service"]["instance_id"] for e in transport.events] == [boot]


def test_an_emitter_that_does_not_know_where_to_send_says_what_to_set(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("LOOKUP_AUDIT_URL", raising=False)
    with pytest.raises(ConfigError, match="set LOOKUP_AUDIT_URL"):
        LookupEmitter()


def test_wrong_settings_are_all_named() -> None:
    with pytest.raises(ConfigError) as caught:
        LookupEmitter("ftp://x", batch_events=0, colour="red")
    assert [line.split(":")[0] for line in str(caught.value).splitlines()] == [
        "url",
        "batch_events",
        "colour",
    ]


def test_the_token_is_never_shown() -> None:
    emitter = LookupEmitter("http://127.0.0.1:1", token="la_secret")
    try:
        assert "la_secret" not in repr(emitter._config)
    finally:
        emitter.close(0)
