"""Outcomes and judgements in every order they can come, on the real engine."""

import itertools
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from lookup_audit.processors.reading import rows
from lookup_audit.processors.store import ClickHouseStore
from lookup_audit.schemas.names import Topic
from tests.support.events import Event, encode, make_judgement, make_lookup, make_outcome
from tests.support.stored import store_answers, store_lookups
from tests.support.twins import in_order, make_encoder, make_sink

pytest_plugins = ["tests.support.engine"]

NOW = datetime.now(UTC).replace(microsecond=0)


def ago(**delta: float) -> str:
    return (NOW - timedelta(**delta)).strftime("%Y-%m-%dT%H:%M:%SZ")


def cells(store: ClickHouseStore) -> dict[str, str]:
    found = rows(store, "SELECT event_id, cell FROM audit.cells")
    assert len({row["event_id"] for row in found}) == len(found), "one row a lookup"
    return {row["event_id"]: row["cell"] for row in found}


def make_three(**over: Any) -> tuple[Event, Event, Event]:
    """A lookup, its outcome and a judgement of it, by the ids ``evt``, ``out`` and ``jdg``."""
    lookup = make_lookup(event_id="evt", **over)
    outcome = make_outcome(outcome_id="out", lookup_event_ids=["evt"])
    return lookup, outcome, make_judgement(judgement_id="jdg", outcome_id="out")


def put(store: ClickHouseStore, *events: Event) -> None:
    for event in events:
        (store_lookups if "event_id" in event else store_answers)(store, event)


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))), ids=str)
def test_lookup_outcome_and_judgement_join_in_any_order(
    order: tuple[int, ...], store: ClickHouseStore
) -> None:
    events = make_three()
    put(store, *(events[i] for i in order))
    assert cells(store) == {"evt": "high_score_error"}


def test_an_outcome_before_its_lookup_waits_for_it(store: ClickHouseStore) -> None:
    lookup, outcome, judgement = make_three()
    put(store, outcome, judgement)
    assert cells(store) == {}
    assert store.query("SELECT count() FROM audit.outcomes").scalar() == 1
    put(store, lookup)
    assert cells(store) == {"evt": "high_score_error"}


def test_an_outcome_days_after_its_lookup_joins_the_lookups_day(store: ClickHouseStore) -> None:
    lookup, outcome, judgement = make_three(occurred_at=ago(days=40))
    put(store, lookup, outcome | {"occurred_at": ago(days=30)})
    put(store, judgement | {"occurred_at": ago(days=1)})
    (row,) = rows(store, "SELECT cell, toString(occurred_at) AS at FROM audit.cells")
    assert row["cell"] == "high_score_error"
    assert row["at"][:19] == ago(days=40)[:19].replace("T", " ")


@pytest.mark.parametrize("times", [2, 5])
def test_an_outcome_sent_again_counts_once(times: int, store: ClickHouseStore) -> None:
    lookup, outcome, judgement = make_three()
    put(store, lookup, judgement, *[outcome] * times)
    assert cells(store) == {"evt": "high_score_error"}
    assert store.query("SELECT count() FROM audit.outcomes").scalar() == 1
    duplicates = "SELECT count() FROM audit.duplicates WHERE kind = 'outcome' AND event_id = 'out'"
    assert store.query(duplicates).scalar() == times - 1


def test_the_same_outcome_id_with_other_content_is_a_conflict_and_the_first_counts(
    store: ClickHouseStore,
) -> None:
    lookup, outcome, judgement = make_three()
    put(store, lookup, outcome, judgement)
    put(store, make_outcome(outcome_id="out", lookup_event_ids=["evt"], action="refused"))
    assert cells(store) == {"evt": "high_score_error"}
    assert store.query("SELECT event_id FROM audit.id_conflicts") == [("out",)]


def test_one_outcome_of_several_lookups_gives_each_its_cell(store: ClickHouseStore) -> None:
    put(
        store,
        make_lookup(event_id="high"),
        make_lookup(event_id="none", candidates=[]),
        make_lookup(event_id="another"),
        make_outcome(outcome_id="out", lookup_event_ids=["high", "none", "not-stored"]),
        make_judgement(outcome_id="out", verdict="correct"),
    )
    assert cells(store) == {"high": "sound", "none": "lucky_answer"}


