"""Replay in SQL equals the rules in Python, row by row, and its figures add up."""

import json
import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookup_audit.processors.migrate import shipped_migrations
from lookup_audit.processors.reading import rows
from lookup_audit.processors.recompute import recompute_sql
from lookup_audit.processors.replay.cells import cell_rates, read_cells
from lookup_audit.processors.replay.levels import level_counts, read_examples, read_moves
from lookup_audit.processors.replay.scope import UNVERIFIABLE, Scope, judged_sql
from lookup_audit.processors.replay.sweep import grid, read_sweep
from lookup_audit.processors.store import ClickHouseStore
from lookup_audit.schemas.errors import ConfigError
from lookup_audit.schemas.ruleset import DEFAULT_RULESET, Ruleset
from tests.support.audits import audited, registry_of
from tests.support.events import Event, encode, make_candidate, make_judgement, make_lookup
from tests.support.events import make_outcome as outcome_of
from tests.support.strategies import examples, lookups, thresholds
from tests.support.twins import in_order, make_encoder, make_sink, utc_now

pytest_plugins = ["tests.support.engine"]

NEAR = st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0])
RULESETS = st.builds(
    lambda stated, high, low: Ruleset(
        **{name: value for name, value in stated.items() if value is not None}
        | {"highly_relevant_threshold": high, "reference_threshold": low}
    ),
    thresholds(),
    st.floats(0, 1) | NEAR,
    st.floats(0, 1) | NEAR,
)


def write(store: ClickHouseStore, *events: Event) -> None:
    make_sink(store).write(make_encoder().encode(in_order([encode(event) for event in events])))


def answers(store: ClickHouseStore, *events: Event) -> None:
    messages = in_order([encode(event) for event in events], topic="lookup.outcomes.v1")
    make_sink(store).write(make_encoder().encode(messages))


def stored(store: ClickHouseStore, ruleset: Ruleset) -> dict[str, dict[str, Any]]:
    sql = f"SELECT event_id, was, becomes, quality FROM ({judged_sql()})"
    found = rows(store, sql, Scope().parameters(ruleset))
    return {row["event_id"]: row for row in found}


def quality_lookup(quality: float, **over: Any) -> Event:
    """A lookup whose best candidate has this quality under the default ruleset."""
    return make_lookup(candidates=[make_candidate(dense_distance=2 * (1 - quality))], **over)


@examples(60)
@given(st.lists(lookups(), min_size=8, max_size=20), RULESETS)
def test_the_replayed_level_equals_the_python_rules_row_by_row(
    engine: ClickHouseStore, events: Sequence[Event], ruleset: Ruleset
) -> None:
    engine.command("TRUNCATE TABLE audit_store.lookups")
    engine.command("TRUNCATE TABLE audit_store.event_ids")
    now = utc_now().isoformat()
    named = [
        event | {"event_id": f"replay-{index}", "occurred_at": now}
        for index, event in enumerate(events)
    ]
    write(engine, *named)
    found = stored(engine, ruleset)
    assert len(found) == len(named)
    for event in named:
        verdict = audited(event, registry_of(ruleset))
        row = found[event["event_id"]]
        assert row["becomes"] == (verdict.recomputed_level or UNVERIFIABLE)
        assert row["quality"] == verdict.quality_score


@pytest.mark.parametrize("fallback", ["reciprocal", "linear"])
@pytest.mark.parametrize("rule", ["unified-quality/1", "l0-hint/1"])
@pytest.mark.parametrize("metric", ["l2", "l2_squared", "cosine_distance"])
def test_every_metric_rule_and_fallback_is_replayed_as_in_python(
    store: ClickHouseStore, metric: Any, rule: Any, fallback: Any
) -> None:
    ruleset = Ruleset(distance_metric=metric, rule=rule, rank_fallback=fallback)
    events = [
        make_lookup(
            mode=mode,
            candidates=[
                make_candidate(original_rank=9, kept=False, drop_reason="duplicate"),
                make_candidate(original_rank=rank, dense_distance=distance, hit_reasons=hits),
                make_candidate(original_rank=rank + 1, dense_distance=0.01),
            ],
        )
        for mode in ("dense", "hybrid", "lexical")
        for rank in (1, 2, 3)
        for distance in (None, 0.0, 0.125, 0.25, 0.5, 1.0, 1.9)
        for hits in ([], ["l0:keyword:timeout"])
    ]
    write(store, *events)
    found = stored(store, ruleset)
    expected = {e["event_id"]: audited(e, registry_of(ruleset)) for e in events}
    assert {i: row["becomes"] for i, row in found.items()} == {
        i: verdict.recomputed_level or UNVERIFIABLE for i, verdict in expected.items()
    }
    assert len({row["becomes"] for row in found.values()}) >= 4


