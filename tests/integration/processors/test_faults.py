"""Faults found by attacking the sink: each once lost, doubled or stopped something."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pyarrow as pa
import pytest

from lookup_audit.processors.registry import RegistryKeeper
from lookup_audit.processors.sink import Sink
from lookup_audit.processors.store import ClickHouseStore, Rows
from lookup_audit.schemas.errors import StoreRejectedError, UnavailableError
from lookup_audit.schemas.names import Reason
from lookup_audit.schemas.ruleset import Registry
from tests.support.events import Event, encode, make_lookup
from tests.support.twins import (
    CollectedDeadLetters,
    FailingStore,
    in_order,
    make_encoder,
    make_message,
    make_sink,
    utc_now,
)

pytest_plugins = ["tests.support.engine"]


def count(store: ClickHouseStore, table: str) -> int:
    return int(store.query(f"SELECT count() FROM {table}").scalar())


def values(number: int, **over: Any) -> list[bytes | None]:
    return [encode(make_lookup(**over)) for _ in range(number)]


def test_offsets_of_a_new_cluster_are_other_messages(store: ClickHouseStore) -> None:
    for cluster in ("first-boot", "second-boot"):
        sink = Sink(store, CollectedDeadLetters(), cluster_id=cluster, clock=utc_now)
        event = make_lookup()
        messages = in_order([encode(event), encode(event), b"bad"])
        assert sink.write(make_encoder().encode(messages)).stored == {"lookup": 1}
    for view in ("lookups", "duplicates", "dead_letters"):
        assert count(store, f"audit.{view}") == 2


def test_a_backfill_over_every_week_of_the_retention_is_stored(store: ClickHouseStore) -> None:
    now = utc_now()
    weeks = [now - timedelta(days=7 * week) for week in range(104)]
    events = [encode(make_lookup(occurred_at=week.isoformat())) for week in weeks]
    make_sink(store).write(make_encoder().encode(in_order(events)))
    assert count(store, "audit.lookups") == 104
    assert count(store, "audit.lookups WHERE late") == 103


def test_a_dead_letter_may_have_odd_headers(store: ClickHouseStore) -> None:
    odd: Any = (("empty", None), ("binary", b"\xff"), ("twice", b"1"), ("twice", b"2"))
    message = make_message(b"bad", headers=odd)
    make_sink(store).write(make_encoder().encode([message]))
    names = store.query("SELECT mapKeys(headers) FROM audit.dead_letters").scalar()
    assert names == ["empty", "binary", "twice", "twice"]


def test_a_table_that_is_away_dead_letters_not_even_a_single_event(store: ClickHouseStore) -> None:
    first, second = in_order(values(2))
    encoder, sink = make_encoder(), make_sink(store)
    sink.write(encoder.encode([first]))
    store.command("RENAME TABLE audit_store.lookups TO audit_store.away")
    try:
        with pytest.raises(StoreRejectedError, match="does not exist"):
            sink.write(encoder.encode([second]))
    finally:
        store.command("RENAME TABLE audit_store.away TO audit_store.lookups")
    assert count(store, "audit.dead_letters") == 0
    sink.write(encoder.encode([second]))
    assert count(store, "audit.lookups") == 2


def test_a_kill_between_a_row_and_its_id_doubles_nothing(store: ClickHouseStore) -> None:
    messages = in_order(values(40))
    encoder = make_encoder()
    make_sink(store).write(encoder.encode(messages))
    # What SIGKILL leaves behind: the rows are there, the ids derived from them are not.
    store.command("DELETE FROM audit_store.event_ids WHERE kafka_offset >= 10")
    restarted = make_sink(store)
    for start, end in ((5, 17), (17, 18), (18, 40)):
        written = restarted.write(encoder.encode(messages[start:end]))
        assert written.stored == {}
    assert count(store, "audit.lookups") == 40
    assert count(store, "audit_store.event_ids") == 40


def test_a_race_is_settled_by_whoever_reads_the_batch_after_a_kill(store: ClickHouseStore) -> None:
    class KilledBeforeItSettles(FailingStore):
        """Sees nothing stored before its insert, and is dead after it."""

        def query(self, sql: str, parameters: Mapping[str, Any] | None = None) -> Rows:
            rows = super().query(sql, parameters)
            if "event_ids" in sql and "id_hash IN" in sql:
                rows.clear()
            return rows

        def insert(self, table: str, batch: pa.Table, *, token: str) -> None:
            super().insert(table, batch, token=token)
            if table.endswith(".lookups"):
                self.is_down = True

    event = make_lookup()
    encoder = make_encoder()
    mine = make_message(encode(event), 7, partition=1)
    make_sink(store).write(encoder.encode([make_message(encode(event), 5)]))
    with pytest.raises(UnavailableError):
        make_sink(KilledBeforeItSettles(store)).write(encoder.encode([mine]))
    assert count(store, "audit.lookups") == 2
    make_sink(store).write(encoder.encode([mine]))
    assert store.query("SELECT kafka_offset FROM audit.lookups") == [(5,)]
    assert store.query("SELECT kafka_offset FROM audit.duplicates") == [(7,)]
    assert make_sink(store).write(encoder.encode([mine])).replays == 1


def test_a_replay_leaves_even_the_time_a_repeat_was_seen(store: ClickHouseStore) -> None:
    event = make_lookup()
    other = event | {"run_id": "other"}
    messages = in_order([encode(event), encode(event), encode(other), b"bad"])
    encoder = make_encoder()
    make_sink(store).write(encoder.encode(messages))
    sql = (
        "SELECT kafka_offset, seen_at FROM audit.duplicates UNION ALL "
        "SELECT kafka_offset, seen_at FROM audit.id_conflicts UNION ALL "
        "SELECT kafka_offset, dead_lettered_at FROM audit.dead_letters"
    )
    before = sorted(store.query(sql))
    for start in range(4):
        written = make_sink(store).write(encoder.encode(messages[start:]))
        assert (written.duplicates, written.conflicts) == (0, 0)
    assert len(before) == 3
    assert sorted(store.query(sql)) == before


def test_what_was_stored_stays_so_when_a_newer_version_would_refuse_it(
    store: ClickHouseStore,
) -> None:
    now = utc_now()
    then = (now - timedelta(days=3)).isoformat()
    messages = [make_message(encode(make_lookup(occurred_at=then)), 4, timestamp_ms=-1)]
    make_sink(store).write(make_encoder().encode(messages))
    strict = make_encoder(retention=timedelta(days=1))
    written = make_sink(store).write(strict.encode(messages))
    assert (written.replays, written.dead_letters) == (1, [])
    assert count(store, "audit.dead_letters") == 0
    assert count(store, "audit.lookups") == 1


@pytest.mark.parametrize(
    ("one", "other", "conflict"),
    [
        pytest.param({"x": 4}, {"x": 4.0}, False, id="one-number-two-spellings"),
        pytest.param({"x": 1}, {"x": True}, True, id="true-is-no-number"),
        pytest.param({"x": [0, {}]}, {"x": [False, {}]}, True, id="deep"),
        pytest.param({"x": None}, {}, True, id="null-or-absent-in-an-unknown-field"),
    ],
)
def test_a_repeat_is_told_from_a_conflict_by_value(
    one: Event, other: Event, conflict: bool, store: ClickHouseStore
) -> None:
    event = make_lookup()
    messages = in_order([encode(event | one), encode(event | other)])
    written = make_sink(store).write(make_encoder().encode(messages))
    assert (written.duplicates, written.conflicts) == (int(not conflict), int(conflict))


ODD_IDS = ["a\x00b", "日本🛡️", 'quote\'\\ "x"', "tab\tline\n", "{x:String}", "\u2028", "%s", "\\N"]


def test_odd_ids_are_found_again(store: ClickHouseStore) -> None:
    events = [make_lookup(event_id=one, tenant=one) for one in ODD_IDS]
    sink, encoder = make_sink(store), make_encoder()
    for partition, expected in ((0, (8, 0)), (0, (0, 0)), (1, (0, 8))):
        batch = encoder.encode(in_order([encode(e) for e in events], partition=partition))
        written = sink.write(batch)
        assert (written.stored.get("lookup", 0), written.duplicates) == expected
    assert sorted(store.query("SELECT event_id FROM audit.lookups")) == sorted(
        (one,) for one in ODD_IDS
    )


def test_ids_too_long_for_one_question_are_asked_in_several(store: ClickHouseStore) -> None:
    events = [make_lookup(event_id=f"{n:05d}" + "長" * 100, candidates=[]) for n in range(500)]
    batch = make_encoder().encode(in_order([encode(e) for e in events]))
    sink = make_sink(store)
    assert sink.write(batch).stored == {"lookup": 500}
    assert sink.write(batch).replays == 500


def test_five_thousand_candidates_are_stored_one_row_each(store: ClickHouseStore) -> None:
    candidates = [{"chunk_id": f"c{n}", "original_rank": n} for n in range(1, 5001)]
    event = make_lookup(candidates=candidates)
    make_sink(store).write(make_encoder().encode([make_message(encode(event))]))
    assert count(store, "audit.candidates") == 5000
    assert count(store, "audit.candidates WHERE quality_score IS NOT NULL") == 0


def test_the_raw_bytes_and_their_hash_are_kept(store: ClickHouseStore) -> None:
    import hashlib

    value = b" \n" + encode(make_lookup(query="q\u0000\u00e9", extra={"kept": [1, 2.50]})) + b"\t"
    make_sink(store).write(make_encoder().encode([make_message(value)]))
    found = store.query("SELECT hex(raw), payload_sha256, unknown_fields FROM audit.lookups")
    assert found == [(value.hex().upper(), hashlib.sha256(value).hexdigest(), ["extra"])]


def test_a_ruleset_nobody_understands_stops_no_processor(
    store: ClickHouseStore, caplog: pytest.LogCaptureFixture
) -> None:
    seen: list[Registry] = []
    keeper = RegistryKeeper(store, seen.append, every_seconds=0.0)
    keeper.refresh()
    store.command(
        "INSERT INTO audit_store.rulesets (ruleset_id, content, registered) "
        "VALUES ('odd', '{\"rule\": \"from-the-future/9\"}', true)"
    )
    keeper.refresh()
    assert len(seen) == 1
    assert "the last one known serves" in caplog.text
    # Before the first good reading no verdict can be given: that is waited for, visibly.
    with pytest.raises(UnavailableError, match="registry cannot be read"):
        RegistryKeeper(store, seen.append).refresh()


def test_dead_letters_name_every_reason_a_store_can_have(store: ClickHouseStore) -> None:
    store.command("ALTER TABLE audit_store.lookups ADD CONSTRAINT no CHECK event_id != 'no'")
    try:
        events = [make_lookup(event_id=one) for one in ("a", "no", "b")]
        letters = CollectedDeadLetters()
        batch = make_encoder().encode(in_order([encode(e) for e in events]))
        written = make_sink(store, letters).write(batch)
    finally:
        store.command("ALTER TABLE audit_store.lookups DROP CONSTRAINT no")
    assert written.stored == {"lookup": 2}
    assert [(d.message.offset, d.rejected.reason) for d in letters.letters] == [
        (1, Reason.REJECTED_BY_STORE)
    ]
    assert count(store, "audit.lookups") == 2


def test_a_topic_made_anew_has_other_messages_at_the_same_offsets(store: ClickHouseStore) -> None:
    event = make_lookup()
    sink, encoder = make_sink(store), make_encoder()
    old = [encode(event), encode(event), b"bad"]
    now_ms = int(utc_now().timestamp() * 1000)
    sink.write(encoder.encode(in_order(old, timestamp_ms=now_ms - 60_000)))
    anew = in_order([b"worse", *values(2)], timestamp_ms=now_ms)
    assert sink.write(encoder.encode(anew)).stored == {"lookup": 2}
    assert count(store, "audit.lookups") == 3
    assert count(store, "audit.duplicates") == 1
    assert count(store, "audit.dead_letters") == 2
    sink.write(encoder.encode(anew))
    assert count(store, "audit.lookups") == 3