def test_a_lookup_that_an_outcome_names_twice_counts_once(store: ClickHouseStore) -> None:
    lookup, outcome, judgement = make_three()
    put(store, lookup, outcome | {"lookup_event_ids": ["evt", "evt"]}, judgement)
    assert cells(store) == {"evt": "high_score_error"}


@pytest.mark.parametrize("newest_first", [False, True])
def test_of_several_outcomes_of_one_lookup_the_latest_counts(
    newest_first: bool, store: ClickHouseStore
) -> None:
    first = make_outcome(lookup_event_ids=["evt"], action="refused", occurred_at=ago(hours=2))
    second = make_outcome(lookup_event_ids=["evt"], outcome_id="out", occurred_at=ago(hours=1))
    put(store, make_lookup(event_id="evt"))
    put(store, *((second, first) if newest_first else (first, second)))
    put(store, make_judgement(outcome_id="out", verdict="correct"))
    assert cells(store) == {"evt": "sound"}


def test_outcomes_of_another_tenant_do_not_touch_a_lookup(store: ClickHouseStore) -> None:
    lookup, outcome, judgement = make_three()
    put(store, lookup, outcome | {"tenant": "other"}, judgement | {"tenant": "other"})
    assert cells(store) == {}
    put(store, outcome)
    assert cells(store) == {"evt": "unjudged"}


RANKS = ("gold", "human", "user_feedback", "llm")


@pytest.mark.parametrize("order", list(itertools.permutations(range(4)))[::5], ids=str)
def test_the_best_source_counts_however_old_it_is(
    order: tuple[int, ...], store: ClickHouseStore
) -> None:
    lookup, outcome, _ = make_three()
    verdicts = ("correct", "incorrect", "partly", "incorrect")
    judgements = [
        make_judgement(
            outcome_id="out", source=source, verdict=verdict, occurred_at=ago(hours=10 - place)
        )
        for place, (source, verdict) in enumerate(zip(RANKS, verdicts, strict=True))
    ]
    put(store, lookup, outcome, *(judgements[i] for i in order))
    expected = ("sound", "high_score_error", "high_score_partly", "high_score_error")
    assert cells(store) == {"evt": expected[0]}
    found = rows(store, "SELECT source, counts FROM audit.judgements")
    assert {row["source"] for row in found if row["counts"]} == {"gold"}
    assert len(found) == 4, "all are kept"


@pytest.mark.parametrize("number", range(4))
def test_without_better_sources_the_next_best_counts(number: int, store: ClickHouseStore) -> None:
    lookup, outcome, _ = make_three()
    put(store, lookup, outcome)
    for source in RANKS[number:]:
        verdict = "correct" if source == RANKS[number] else "incorrect"
        put(store, make_judgement(outcome_id="out", source=source, verdict=verdict))
    assert cells(store) == {"evt": "sound"}


@pytest.mark.parametrize("newest_first", [False, True])
def test_a_correction_by_the_same_source_counts_from_its_time_on(
    newest_first: bool, store: ClickHouseStore
) -> None:
    lookup, outcome, _ = make_three()
    old = make_judgement(outcome_id="out", verdict="incorrect", occurred_at=ago(hours=2))
    new = make_judgement(outcome_id="out", verdict="correct", occurred_at=ago(hours=1))
    put(store, lookup, outcome, *((new, old) if newest_first else (old, new)))
    assert cells(store) == {"evt": "sound"}
    assert store.query("SELECT count() FROM audit.judgements").scalar() == 2


