from datetime import timedelta

import pytest

from lookup_audit.processors.drift.config import DriftConfig
from lookup_audit.processors.drift.counting import Bounds, MinuteRow, count
from lookup_audit.processors.drift.telling import EPOCH
from lookup_audit.processors.store import ClickHouseStore
from lookup_audit.schemas.names import DriftMetric
from tests.support.drift import START, add_traffic
from tests.support.events import encode, make_judgement, make_lookup, make_outcome
from tests.support.twins import make_encoder, make_message, make_sink

pytest_plugins = ["tests.support.engine"]


def counted(store: ClickHouseStore) -> dict[str, tuple[int, int]]:
    """All that is stored, as one step would count it: n and k by rate."""
    far = START + timedelta(days=3650)
    bounds = Bounds(EPOCH, far, EPOCH, far, True)
    totals: dict[str, tuple[int, int]] = {}
    for row in count(store, DriftConfig(), bounds):
        if row.key.quality_basis == "*":
            n, k = totals.get(row.key.metric, (0, 0))
            totals[row.key.metric] = (n + row.n, k + row.k)
    return totals


def add(store: ClickHouseStore, *events: dict[str, object]) -> None:
    for offset, event in enumerate(events):
        is_lookup = "mode" in event
        topic = "lookup.results.v1" if is_lookup else "lookup.outcomes.v1"
        messages = [make_message(encode(event), offset, topic=topic)]
        make_sink(store).write(make_encoder().encode(messages))


def test_the_precise_rate_is_over_all_lookups(store: ClickHouseStore) -> None:
    add(store, make_lookup(), make_lookup(candidates=[]))

    assert counted(store)[DriftMetric.PRECISE] == (2, 1)


def test_refusals_count_where_they_arrive_for_the_lookups_stratum(store: ClickHouseStore) -> None:
    good, bad = make_lookup(), make_lookup(candidates=[])
    add(
        store,
        good,
        bad,
        make_outcome(lookup_event_ids=[good["event_id"]]),
        make_outcome(lookup_event_ids=[bad["event_id"], bad["event_id"]], action="refused"),
    )

    found = counted(store)

    assert found[DriftMetric.REFUSAL] == (2, 1)
    assert found[DriftMetric.LOW_SCORE_REFUSAL] == (1, 1)


def test_an_answer_counts_once_with_its_first_judgement(store: ClickHouseStore) -> None:
    lookup = make_lookup()
    outcome = make_outcome(lookup_event_ids=[lookup["event_id"]])
    add(store, lookup, outcome)
    assert DriftMetric.HIGH_SCORE_ERROR not in counted(store)

    of_it = {"outcome_id": outcome["outcome_id"]}
    add(
        store,
        make_judgement(**of_it, verdict="cannot_tell"),
        make_judgement(**of_it, verdict="incorrect"),
    )
    add(store, make_judgement(**of_it, verdict="correct", source="gold"))

    assert counted(store)[DriftMetric.HIGH_SCORE_ERROR] == (1, 1)


@pytest.mark.parametrize("mode", ["lexical", "unknown"])
def test_modes_without_levels_have_no_precise_rate(store: ClickHouseStore, mode: str) -> None:
    add_traffic(store, "odd", hours=1, mode=mode)

    assert counted(store) == {}


def test_steps_of_any_size_count_the_same(store: ClickHouseStore) -> None:
    add_traffic(store, "on-time", hours=5, a_minute=3)
    add_traffic(store, "late", hours=5, delay=timedelta(minutes=7))
    far = START + timedelta(days=1)

    def steps(minutes: int) -> list[MinuteRow]:
        edges = range(0, 600, minutes)
        return sorted(
            row
            for edge in edges
            for row in count(
                store,
                DriftConfig(),
                Bounds(
                    START + timedelta(minutes=edge),
                    START + timedelta(minutes=edge + minutes),
                    far if edge else EPOCH,
                    far,
                    False,
                ),
            )
        )

    assert steps(600) == steps(7 * 60 // 7) == steps(10)