@examples(25)
@given(st.lists(lookups(), min_size=5, max_size=15))
def test_the_narrow_columns_hold_what_the_candidates_say(
    engine: ClickHouseStore, events: Sequence[Event]
) -> None:
    engine.command("TRUNCATE TABLE audit_store.lookups")
    engine.command("TRUNCATE TABLE audit_store.event_ids")
    now = utc_now().isoformat()
    shared = DEFAULT_RULESET.model_dump()
    write(
        engine,
        *(
            event | {"event_id": f"narrow-{i}", "occurred_at": now, "thresholds": shared}
            for i, event in enumerate(events)
        ),
    )
    by_candidates = rows(
        engine,
        f"SELECT event_id, ifNull(sql_level, '{UNVERIFIABLE}') AS l FROM ({recompute_sql()})",
    )
    found = stored(engine, DEFAULT_RULESET)
    assert {row["event_id"]: row["l"] for row in by_candidates} == {
        event_id: row["becomes"] for event_id, row in found.items()
    }


def test_rows_stored_before_the_narrow_columns_are_replayed_all_the_same(
    store: ClickHouseStore,
) -> None:
    (migration,) = [m for m in shipped_migrations() if "decide_levels" in m.name]
    (statement,) = migration.statements()
    columns = re.findall(r"ADD COLUMN IF NOT EXISTS (\w+)", statement)
    assert len(columns) == 7
    for column in reversed(columns):
        store.command(f"ALTER TABLE audit_store.lookups DROP COLUMN {column}")
    write(store, *(quality_lookup(q / 20, mode=m) for q in range(21) for m in ("dense", "hybrid")))
    store.command(statement)
    moves = read_moves(store, DEFAULT_RULESET, Scope())
    assert (sum(m.lookups for m in moves), [m for m in moves if m.is_flip]) == (42, [])
    assert {m.becomes for m in moves} == {"PRECISE", "REFERENCE", "NONE"}


def test_moves_count_every_lookup_once_and_never_pool_modes(store: ClickHouseStore) -> None:
    write(
        store,
        *(quality_lookup(0.8, mode=mode) for mode in ("dense", "hybrid") for _ in range(3)),
        *(quality_lookup(0.95, model_version="m@3") for _ in range(2)),
        make_lookup(mode="lexical", relevance_level=None),
    )
    moves = read_moves(store, Ruleset(highly_relevant_threshold=0.9), Scope())
    counts = {(c.model_version, c.mode): c for c in level_counts(moves)}
    assert set(counts) == {
        ("minilm-l6@2", "dense"),
        ("minilm-l6@2", "hybrid"),
        ("minilm-l6@2", "lexical"),
        ("m@3", "dense"),
    }
    dense = counts["minilm-l6@2", "dense"]
    assert (dense.lookups, dense.precise_was, dense.precise_becomes, dense.flips) == (3, 3, 0, 3)
    assert counts["m@3", "dense"].flips == 0
    assert counts["minilm-l6@2", "lexical"].known_becomes == 0
    assert sum(move.lookups for move in moves) == 9


def test_examples_are_lookups_that_flip(store: ClickHouseStore) -> None:
    write(store, *(quality_lookup(0.8) for _ in range(5)), quality_lookup(0.95))
    strict, scope = Ruleset(highly_relevant_threshold=0.9), Scope()
    moves = read_moves(store, strict, scope)
    found = read_examples(store, strict, scope, moves)
    assert len(found) == 3
    for example in found.values():
        assert (example.was, example.becomes) == ("PRECISE", "REFERENCE")
        assert example.quality == pytest.approx(0.8)
    assert found == read_examples(store, strict, scope, read_moves(store, strict, scope))


def test_the_ruleset_that_judged_flips_nothing(store: ClickHouseStore) -> None:
    write(store, *(quality_lookup(q / 20) for q in range(21)))
    moves = read_moves(store, DEFAULT_RULESET, Scope())
    assert [move for move in moves if move.is_flip] == []
    assert read_examples(store, DEFAULT_RULESET, Scope(), moves) == {}


