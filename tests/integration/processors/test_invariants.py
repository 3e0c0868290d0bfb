"""The invariants that every figure rests on."""

import random
import re
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from lookup_audit.processors.batch import Message
from lookup_audit.processors.recompute import disagreements
from lookup_audit.processors.registry import appoint, load_registry
from lookup_audit.processors.store import ClickHouseStore
from lookup_audit.schemas.names import Topic
from lookup_audit.schemas.ruleset import Appointment, Ruleset
from tests.support.events import encode, make_judgement, make_lookup, make_outcome
from tests.support.strategies import examples, lookups
from tests.support.twins import make_encoder, make_message, make_sink, utc_now

pytest_plugins = ["tests.support.engine"]

VIEWS = (
    "lookups",
    "candidates",
    "outcomes",
    "judgements",
    "cells",
    "claims",
    "answer_coverage",
    "coverage_daily",
    "selections",
    "conduct_findings",
    "conduct_daily",
    "precise_rate",
    "dead_letters",
    "duplicates",
    "id_conflicts",
    "rulesets",
)


def mixed_stream(seed: int) -> list[Message]:
    """Good, repeated, conflicting and bad records over three partitions of two topics."""
    chance = random.Random(seed)
    lookup_events = [make_lookup(mode=chance.choice(["dense", "hybrid"])) for _ in range(80)]
    outcome_events = [
        make_outcome(
            lookup_event_ids=[lookup["event_id"]], action=chance.choice(["answered", "refused"])
        )
        for lookup in lookup_events[:30]
    ]
    judgements = [make_judgement(outcome_id=o["outcome_id"]) for o in outcome_events]
    repeated = [encode(e) for e in lookup_events[:10]]
    conflicts = [encode(e | {"run_id": "other"}) for e in lookup_events[10:14]]
    bad: list[bytes | None] = [None, b"", b"nope", encode({"event_id": "x"})]
    results = [encode(e) for e in lookup_events] + repeated + conflicts + bad
    answers: list[bytes | None] = [encode(e) for e in outcome_events + judgements]
    chance.shuffle(results)
    chance.shuffle(answers)
    messages = []
    for topic, values in ((Topic.RESULTS, results), (Topic.OUTCOMES, answers)):
        for partition in range(3):
            own = values[partition::3]
            messages += [
                make_message(value, offset, topic=topic, partition=partition)
                for offset, value in enumerate(own)
            ]
    return messages


def contents(store: ClickHouseStore) -> dict[str, list[tuple[Any, ...]]]:
    """Everything a reader can see, but for when it was stored."""
    found = {}
    for view in VIEWS:
        columns = store.query(
            "SELECT name FROM system.columns WHERE database = 'audit' AND table = {view:String} "
            "AND name NOT IN ('ingested_at', 'seen_at', 'dead_lettered_at', 'added_at') "
            "ORDER BY position",
            {"view": view},
        )
        names = ", ".join(name for (name,) in columns)
        found[view] = sorted(map(tuple, store.query(f"SELECT {names} FROM audit.{view}")), key=repr)
    return found


def test_received_is_stored_and_repeated_and_dead_lettered_and_nothing_else(
    store: ClickHouseStore,
) -> None:
    messages = mixed_stream(1)
    make_sink(store).write(make_encoder().encode(messages))
    sql = " + ".join(
        f"(SELECT count() FROM audit.{view})"
        for view in (
            "lookups",
            "outcomes",
            "judgements",
            "duplicates",
            "id_conflicts",
            "dead_letters",
        )
    )
    assert store.query(f"SELECT {sql}").scalar() == len(messages)


def test_every_dead_letter_is_explained_with_its_place_and_bytes(store: ClickHouseStore) -> None:
    messages = mixed_stream(2)
    make_sink(store).write(make_encoder().encode(messages))
    by_place = {(m.topic, m.partition, m.offset): m for m in messages}
    rows = store.query(
        "SELECT kafka_topic, kafka_partition, kafka_offset, value, reason, message "
        "FROM audit.dead_letters"
    )
    assert len(rows) == 4
    for topic, partition, offset, value, reason, message in rows:
        assert value.encode() == (by_place[topic, partition, offset].value or b"")
        assert reason
        assert message


