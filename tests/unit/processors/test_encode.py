import logging
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookup_audit.processors.batch import EncodedBatch
from lookup_audit.processors.encode import Encoder, event_type_of, received_at
from lookup_audit.schemas.names import EventType, Header, Reason, Topic
from lookup_audit.schemas.ruleset import Registry
from tests.support.events import encode, make_judgement, make_lookup, make_outcome
from tests.support.strategies import examples
from tests.support.twins import in_order, make_encoder, make_message


def rows(batch: EncodedBatch, kind: str) -> list[dict[str, Any]]:
    return list(batch.rows[kind].to_pylist()) if kind in batch.rows else []


def test_every_message_becomes_a_row_or_a_dead_letter_with_its_reason() -> None:
    good = make_lookup()
    batch = make_encoder().encode(
        in_order([encode(good), None, b"", b"not-json", b"[1]", encode({"event_id": "x"})])
    )
    assert [row["event_id"] for row in rows(batch, "lookup")] == [good["event_id"]]
    found = [(d.message.offset, d.rejected.reason) for d in batch.dead_letters]
    assert found == [
        (1, Reason.TOMBSTONE),
        (2, Reason.EMPTY_VALUE),
        (3, Reason.INVALID_JSON),
        (4, Reason.NOT_AN_OBJECT),
        (5, Reason.MISSING_FIELD),
    ]
    assert batch.next_offsets == {(Topic.RESULTS, 0): 6}


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        pytest.param((), EventType.JUDGEMENT, id="none-told-by-shape"),
        pytest.param(
            ((Header.TYPE.value, EventType.OUTCOME.value.encode()),),
            EventType.OUTCOME,
            id="ce_type",
        ),
        pytest.param(((Header.TYPE.value, b"something.else"),), None, id="unknown-ce_type"),
        pytest.param(
            ((Header.TYPE.value, EventType.LOOKUP.value.encode()),),
            None,
            id="ce_type-of-other-topic",
        ),
    ],
)
def test_the_type_is_told_by_header_else_by_shape(
    headers: tuple[tuple[str, bytes], ...], expected: EventType | None
) -> None:
    message = make_message(encode(make_judgement()), topic=Topic.OUTCOMES, headers=headers)
    assert event_type_of(message) is expected


def test_outcomes_and_judgements_share_a_topic_and_part_into_tables() -> None:
    outcome, judgement = make_outcome(), make_judgement()
    batch = make_encoder().encode(
        in_order([encode(outcome), encode(judgement)], topic=Topic.OUTCOMES)
    )
    assert rows(batch, "outcome")[0]["outcome_id"] == outcome["outcome_id"]
    assert rows(batch, "judgement")[0]["judgement_id"] == judgement["judgement_id"]


def test_a_replay_months_later_judges_time_as_the_first_reading_did() -> None:
    sent = datetime(2026, 1, 10, 12, tzinfo=UTC)
    stamp = int(sent.timestamp() * 1000)
    events = {
        "ahead": make_lookup(occurred_at="2026-01-11T12:00:00Z"),
        "late": make_lookup(occurred_at="2026-01-09T11:59:59Z"),
        "now": make_lookup(occurred_at="2026-01-10T12:00:00Z"),
        "old": make_lookup(occurred_at="2025-11-01T00:00:00Z"),
    }
    messages = in_order([encode(e) for e in events.values()], timestamp_ms=stamp)
    for read_at in (sent, sent + timedelta(days=300)):
        encoder = make_encoder(lambda now=read_at: now, timedelta(days=30))  # type: ignore[misc]
        batch = encoder.encode(messages)
        assert [row["late"] for row in rows(batch, "lookup")] == [True, False]
        reasons = [d.rejected.reason for d in batch.dead_letters]
        assert reasons == [Reason.FUTURE_TIME, Reason.EXPIRED]


@pytest.mark.parametrize("stamp", [-1, 0, 2**62], ids=["none", "epoch", "absurd"])
def test_a_record_time_that_cannot_be_true_is_not_believed(stamp: int) -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    assert received_at(make_message(b"", timestamp_ms=stamp), now) == now
    batch = make_encoder().encode([make_message(encode(make_lookup()), timestamp_ms=stamp)])
    assert len(rows(batch, "lookup")) == 1


class _Broken(Registry):
    """A registry that fails on one service, as a fault of ours would."""

    def in_force(self, service: str, mode: str, at: str) -> None:
        if service == "poison":
            raise ZeroDivisionError


def test_a_fault_of_ours_sets_one_message_aside_and_stops_nobody(
    caplog: pytest.LogCaptureFixture,
) -> None:
    encoder = make_encoder()
    encoder.registry = _Broken()
    events = [make_lookup() for _ in range(7)]
    events[3]["service"] = {"name": "poison"}
    with caplog.at_level(logging.ERROR):
        batch = encoder.encode(in_order([encode(e) for e in events]))
    assert [d.message.offset for d in batch.dead_letters] == [3]
    assert batch.dead_letters[0].rejected.reason is Reason.INTERNAL_ERROR
    assert [r["event_id"] for r in rows(batch, "lookup")] == [
        e["event_id"] for i, e in enumerate(events) if i != 3
    ]
    assert batch.next_offsets == {(Topic.RESULTS, 0): 7}
    assert "dead-lettered" in caplog.text


_ENCODER: Encoder = make_encoder()


@examples(150)
@given(st.lists(st.binary(max_size=60) | st.none() | st.just(encode(make_lookup())), max_size=8))
def test_any_bytes_end_as_exactly_one_fate(values: list[bytes | None]) -> None:
    batch = _ENCODER.encode(in_order(values))
    kept = batch.rows["lookup"].num_rows if "lookup" in batch.rows else 0
    assert kept + len(batch.dead_letters) == len(values) == batch.messages
