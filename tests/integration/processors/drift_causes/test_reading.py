"""From stored lookups to named causes: planted changes come out as what they are."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from lookup_audit.processors.drift_causes.reading import OTHER, Stratum, read_rows
from lookup_audit.processors.drift_causes.split import Split, split
from lookup_audit.processors.drift_causes.table import make_table
from lookup_audit.processors.drift_causes.words import Cause, causes, sentence
from lookup_audit.processors.replay.scope import Scope
from lookup_audit.processors.store import ClickHouseStore
from lookup_audit.schemas.errors import ConfigError
from tests.support.events import DEFAULT_THRESHOLDS, Event, encode, make_candidate, make_lookup
from tests.support.twins import in_order, make_encoder, make_sink, utc_now

pytest_plugins = ["tests.support.engine"]

NOW = utc_now()
QUALITIES = [0.95, 0.9, 0.85, 0.8, 0.78, 0.76, 0.7, 0.6, 0.4, 0.2]


def lookup(quality: float, *, after: bool, level: str | None = None, **over: Any) -> Event:
    """A hybrid lookup whose service reports by the thresholds it states."""
    stated = over.get("thresholds", DEFAULT_THRESHOLDS)
    high, low = stated["highly_relevant_threshold"], stated["reference_threshold"]
    level = level or ("PRECISE" if quality >= high else "REFERENCE" if quality >= low else None)
    candidate = over.pop("candidate", make_candidate(dense_distance=2 * (1 - quality)))
    return make_lookup(
        mode=over.pop("mode", "hybrid"),
        occurred_at=(NOW - timedelta(hours=1 if after else 30)).isoformat(),
        candidates=[candidate],
        relevance_level=level,
        **over,
    )


def write(store: ClickHouseStore, events: list[Event]) -> None:
    make_sink(store).write(make_encoder().encode(in_order([encode(event) for event in events])))


def periods(mode: str = "hybrid", **over: str) -> tuple[Stratum, Stratum]:
    middle = NOW - timedelta(hours=10)
    return (
        Stratum(Scope(NOW - timedelta(days=3), middle), mode, **over),
        Stratum(Scope(middle, NOW + timedelta(hours=1)), mode, **over),
    )


def explained(store: ClickHouseStore, **over: str) -> tuple[Split, list[Cause]]:
    table = make_table(read_rows(store, *periods(**over)))
    found = split(table)
    return found, causes(table, found)


def index_swap(quality: float, _: int = 0) -> Event:
    versions = {"index": "kb-2026-11", "chunker": "md-400@3"}
    return lookup(quality - 0.1 if quality > 0.5 else quality, after=True, versions=versions)


def threshold_change(quality: float, _: int = 0) -> Event:
    thresholds = DEFAULT_THRESHOLDS | {"highly_relevant_threshold": 0.82}
    return lookup(quality, after=True, thresholds=thresholds)


def broken_filter(quality: float, _: int = 0) -> Event:
    trace = {"category_filter": None, "unfiltered_retry": True}
    return lookup(quality * 0.7, after=True, retrieval_trace=trace)


def rank_surge(quality: float, number: int) -> Event:
    if number % 2:
        return lookup(quality, after=True)
    candidate = make_candidate(dense_distance=None)
    return lookup(1.0, after=True, candidate=candidate)


def silent_threshold_change(quality: float, _: int = 0) -> Event:
    level = "PRECISE" if quality >= 0.82 else "REFERENCE" if quality >= 0.5 else None
    return lookup(quality, after=True, level=level)


@pytest.mark.parametrize(
    ("plant", "kind", "words"),
    [
        (index_swap, "versions", "index kb-2026-11"),
        (threshold_change, "ruleset", "ruleset rs-"),
        (broken_filter, "retry", "more unfiltered retries"),
        (rank_surge, "basis", "more rank-fallback lookups"),
        (silent_threshold_change, "reporting", "levels reported against the rule"),
    ],
)
def test_a_planted_change_is_named_as_the_main_cause(
    store: ClickHouseStore, plant: Callable[[float, int], Event], kind: str, words: str
) -> None:
    usual = [lookup(q, after=False) for q in QUALITIES for _ in range(5)]
    # A few of each kind happened before too.
    usual += [
        lookup(0.6, after=False, retrieval_trace={"unfiltered_retry": True}),
        lookup(1.0, after=False, candidate=make_candidate(dense_distance=None)),
    ]
    write(store, usual + [plant(q, i) for q in QUALITIES for i in range(6)])
    found, told = explained(store)
    assert abs(found.change.change) > 0.1
    assert (told[0].kind, told[0].part.change) == (
        kind,
        max((c.part.change for c in told), key=abs),
    )
    assert words in told[0].name
    assert abs(told[0].part.change) > 0.7 * abs(found.change.change)
    assert sentence(found, told).startswith("of ")


def test_a_change_of_thresholds_alone_is_isolated_exactly(store: ClickHouseStore) -> None:
    write(
        store,
        [lookup(q, after=False) for q in QUALITIES] + [threshold_change(q) for q in QUALITIES],
    )
    found, told = explained(store)
    assert found.change.change == pytest.approx(-0.3)
    by_kind = {cause.kind: cause.part.change for cause in told}
    assert by_kind["ruleset"] == pytest.approx(-0.3, abs=1e-15)
    assert by_kind["rest"] == by_kind["reporting"] == 0.0


def test_the_rates_are_those_of_the_public_view(store: ClickHouseStore) -> None:
    write(store, [lookup(q, after=a) for q in QUALITIES[:7] for a in (False, True)])
    write(store, [lookup(0.9, after=True, mode="dense")])
    found, _ = explained(store)
    (seen,) = store.query(
        "SELECT sum(precise), sum(n) FROM audit.precise_rate WHERE mode = 'hybrid' "
        "AND minute > now() - INTERVAL 10 HOUR"
    )
    assert (found.after * found.n_after, found.n_after) == seen


def test_only_the_stratum_is_read(store: ClickHouseStore) -> None:
    write(
        store,
        [lookup(0.9, after=a) for a in (False, True)]
        + [lookup(0.2, after=a, service={"name": "other"}) for a in (False, True)]
        + [lookup(0.2, after=True, model_version="m@3")],
    )
    assert explained(store)[0].n_after == 3
    assert explained(store, service="other")[0].n_after == 1
    assert explained(store, service="other", quality_basis="hybrid_l2")[0].n_after == 1
    with pytest.raises(ConfigError, match="the first period has no lookups"):
        explained(store, model_version="m@3")


def test_rare_values_of_traffic_mix_are_one(store: ClickHouseStore) -> None:
    events = [
        lookup(0.9, after=a, retrieval_trace={"category_filter": f'it\'s \\ "{i}" 类'})
        for i in range(20)
        for a in (False, True)
    ]
    write(store, events)
    rows = read_rows(store, *periods())
    categories = {row.values[3] for row in rows}
    assert len(categories) == 13
    assert OTHER in categories
    assert sum(sum(row.n) for row in rows) == 40


def test_lookups_without_any_ruleset_keep_their_reported_level(store: ClickHouseStore) -> None:
    write(
        store,
        [make_lookup(mode="hybrid", thresholds=None,
                     occurred_at=(NOW - timedelta(hours=h)).isoformat()) for h in (1, 2, 30)],
    )  # fmt: skip
    found, told = explained(store)
    assert found.before == found.after == 1.0
    assert all(cause.part.change == 0.0 for cause in told)


def test_an_empty_store_has_no_change_to_split(store: ClickHouseStore) -> None:
    assert read_rows(store, *periods()) == []
    with pytest.raises(ConfigError, match="no lookups"):
        explained(store)


def test_modes_are_never_compared(store: ClickHouseStore) -> None:
    with pytest.raises(ValueError, match="modes"):
        read_rows(store, periods("dense")[0], periods("hybrid")[1])
