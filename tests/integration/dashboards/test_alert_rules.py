"""Alert rules on the real engine: the shape Grafana wants, silence without data, and firing."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from lookup_audit.dashboards.alerts import Rule, all_rules
from lookup_audit.dashboards.answers import Answer, is_number, read_json_compact
from lookup_audit.dashboards.macros import Range, expand
from lookup_audit.processors.store import ClickHouseStore
from tests.support.board_data import fill
from tests.support.events import (
    Event,
    encode,
    make_candidate,
    make_judgement,
    make_lookup,
    make_outcome,
)
from tests.support.stored import store_answers, store_lookups
from tests.support.twins import make_encoder, make_message, make_sink

pytest_plugins = ["tests.support.engine"]

NOW = datetime.now(UTC)
RULES = {rule.uid: rule for rule in all_rules()}


def evaluate(store: ClickHouseStore, rule: Rule, now: datetime | None = None) -> Answer:
    end = now or datetime.now(UTC) + timedelta(seconds=2)
    span = Range(end - timedelta(seconds=rule.range_seconds), end)
    sql = expand(rule.sql, span, {})
    return read_json_compact(store.raw(sql, output_format="JSONCompact"))


def firing(store: ClickHouseStore, uid: str, now: datetime | None = None) -> list[list[Any]]:
    return [row[:-1] for row in evaluate(store, RULES[uid], now).rows if row[-1] > RULES[uid].above]


def at(minutes: float) -> str:
    return (NOW - timedelta(minutes=minutes)).isoformat()


def lookups(count: int, minutes: float, **over: Any) -> list[Event]:
    return [make_lookup(occurred_at=at(minutes), **over) for _ in range(count)]


@pytest.mark.parametrize("rule", RULES.values(), ids=lambda rule: rule.uid)
@pytest.mark.parametrize("full", [True, False], ids=["filled", "empty"])
def test_a_rule_answers_one_number_and_labels_of_text(
    store: ClickHouseStore, rule: Rule, full: bool
) -> None:
    if full:
        fill(store, NOW)
    found = evaluate(store, rule)

    assert found.names[:-1] == rule.labels
    assert set(found.types[:-1]) <= {"String"}
    assert is_number(found.types[-1])
    assert all(row[-1] is not None for row in found.rows)
    labels = [tuple(row[:-1]) for row in found.rows]
    assert len(set(labels)) == len(labels)


def test_an_empty_store_fires_nothing_but_the_silence_of_everything(store: ClickHouseStore) -> None:
    assert {uid: firing(store, uid) for uid in RULES} == {uid: [] for uid in RULES}
    without_rows = {uid for uid, rule in RULES.items() if not evaluate(store, rule).rows}
    assert {uid for uid in without_rows if RULES[uid].no_data == "Alerting"} == {
        "la-silent-producer"
    }


def test_an_open_alarm_of_the_watcher_fires(store: ClickHouseStore) -> None:
    fill(store, NOW)
    assert len(firing(store, "la-drift-alarm")) == 2


@pytest.mark.parametrize(("now_count", "fires"), [(200, True), (199, False)])
def test_a_moved_precise_rate_fires_from_its_minimum_count_on(
    store: ClickHouseStore, now_count: int, fires: bool
) -> None:
    far = [make_candidate(dense_distance=1.4)]
    store_lookups(store, *lookups(1000, 600), *lookups(now_count, 20, candidates=far))
    found = firing(store, "la-precise-rate")

    assert found == ([["acme", "kb-retrieval", "minilm-l6@2", "dense"]] if fires else [])


@pytest.mark.parametrize(("bad", "fires"), [(1, True), (0, False)])
def test_levels_that_do_not_follow_fire(store: ClickHouseStore, bad: int, fires: bool) -> None:
    store_lookups(store, *lookups(60, 10), *lookups(bad, 10, relevance_level="REFERENCE"))
    assert bool(firing(store, "la-level-mismatch")) == fires


@pytest.mark.parametrize(("judged", "fires"), [(30, True), (29, False)])
def test_high_score_errors_fire_once_enough_are_judged(
    store: ClickHouseStore, judged: int, fires: bool
) -> None:
    made = lookups(judged, 60)
    outcomes = [make_outcome(lookup_event_ids=[one["event_id"]]) for one in made]
    judged_wrong = [make_judgement(outcome_id=one["outcome_id"]) for one in outcomes]
    store_lookups(store, *made)
    store_answers(store, *outcomes, *judged_wrong)

    assert firing(store, "la-high-score-errors") == (
        [["acme", "minilm-l6@2", "dense"]] if fires else []
    )


def test_a_surge_of_refusals_fires_and_one_mode_does_not_hide_the_other(
    store: ClickHouseStore,
) -> None:
    before, calm = lookups(200, 600), lookups(200, 600, mode="hybrid")
    now, still_calm = lookups(50, 20), lookups(50, 20, mode="hybrid")
    store_lookups(store, *before, *calm, *now, *still_calm)
    store_answers(
        store,
        *_outcomes([*before, *calm, *still_calm], "answered"),
        *_outcomes(now, "refused"),
    )

    assert firing(store, "la-refusal-surge") == [["acme", "kb-retrieval", "minilm-l6@2", "dense"]]


def _outcomes(events: Sequence[Event], action: str) -> list[Event]:
    return [make_outcome(lookup_event_ids=[e["event_id"]], action=action) for e in events]


def test_a_dead_letter_fires(store: ClickHouseStore) -> None:
    assert evaluate(store, RULES["la-dead-letters"]).rows == [[0]]
    make_sink(store).write(make_encoder().encode([make_message(b"{", 1)]))
    assert firing(store, "la-dead-letters") == [[]]


@pytest.mark.parametrize(("numbers", "fires"), [((1, 2, 4), True), ((1, 2, 3), False)])
def test_a_hole_in_a_producers_count_fires(
    store: ClickHouseStore, numbers: tuple[int, ...], fires: bool
) -> None:
    service = {"name": "s", "version": "1", "instance_id": "pod-1"}
    store_lookups(
        store, *(make_lookup(service=service | {"sequence": number}) for number in numbers)
    )

    assert firing(store, "la-completeness-gap") == ([["acme", "s", "pod-1"]] if fires else [])


@pytest.mark.parametrize(("waited_seconds", "fires"), [(300, True), (10, False)])
def test_events_that_waited_in_kafka_fire(
    store: ClickHouseStore, waited_seconds: int, fires: bool
) -> None:

    stamp = int((datetime.now(UTC).timestamp() - waited_seconds) * 1000)
    message = make_message(encode(make_lookup()), 1, timestamp_ms=stamp)
    make_sink(store).write(make_encoder().encode([message]))

    assert firing(store, "la-lag") == ([["lookup.results.v1"]] if fires else [])


@pytest.mark.parametrize(("minutes", "fires"), [(31, True), (29, False)])
def test_a_producer_that_stops_fires_after_half_an_hour(
    store: ClickHouseStore, minutes: int, fires: bool
) -> None:
    store_lookups(store, *lookups(100, 0))
    later = datetime.now(UTC) + timedelta(minutes=minutes)

    assert firing(store, "la-silent-producer", later) == (
        [["acme", "kb-retrieval"]] if fires else []
    )