def test_only_the_scope_is_replayed(store: ClickHouseStore) -> None:
    now = utc_now()
    old = (now - timedelta(days=9)).isoformat()
    write(
        store,
        quality_lookup(0.8),
        quality_lookup(0.8, occurred_at=old),
        quality_lookup(0.8, tenant=""),
    )

    def count(scope: Scope) -> int:
        return sum(move.lookups for move in read_moves(store, DEFAULT_RULESET, scope))

    assert count(Scope()) == 3
    assert count(Scope(since=now - timedelta(days=2))) == 2
    assert count(Scope(until=now - timedelta(days=2))) == 1
    assert count(Scope(tenant="acme")) == 2
    assert count(Scope(tenant="' OR 1 = 1 --")) == 0


def test_cells_move_with_their_levels_and_answers_stay(store: ClickHouseStore) -> None:
    precise, high, refused = quality_lookup(0.8), quality_lookup(0.95), quality_lookup(0.55)
    write(store, precise, high, refused)
    outcomes = [
        outcome_of(lookup_event_ids=[precise["event_id"]]),
        outcome_of(lookup_event_ids=[high["event_id"]]),
        outcome_of(lookup_event_ids=[refused["event_id"]], action="refused"),
    ]
    answers(
        store,
        *outcomes,
        *(make_judgement(outcome_id=o["outcome_id"], verdict="incorrect") for o in outcomes[:2]),
    )
    strict = Ruleset(highly_relevant_threshold=0.9, reference_threshold=0.6)
    counts = read_cells(store, strict, Scope())
    was, becomes = cell_rates(counts, becomes=False), cell_rates(counts, becomes=True)
    assert (was.high_score_errors, was.judged_high, was.low_score_refusals) == (2, 2, 0)
    assert was.ratio is None
    assert (becomes.high_score_errors, becomes.judged_high) == (1, 1)
    assert (becomes.low_score_refusals, becomes.low_with_outcome, becomes.ratio) == (1, 1, 1.0)
    assert was.outcomes == becomes.outcomes == 3


@pytest.mark.parametrize("rule", ["unified-quality/1", "l0-hint/1"])
def test_each_point_of_the_sweep_equals_a_replay_at_its_threshold(
    store: ClickHouseStore, rule: Any
) -> None:
    events = [quality_lookup(q / 20) for q in range(21)] + [make_lookup(candidates=[])]
    events += [make_lookup(mode="lexical", relevance_level=None)]
    write(store, *events)
    outcomes = [outcome_of(lookup_event_ids=[e["event_id"]]) for e in events[10:20]]
    verdicts = [
        make_judgement(outcome_id=o["outcome_id"], verdict="incorrect" if i % 3 else "correct")
        for i, o in enumerate(outcomes)
    ]
    answers(store, *outcomes, *verdicts)
    base = Ruleset(rule=rule)
    points = read_sweep(store, base, Scope(), grid(0.5, 1, 0.05))
    assert [p.threshold for p in points][:3] == [0.5, 0.55, 0.6]
    for point in points:
        one = base.model_copy(update={"highly_relevant_threshold": point.threshold})
        (counted,) = [
            c for c in level_counts(read_moves(store, one, Scope())) if c.mode == point.mode
        ]
        rates = cell_rates(read_cells(store, one, Scope()), becomes=True)
        assert (point.lookups, point.precise) == (counted.known_becomes, counted.precise_becomes)
        assert (point.judged_high, point.high_score_errors) == (
            rates.judged_high,
            rates.high_score_errors,
        )


@pytest.mark.parametrize(
    ("start", "stop", "step"), [(0.9, 0.5, 0.1), (-0.1, 0.5, 0.1), (0, 1, 0), (0, 1, 1e-6)]
)
def test_a_sweep_that_is_no_grid_is_refused(start: float, stop: float, step: float) -> None:
    with pytest.raises(ConfigError, match=r"sweep"):
        grid(start, stop, step)


def test_an_empty_store_replays_to_nothing(store: ClickHouseStore) -> None:
    assert read_moves(store, DEFAULT_RULESET, Scope()) == []
    assert level_counts([]) == []
    assert read_cells(store, DEFAULT_RULESET, Scope()) == []
    assert read_sweep(store, DEFAULT_RULESET, Scope(), [0.5]) == []
    assert cell_rates([], becomes=True).ratio is None


def test_times_beyond_the_store_are_written_as_it_reads_them() -> None:
    parameters = Scope(since=datetime(2026, 1, 2, tzinfo=UTC)).parameters(DEFAULT_RULESET)
    assert parameters["since"] == "2026-01-02 00:00:00.000000"
    assert json.loads(str(parameters["ruleset"]))["rule"] == "unified-quality/1"