def test_replaying_any_part_in_any_cut_changes_no_figure(store: ClickHouseStore) -> None:
    messages = mixed_stream(3)
    encoder, sink = make_encoder(), make_sink(store)
    for start in range(0, len(messages), 17):
        sink.write(encoder.encode(messages[start : start + 17]))
    before = contents(store)
    sink.write(encoder.encode(messages))
    chance = random.Random(5)
    for _ in range(6):
        start = chance.randrange(len(messages))
        make_sink(store).write(encoder.encode(messages[start : start + chance.randrange(1, 60)]))
    assert contents(store) == before


def test_one_bad_record_harms_none_of_its_neighbours(store: ClickHouseStore) -> None:
    values: list[bytes | None] = [encode(make_lookup()) for _ in range(30)]
    values[7], values[19] = b'{"event_id": "x", "candidates": NaN}', b"\xff\xfe"
    messages = [make_message(value, offset) for offset, value in enumerate(values)]
    make_sink(store).write(make_encoder().encode(messages))
    assert store.query("SELECT count() FROM audit.lookups").scalar() == 28


@examples(40)
@given(st.lists(lookups(), min_size=10, max_size=30))
def test_the_level_in_sql_equals_the_level_in_python(
    engine: ClickHouseStore, events: list[dict[str, Any]]
) -> None:
    now = utc_now().isoformat()
    values = [
        encode(event | {"event_id": f"sql-{index}", "occurred_at": now})
        for index, event in enumerate(events)
    ]
    engine.command("TRUNCATE TABLE audit_store.lookups")
    engine.command("TRUNCATE TABLE audit_store.event_ids")
    messages = [make_message(value, offset) for offset, value in enumerate(values)]
    written = make_sink(engine).write(make_encoder().encode(messages))
    assert written.stored.get("lookup", 0) > 0
    assert disagreements(engine) == []


def test_a_registered_ruleset_decides_and_the_stated_one_is_named_beside_it(
    store: ClickHouseStore,
) -> None:
    strict = Ruleset(highly_relevant_threshold=0.9, reference_threshold=0.8)
    at = utc_now().replace(year=2020)
    appoint(store, [Appointment(strict, at, "kb-retrieval", "dense")], added_by="me", now=at)
    appoint(store, [Appointment(strict, at, "kb-retrieval", "dense")], added_by="me", now=at)
    encoder = make_encoder()
    encoder.registry = load_registry(store)
    make_sink(store).write(encoder.encode([make_message(encode(make_lookup()))]))
    row = next(store.query("SELECT * FROM audit.lookups").dicts())
    assert (row["reported_level"], row["recomputed_level"]) == ("PRECISE", "NONE")
    assert (row["level_mismatch"], row["ruleset_id"]) == ("stale_threshold", strict.ruleset_id)
    assert row["failed_checks"] == ["level", "ruleset"]
    assert row["stated_ruleset_id"] not in ("", strict.ruleset_id)
    assert disagreements(store) == []
    registered = store.query("SELECT ruleset_id FROM audit.rulesets WHERE registered")
    assert registered == [(strict.ruleset_id,)]


def test_no_view_sums_modes(engine: ClickHouseStore) -> None:
    """A view that counts has the mode among its columns, and never counts over several."""
    views = engine.query(
        "SELECT name, as_select FROM system.tables WHERE database = 'audit' "
        "AND as_select ILIKE '%group by%'"
    )
    assert {"precise_rate", "sampled_traffic", "ratio_sums"} <= {name for name, _ in views}
    for name, select in views:
        columns = engine.query(
            "SELECT name FROM system.columns WHERE database = 'audit' AND table = {name:String}",
            {"name": name},
        )
        assert ("mode",) in columns, name
        for grouping in re.findall(r"GROUP BY (.*?)(?: UNION | AS |\)(?!,)|$)", select):
            one_thing = re.search(r"event_id|outcome_id|run_id|claim|alarm|^step", grouping)
            assert one_thing or "mode" in grouping, (name, grouping)
