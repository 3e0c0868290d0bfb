"""Change points: what began to serve a stratum, and when."""

from datetime import UTC, datetime, timedelta
from typing import Any

from lookup_audit.processors.reading import rows
from lookup_audit.processors.store import ClickHouseStore
from tests.support.events import DEFAULT_THRESHOLDS, Event, encode, make_lookup
from tests.support.twins import in_order, make_encoder, make_sink, utc_now

pytest_plugins = ["tests.support.engine"]

NOON = datetime.combine(utc_now().date() - timedelta(days=60), datetime.min.time(), UTC).replace(
    hour=12
)


def lookup_at(hours: float, **over: Any) -> Event:
    return make_lookup(occurred_at=(NOON + timedelta(hours=hours)).isoformat(), **over)


def write(store: ClickHouseStore, events: list[Event]) -> None:
    make_sink(store).write(make_encoder().encode(in_order([encode(event) for event in events])))


def changes(store: ClickHouseStore) -> list[tuple[str, str, str, str]]:
    found = rows(store, "SELECT * FROM audit.change_points ORDER BY at, what, after")
    return [(row["what"], row["before"], row["after"], row["event_id"]) for row in found]


def index(version: str | None) -> Event:
    return {"index": version, "chunker": "c@1"}


def test_two_versions_side_by_side_are_one_change(store: ClickHouseStore) -> None:
    events = [lookup_at(0, versions=index("kb-1"))]
    events += [lookup_at(1 + i / 10, versions=index(f"kb-{1 + i % 2}")) for i in range(300)]
    write(store, events)
    assert changes(store) == [("index", "kb-1", "kb-2", events[2]["event_id"])]


def test_each_subject_changes_on_its_own(store: ClickHouseStore) -> None:
    stated = DEFAULT_THRESHOLDS | {"highly_relevant_threshold": 0.8}
    write(
        store,
        [
            lookup_at(0, versions={"index": "kb-1", "chunker": "c@1"}),
            lookup_at(1, versions=None, model_version="m@3", event_id="model"),
            lookup_at(2, versions={"reranker": "r@1"}),
            lookup_at(3, versions={"index": "kb-9", "chunker": "c@9"}, event_id="index"),
            lookup_at(4, versions={"reranker": "r@2"}, event_id="reranker"),
            lookup_at(5, versions=None, thresholds=stated, event_id="rules"),
        ],
    )
    found = [(what, event_id) for what, _, _, event_id in changes(store)]
    assert found == [
        ("model", "model"),
        ("chunker", "index"),
        ("index", "index"),
        ("reranker", "reranker"),
        ("ruleset", "rules"),
    ]


def test_strata_do_not_change_each_other(store: ClickHouseStore) -> None:
    write(
        store,
        [
            lookup_at(0, versions=index("kb-1")),
            lookup_at(1, versions=index("kb-2"), mode="hybrid"),
            lookup_at(2, versions=index("kb-3"), tenant="other"),
            lookup_at(3, versions=index("kb-4"), service={"name": "other"}),
        ],
    )
    assert changes(store) == []


def test_silence_about_a_version_is_no_change(store: ClickHouseStore) -> None:
    versions = ["kb-1", None, "kb-1", None, "kb-1"]
    write(store, [lookup_at(i, versions=index(v)) for i, v in enumerate(versions)])
    assert changes(store) == []


def test_a_version_that_was_gone_and_returns_is_a_change_again(store: ClickHouseStore) -> None:
    events = [lookup_at(0, versions=index("kb-1"))]
    events += [lookup_at(24 + i / 30, versions=index("kb-2")) for i in range(1100)]
    events += [lookup_at(24 * 4, versions=index("kb-1"), event_id="back")]
    write(store, events)
    assert changes(store) == [
        ("index", "kb-1", "kb-2", events[1]["event_id"]),
        ("index", "kb-2", "kb-1", "back"),
    ]


def test_a_rare_version_does_not_change_again_and_again(store: ClickHouseStore) -> None:
    events = [
        lookup_at(24 * day + hour / 10, versions=index("rare" if not (day % 5 or hour) else "kb-1"))
        for day in range(21)
        for hour in range(20)
    ]
    write(store, events)
    assert [change[:3] for change in changes(store)] == [("index", "rare", "kb-1")]


def test_an_empty_store_has_no_changes(store: ClickHouseStore) -> None:
    assert changes(store) == []