def test_views_agree_on_the_judgement_that_counts(store: ClickHouseStore) -> None:
    """Same source and same instant: the views must not pick two different ones."""
    lookup, outcome, _ = make_three()
    at = ago(hours=1)
    put(store, lookup, outcome)
    for number, verdict in enumerate(("correct", "incorrect", "partly")):
        put(
            store,
            make_judgement(
                judgement_id=f"j{number}", outcome_id="out", verdict=verdict, occurred_at=at
            ),
        )
    (counting,) = rows(store, "SELECT verdict FROM audit.judgements WHERE counts")
    (cell,) = rows(store, "SELECT judgement FROM audit.cells")
    assert cell["judgement"] == counting["verdict"]


def test_a_judgement_for_an_unknown_outcome_is_kept_counted_and_joins_later(
    store: ClickHouseStore,
) -> None:
    lookup, outcome, judgement = make_three()
    put(store, judgement, lookup)
    unknown = (
        "SELECT count() FROM audit.judgements WHERE (tenant, outcome_id) NOT IN "
        "(SELECT tenant, outcome_id FROM audit.outcomes)"
    )
    assert store.query(unknown).scalar() == 1
    assert cells(store) == {}
    put(store, outcome)
    assert store.query(unknown).scalar() == 0
    assert cells(store) == {"evt": "high_score_error"}


def test_cannot_tell_is_no_judgement_of_the_answer(store: ClickHouseStore) -> None:
    lookup, outcome, _ = make_three()
    put(store, lookup, outcome, make_judgement(outcome_id="out", verdict="cannot_tell"))
    assert cells(store) == {"evt": "unjudged"}


def test_a_refusal_counts_by_itself_whatever_was_judged(store: ClickHouseStore) -> None:
    put(
        store,
        make_lookup(event_id="high"),
        make_lookup(event_id="none", candidates=[]),
        make_outcome(outcome_id="out", lookup_event_ids=["high", "none"], action="refused"),
        make_judgement(outcome_id="out", verdict="incorrect"),
    )
    assert cells(store) == {"high": "over_refusal", "none": "low_score_refusal"}


def test_a_repeated_judgement_is_a_duplicate_and_changes_nothing(store: ClickHouseStore) -> None:
    lookup, outcome, judgement = make_three()
    put(store, lookup, outcome, judgement, judgement, judgement)
    assert store.query("SELECT count() FROM audit.judgements").scalar() == 1
    kinds = "SELECT count() FROM audit.duplicates WHERE kind = 'judgement'"
    assert store.query(kinds).scalar() == 2


def test_replaying_outcomes_and_judgements_from_any_offset_changes_nothing(
    store: ClickHouseStore,
) -> None:
    lookups = [make_lookup(event_id=f"evt-{i}") for i in range(8)]
    answers: list[Event] = []
    for i in range(8):
        action = "refused" if i % 3 == 0 else "answered"
        answers.append(
            make_outcome(outcome_id=f"out-{i}", lookup_event_ids=[f"evt-{i}"], action=action)
        )
        answers.append(make_judgement(outcome_id=f"out-{i}", source=RANKS[i % 4]))
        answers.append(make_judgement(outcome_id=f"out-{i}", verdict="correct", source="llm"))
    topics = ((Topic.RESULTS, lookups), (Topic.OUTCOMES, answers))
    messages = [m for topic, events in topics for m in in_order(map_encode(events), topic=topic)]
    encoder = make_encoder()
    make_sink(store).write(encoder.encode(messages))
    sql = "SELECT * EXCEPT occurred_at FROM audit.cells ORDER BY event_id"
    before, counting = store.query(sql), _counting(store)
    assert len(before) == 8
    for start in (0, 5, 17, 30):
        make_sink(store).write(encoder.encode(messages[start:]))
        assert store.query(sql) == before
        assert _counting(store) == counting
    assert store.query("SELECT count() FROM audit.judgements").scalar() == 16
    assert store.query("SELECT count() FROM audit.duplicates").scalar() == 0


def map_encode(events: list[Event]) -> list[bytes | None]:
    return [encode(event) for event in events]


def _counting(store: ClickHouseStore) -> list[tuple[Any, ...]]:
    return list(
        store.query(
            "SELECT outcome_id, judgement_id FROM audit.judgements WHERE counts ORDER BY outcome_id"
        )
    )
