import random
from typing import Any

import pyarrow as pa
import pytest

from lookup_audit.processors.encode import Encoder
from lookup_audit.processors.store import ClickHouseStore
from lookup_audit.schemas.errors import StoreRejectedError, UnavailableError
from lookup_audit.schemas.names import Reason, Topic
from tests.support.events import encode, make_candidate, make_judgement, make_lookup, make_outcome
from tests.support.twins import (
    CollectedDeadLetters,
    FailingStore,
    in_order,
    make_encoder,
    make_message,
    make_sink,
)

pytest_plugins = ["tests.support.engine"]


def count(store: ClickHouseStore, view: str) -> int:
    return int(store.query(f"SELECT count() FROM audit.{view}").scalar())


def test_a_batch_written_twice_is_stored_once(store: ClickHouseStore) -> None:
    batch = make_encoder().encode(in_order([encode(make_lookup()), b"bad", None]))
    sink = make_sink(store)
    assert sink.write(batch).stored == {"lookup": 1}
    again = sink.write(batch)
    assert (again.stored, again.replays, again.dead_letters) == ({}, 3, [])
    assert [count(store, v) for v in ("lookups", "dead_letters", "duplicates")] == [1, 2, 0]


def test_other_batch_cuts_give_the_same_rows(store: ClickHouseStore) -> None:
    events = [encode(make_lookup()) for _ in range(60)]
    messages = in_order(events)
    encoder, sink = make_encoder(), make_sink(store)
    sink.write(encoder.encode(messages[:40]))
    for start in (0, 25, 33, 50):
        sink.write(encoder.encode(messages[start : start + 30]))
    assert count(store, "lookups") == 60
    assert count(store, "duplicates") == 0


def test_the_same_content_from_elsewhere_is_a_duplicate(store: ClickHouseStore) -> None:
    event = make_lookup()
    respelt = (" " + encode(dict(reversed(event.items()))).decode()).encode()
    sink, encoder = make_sink(store), make_encoder()
    sink.write(encoder.encode([make_message(encode(event), 0)]))
    written = sink.write(
        encoder.encode([make_message(encode(event), 1), make_message(respelt, 0, partition=1)])
    )
    assert (written.duplicates, written.conflicts) == (2, 0)
    assert [count(store, v) for v in ("lookups", "duplicates", "id_conflicts")] == [1, 2, 0]


def test_other_content_under_one_id_is_a_conflict_and_the_first_counts(
    store: ClickHouseStore,
) -> None:
    first = make_lookup()
    second = first | {"query": {"text": "another question"}}
    batch = make_encoder().encode(in_order([encode(first), encode(second)]))
    make_sink(store).write(batch)
    assert store.query("SELECT raw FROM audit.lookups").scalar() == encode(first).decode()
    conflict = store.query("SELECT event_id, raw, first_offset FROM audit.id_conflicts")
    assert conflict == [(first["event_id"], encode(second).decode(), 0)]


def test_an_id_counts_once_within_its_tenant(store: ClickHouseStore) -> None:
    one, other = make_lookup(tenant="a", event_id="1"), make_lookup(tenant="b", event_id="1")
    make_sink(store).write(make_encoder().encode(in_order([encode(one), encode(other)])))
    assert count(store, "lookups") == 2
    assert count(store, "id_conflicts") == 0


def test_two_processors_that_store_one_id_at_once_leave_one_row(store: ClickHouseStore) -> None:
    class Blind(FailingStore):
        """Answers the question before the insert as if nothing were stored yet."""

        asked = 0

        def query(self, sql: str, parameters: Any = None) -> Any:
            rows = super().query(sql, parameters)
            if "event_ids" in sql:
                self.asked += 1
                if self.asked == 1:
                    rows.clear()
            return rows

    event = make_lookup()
    encoder = make_encoder()
    make_sink(store).write(encoder.encode([make_message(encode(event), 5, partition=0)]))
    make_sink(Blind(store)).write(encoder.encode([make_message(encode(event), 7, partition=1)]))
    rows = store.query("SELECT kafka_partition, kafka_offset FROM audit.lookups")
    assert rows == [(0, 5)]
    assert store.query("SELECT count() FROM audit_store.event_ids").scalar() == 1
    assert store.query("SELECT kafka_offset FROM audit.duplicates") == [(7,)]
    assert store.query("SELECT sum(n) FROM audit.precise_rate").scalar() == 1


@pytest.mark.parametrize("fail_at", range(1, 8))
def test_a_connection_that_breaks_after_any_insert_doubles_and_loses_nothing(
    fail_at: int, store: ClickHouseStore
) -> None:
    lookup = make_lookup()
    outcome = make_outcome(lookup_event_ids=[lookup["event_id"]])
    judgement = make_judgement(outcome_id=outcome["outcome_id"])
    results = in_order([encode(lookup), encode(lookup), b"bad"])
    answers = in_order([encode(outcome), encode(judgement)], topic=Topic.OUTCOMES)
    batch = make_encoder().encode([*results, *answers])
    failing = FailingStore(store, fail_at=frozenset({fail_at}))
    sink = make_sink(failing)
    for _ in range(3):
        try:
            sink.write(batch)
            break
        except UnavailableError:
            continue
    views = ("lookups", "outcomes", "judgements", "cells", "duplicates", "dead_letters")
    assert [count(store, view) for view in views] == [1] * 6
    assert store.query("SELECT count() FROM audit_store.event_ids").scalar() == 3


def test_one_row_the_store_refuses_is_set_aside_alone(store: ClickHouseStore) -> None:
    class Refusing(FailingStore):
        """Refuses every lookups batch that holds the bad event, as a bad value would."""

        def insert(self, table: str, batch: pa.Table, *, token: str) -> None:
            if table.endswith(".lookups") and "bad" in batch["event_id"].to_pylist():
                raise StoreRejectedError("Cannot parse value")
            super().insert(table, batch, token=token)

    ids = [f"evt-{n}" for n in range(20)]
    ids[13] = "bad"
    letters = CollectedDeadLetters()
    batch = make_encoder().encode(in_order([encode(make_lookup(event_id=i)) for i in ids]))
    written = make_sink(Refusing(store), letters).write(batch)
    assert written.stored == {"lookup": 19}
    assert [(d.message.offset, d.rejected.reason) for d in letters.letters] == [
        (13, Reason.REJECTED_BY_STORE)
    ]
    assert store.query("SELECT event_id FROM audit.dead_letters") == [("bad",)]


def test_a_missing_table_never_empties_the_topic_into_the_dead_letters(
    store: ClickHouseStore,
) -> None:
    class Missing(FailingStore):
        def insert(self, table: str, batch: pa.Table, *, token: str) -> None:
            if table.endswith(".lookups"):
                raise StoreRejectedError("Table audit_store.lookups does not exist")
            super().insert(table, batch, token=token)

    letters = CollectedDeadLetters()
    batch = make_encoder().encode(in_order([encode(make_lookup()) for _ in range(9)]))
    with pytest.raises(StoreRejectedError):
        make_sink(Missing(store), letters).write(batch)
    assert letters.letters == []


def test_what_was_dead_lettered_stays_so_when_its_offset_is_read_again(
    store: ClickHouseStore,
) -> None:
    from datetime import timedelta

    event = make_lookup()
    message = make_message(encode(event), 3, timestamp_ms=-1)
    strict = make_encoder(retention=timedelta(0))
    sink = make_sink(store)
    sink.write(strict.encode([message]))
    sink.write(make_encoder().encode([message]))
    assert (count(store, "lookups"), count(store, "dead_letters")) == (0, 1)
    # At a new offset it gets another try.
    sink.write(make_encoder().encode([make_message(encode(event), 4)]))
    assert count(store, "lookups") == 1


def test_text_ids_and_numbers_come_back_as_they_were_sent(store: ClickHouseStore) -> None:
    text = "保证期 🛡️ garantía \x00 ' \\ \t end"
    nothing: dict[str, Any] = dict.fromkeys(
        ("dense_distance", "similarity_score", "quality_score", "layer", "tokens")
    )
    event = make_lookup(
        query={"text": text},
        candidates=[
            make_candidate(chunk_id=1234567890123456789, dense_distance=0.1 + 0.2),
            make_candidate(original_rank=2, chunk_id=None, **nothing),
        ],
        selected_chunk_ids=["1234567890123456789"],
        truncated=None,
        top_k=None,
    )
    make_sink(store).write(make_encoder().encode([make_message(encode(event))]))
    row = next(store.query("SELECT * FROM audit.lookups").dicts())
    assert row["query_text"] == text
    assert (row["truncated"], row["top_k"]) == (None, None)
    assert row["raw"].encode() == encode(event)
    candidates = store.query(
        "SELECT chunk_id, dense_distance, quality_score, selected FROM audit.candidates "
        "ORDER BY original_rank"
    )
    assert candidates[0] == ("1234567890123456789", 0.1 + 0.2, 1 - (0.1 + 0.2) / 2, True)
    assert candidates[1] == ("", None, None, False)


def test_a_document_time_no_calendar_holds_is_unknown_and_flagged(store: ClickHouseStore) -> None:
    event = make_lookup(candidates=[make_candidate(document_updated_at="0001-01-01T00:00:00Z")])
    make_sink(store).write(make_encoder().encode([make_message(encode(event))]))
    found = store.query("SELECT document_updated_at FROM audit.candidates")
    assert found == [(None,)]
    flags = store.query("SELECT degradations FROM audit.lookups").scalar()
    assert flags == ["document_time_out_of_range"]


def test_a_duplicate_candidate_is_one_row_and_the_raw_list_stays(store: ClickHouseStore) -> None:
    twice = make_candidate()
    event = make_lookup(candidates=[twice, twice, make_candidate(original_rank=2)])
    make_sink(store).write(make_encoder().encode([make_message(encode(event))]))
    assert count(store, "candidates") == 2
    assert store.query("SELECT JSONLength(raw, 'candidates') FROM audit.lookups").scalar() == 3


def test_outcomes_and_judgements_join_in_whatever_order_they_come(store: ClickHouseStore) -> None:
    lookup = make_lookup(tenant="order")
    outcome = make_outcome(tenant="order", lookup_event_ids=[lookup["event_id"]])
    old = make_judgement(
        tenant="order", outcome_id=outcome["outcome_id"], verdict="incorrect", source="llm"
    )
    counting = make_judgement(
        tenant="order", outcome_id=outcome["outcome_id"], verdict="correct", source="gold"
    )
    values = [encode(event) for event in (counting, old, outcome)]
    random.Random(4).shuffle(values)
    encoder: Encoder = make_encoder()
    sink = make_sink(store)
    for offset, value in enumerate(values):
        sink.write(encoder.encode([make_message(value, offset, topic=Topic.OUTCOMES)]))
    assert count(store, "cells") == 0
    sink.write(encoder.encode([make_message(encode(lookup))]))
    assert store.query("SELECT cell, judgement FROM audit.cells") == [("sound", "correct")]
    assert store.query("SELECT source FROM audit.judgements WHERE counts") == [("gold",)]
