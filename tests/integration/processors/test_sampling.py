"""The daily sample on the real engine: what is drawn, stored, and shown to reviewers."""

import json
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from lookup_audit.processors.reading import rows
from lookup_audit.processors.sampling import (
    DaySample,
    Stratum,
    draw,
    draw_day,
    stored_plan,
    tenants_of,
    write_day,
)
from lookup_audit.processors.sampling.answers import sampled_answers
from lookup_audit.processors.sampling.draw import DRAW_SQL
from lookup_audit.processors.sampling.sheet import csv_row, json_line, read_sheet, write_sheet
from lookup_audit.processors.store import ClickHouseStore
from lookup_audit.schemas.errors import ConfigError, UnavailableError
from tests.support.events import Event, make_candidate, make_lookup, make_outcome
from tests.support.stored import store_answers, store_lookups
from tests.support.twins import FailingStore

pytest_plugins = ["tests.support.engine"]

DAY = datetime.now(UTC).date() - timedelta(days=2)
NOON = f"{DAY}T12:00:00Z"
NOW = datetime.now(UTC)


def lookups(n: int, *, distance: float = 0.2, prefix: str = "evt", **over: Any) -> list[Event]:
    """Lookups of one stratum: ``distance`` 0.2 is PRECISE, 0.8 REFERENCE, 1.6 NONE."""
    candidates = [make_candidate(dense_distance=distance)]
    events = (
        make_lookup(event_id=f"{prefix}-{i}", candidates=candidates, occurred_at=NOON)
        for i in range(n)
    )
    return [event | over for event in events]


def drawn(store: ClickHouseStore, size: int | None = None, **over: Any) -> DaySample:
    """Draw and store a day."""
    sample = draw_day(store, DAY, over.pop("tenant", "acme"), size=size, **over)
    write_day(store, sample, datetime.now(UTC))
    return sample


def in_view(store: ClickHouseStore) -> dict[str, float]:
    found = rows(store, "SELECT event_id, inclusion_probability AS p FROM audit.samples")
    assert len({row["event_id"] for row in found}) == len(found)
    return {row["event_id"]: row["p"] for row in found}


HARD = ["", "evt", "客户\u0000'; DROP", "a\tb\nc\\d", "{seed:String}", '"', "🙂" * 30, "%s"]


@pytest.mark.parametrize("seed", ["s", "7:x\u0000\n'\\", "种子"])
def test_the_engine_draws_as_python_does(seed: str, store: ClickHouseStore) -> None:
    for tenant in HARD:
        found = rows(
            store,
            f"SELECT event_id, {DRAW_SQL} AS u FROM (SELECT arrayJoin(JSONExtract("
            "{ids:String}, 'Array(String)')) AS event_id)",
            {"seed": seed, "day": str(DAY), "tenant": tenant, "ids": json.dumps(HARD)},
        )
        assert {r["event_id"]: r["u"] for r in found} == {
            i: draw(seed, DAY, tenant, i) for i in HARD
        }


def test_a_sample_is_what_the_stored_rule_says_and_nothing_else(store: ClickHouseStore) -> None:
    store_lookups(store, *lookups(60), *lookups(40, distance=1.6, prefix="none"))
    sample = drawn(store, 30)
    plan = stored_plan(store, DAY, "acme")
    assert plan is not None
    expected = {
        f"{prefix}-{i}"
        for prefix, level, n in (("evt", "PRECISE", 60), ("none", "NONE", 40))
        for i in range(n)
        if draw(plan.seed, DAY, "acme", f"{prefix}-{i}")
        < plan.strata[Stratum("dense", "minilm-l6@2", level, "plain")].probability
    }
    assert set(in_view(store)) == expected == {one.event_id for one in sample.drawn}
    row = rows(store, "SELECT * FROM audit.samples ORDER BY event_id LIMIT 1")[0]
    assert row["draw"] < row["inclusion_probability"]
    assert (row["tenant"], row["day"], row["seed"]) == ("acme", str(DAY), plan.seed)
    assert row["occurred_at"] == f"{DAY} 12:00:00.000000"


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        pytest.param({"distance": 0.2}, "plain", id="plain"),
        pytest.param({"distance": 0.46}, "near_threshold", id="0.77-is-near-0.75"),
        pytest.param({"distance": 0.459}, "plain", id="0.7705-is-not"),
        pytest.param({"distance": 1.04}, "near_threshold", id="0.48-is-near-0.5"),
        pytest.param({"relevance_level": "REFERENCE"}, "mismatch", id="mismatch"),
        pytest.param(
            {"distance": 0.5, "relevance_level": None}, "mismatch", id="mismatch-before-near"
        ),
        pytest.param(
            {"quality_score": None, "candidates": [], "relevance_level": None},
            "plain",
            id="no-quality",
        ),
    ],
)
def test_each_lookup_falls_in_its_class(
    event: dict[str, Any], expected: str, store: ClickHouseStore
) -> None:
    store_lookups(store, *lookups(1, **event))
    (stratum,) = draw_day(store, DAY, "acme", size=1).populations
    assert stratum.lookup_class == expected


def test_modes_versions_and_levels_are_strata_apart(store: ClickHouseStore) -> None:
    store_lookups(
        store,
        *lookups(2),
        *lookups(3, mode="hybrid", prefix="h"),
        *lookups(4, model_version="m@3", prefix="m"),
        *lookups(5, distance=0.8, prefix="r"),
    )
    populations = draw_day(store, DAY, "acme").populations
    assert {(s.mode, s.model_version, s.level): n for s, n in populations.items()} == {
        ("dense", "minilm-l6@2", "PRECISE"): 2,
        ("hybrid", "minilm-l6@2", "PRECISE"): 3,
        ("dense", "m@3", "PRECISE"): 4,
        ("dense", "minilm-l6@2", "REFERENCE"): 5,
    }


def test_a_day_begins_and_ends_at_midnight_utc(store: ClickHouseStore) -> None:
    times = {
        "before": f"{DAY - timedelta(days=1)}T23:59:59.999999Z",
        "first": f"{DAY}T00:00:00Z",
        "last": f"{DAY}T23:59:59.999999Z",
        "zone": f"{DAY + timedelta(days=1)}T01:30:00+02:00",
        "after": f"{DAY + timedelta(days=1)}T00:00:00Z",
    }
    store_lookups(store, *(make_lookup(event_id=i, occurred_at=at) for i, at in times.items()))
    drawn(store, 100)
    assert set(in_view(store)) == {"first", "last", "zone"}


def test_drawing_again_changes_nothing(store: ClickHouseStore) -> None:
    store_lookups(store, *lookups(80))
    drawn(store, 20)
    before = store.query("SELECT * FROM audit_store.samples ORDER BY event_id")
    for size in (None, 20, 5):
        again = drawn(store, size)
        assert (again.unwritten, again.plan.added) == ([], frozenset())
    assert store.query("SELECT * FROM audit_store.samples ORDER BY event_id") == before


def test_late_lookups_enter_by_the_stored_rule(store: ClickHouseStore) -> None:
    store_lookups(store, *lookups(50))
    first = drawn(store, 10)
    before = in_view(store)
    store_lookups(store, *lookups(400, prefix="late"))
    drawn(store, 10)
    stratum = Stratum("dense", "minilm-l6@2", "PRECISE", "plain")
    p = first.plan.strata[stratum].probability
    late = {
        i for i in (f"late-{n}" for n in range(400)) if draw(first.plan.seed, DAY, "acme", i) < p
    }
    assert late
    assert in_view(store) == before | dict.fromkeys(late, p)


def test_a_late_stratum_gets_the_probability_of_the_days_constant(store: ClickHouseStore) -> None:
    store_lookups(store, *lookups(50))
    first = drawn(store, 10)
    store_lookups(store, *lookups(100, distance=1.6, prefix="late"))
    second = drawn(store)
    late = second.plan.strata[Stratum("dense", "minilm-l6@2", "NONE", "plain")]
    assert late.probability == pytest.approx(first.plan.scale * 10 / 100)
    store_lookups(store, *lookups(500, distance=1.6, prefix="later"))
    third = drawn(store)
    assert third.plan.strata == second.plan.strata


def test_a_larger_sample_holds_the_smaller_and_every_row_has_its_new_probability(
    store: ClickHouseStore,
) -> None:
    store_lookups(store, *lookups(100), *lookups(30, distance=1.6, prefix="none"))
    drawn(store, 20)
    small = in_view(store)
    sample = drawn(store, 60)
    large = in_view(store)
    assert set(small) < set(large)
    chances = {one.event_id: sample.plan.strata[one.stratum].probability for one in sample.drawn}
    assert large == chances
    assert all(large[i] > p for i, p in small.items())
    assert drawn(store, 20).unwritten == []
    assert in_view(store) == large


def test_tenants_are_populations_apart(store: ClickHouseStore) -> None:
    events = lookups(30)
    store_lookups(store, *events, *(e | {"tenant": "other"} for e in events))
    store_lookups(store, *(e | {"tenant": None, "event_id": f"x{i}"} for i, e in enumerate(events)))
    assert tenants_of(store, DAY) == ["", "acme", "other"]
    samples = [drawn(store, 10, tenant=tenant) for tenant in tenants_of(store, DAY)]
    assert len({sample.plan.seed for sample in samples}) == 3
    chosen = [{one.event_id for one in sample.drawn} for sample in samples]
    assert chosen[1] != chosen[2]
    sql = "SELECT tenant, count() AS n FROM audit.samples GROUP BY tenant"
    assert {row["tenant"]: row["n"] for row in rows(store, sql)} == {
        sample.tenant: len(sample.drawn) for sample in samples
    }


def test_a_duplicate_is_drawn_once_and_counted_once(store: ClickHouseStore) -> None:
    events = lookups(20)
    for _ in range(3):
        store_lookups(store, *events)
    sample = drawn(store, 1_000)
    assert sum(sample.populations.values()) == len(sample.drawn) == len(in_view(store)) == 20


def test_a_day_keeps_its_seed(store: ClickHouseStore) -> None:
    store_lookups(store, *lookups(20))
    drawn(store, 5, seed="dice")
    assert drawn(store, 5).plan.seed == "dice"
    with pytest.raises(ConfigError, match="seed 'dice' and keeps it"):
        drawn(store, 5, seed="again")


def test_a_day_without_lookups_writes_nothing(store: ClickHouseStore) -> None:
    sample = drawn(store, 5)
    assert (sample.drawn, sample.populations) == ([], {})
    assert store.query("SELECT count() FROM audit_store.sample_plans").scalar() == 0


@pytest.mark.parametrize("fail_at", [1, 2, 3])
def test_killed_anywhere_the_next_run_completes_the_same_sample(
    fail_at: int, store: ClickHouseStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lookup_audit.processors.sampling.day._ROWS", 10)
    store_lookups(store, *lookups(60))
    expected = {one.event_id for one in draw_day(store, DAY, "acme", size=25).drawn}
    assert len(expected) > 10
    broken = FailingStore(store, fail_at=frozenset({fail_at}))
    with pytest.raises(UnavailableError):
        write_day(broken, draw_day(store, DAY, "acme", size=25), NOW)
    drawn(store)
    assert set(in_view(store)) == expected
    assert store.query("SELECT count() FROM audit_store.samples").scalar() == len(expected)


@pytest.mark.parametrize("fail_at", [1, 2])
def test_killed_while_raising_the_size_the_next_run_completes_it(
    fail_at: int, store: ClickHouseStore
) -> None:
    store_lookups(store, *lookups(60))
    drawn(store, 10)
    raised = draw_day(store, DAY, "acme", size=40)
    broken = FailingStore(store, fail_at=frozenset({fail_at}))
    with pytest.raises(UnavailableError):
        write_day(broken, raised, datetime.now(UTC))
    drawn(store)
    (rule,) = raised.plan.strata.values()
    assert in_view(store) == dict.fromkeys((o.event_id for o in raised.drawn), rule.probability)


def test_many_strata_are_drawn_in_several_queries(
    store: ClickHouseStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = [e for v in range(7) for e in lookups(5, model_version=f"m@{v}", prefix=f"v{v}")]
    store_lookups(store, *events)
    whole = draw_day(store, DAY, "acme", size=12)
    monkeypatch.setattr("lookup_audit.processors.sampling.day._STRATA", 2)
    parts = draw_day(store, DAY, "acme", size=12)
    assert sorted(one.event_id for one in parts.drawn) == [one.event_id for one in whole.drawn]


def test_the_expected_size_is_met_over_many_seeds(store: ClickHouseStore) -> None:
    store_lookups(
        store,
        *lookups(150),
        *lookups(50, distance=1.6, prefix="n"),
        *lookups(6, prefix="m", relevance_level="REFERENCE"),
    )
    sizes = Counter(
        len(draw_day(store, DAY, "acme", size=40, seed=f"seed-{i}").drawn) for i in range(60)
    )
    mean = sum(size * n for size, n in sizes.items()) / 60
    # The size of a Poisson sample has a variance below its expectation, here sqrt(40 / 60) = 0.8.
    assert abs(mean - 40) < 3.5 * 0.82


SECRET = 0.123456


def answered(lookup_ids: list[str], **over: Any) -> Event:
    return make_outcome(lookup_event_ids=lookup_ids, occurred_at=NOON, **over)


def test_the_sheet_shows_question_evidence_and_claims(
    store: ClickHouseStore, tmp_path: Path
) -> None:
    shown = make_candidate(dense_distance=0.2, excerpt="默认超时三十秒。", title="超时")
    other = make_candidate(original_rank=2, dense_distance=0.4, chunk_id="unseen")
    event = make_lookup(
        event_id="a", occurred_at=NOON, candidates=[shown, other], query={"text": "默认超时？"}
    )
    store_lookups(store, event)
    store_answers(store, answered(["a"], outcome_id="out-a"))
    drawn(store, 10)
    (answer,) = sampled_answers(store, DAY, None)
    assert answer.queries == ("默认超时？",)
    assert [(e.chunk_id, e.title, e.excerpt) for e in answer.evidence] == [
        ("doc-1#chunk-0", "超时", "默认超时三十秒。")
    ]
    assert answer.evidence[0].source_url == "https://kb.example.com/p/1"
    assert answer.evidence[0].document_version == "v3.2"
    assert [c.cited_chunk_ids for c in answer.claims] == [("doc-1#chunk-0",)]
    path = tmp_path / "sheet.csv"
    assert write_sheet(path, [answer]) == 1
    assert read_sheet(path).open_rows == 1


def test_reviewers_are_blind_to_levels_scores_and_thresholds(store: ClickHouseStore) -> None:
    candidate = make_candidate(
        dense_distance=1 - SECRET,
        rrf_score=SECRET / 2,
        rerank_score=SECRET,
        score=SECRET,
        similarity_score=SECRET,
        layer="low",
        hit_reasons=["l0:keyword:secret"],
    )
    event = make_lookup(
        event_id="a",
        occurred_at=NOON,
        candidates=[candidate],
        relevance_level="HIGHLY_RELEVANT",
        completeness_hint="secret",
        top_similarity=SECRET,
    )
    store_lookups(store, event)
    store_answers(store, answered(["a"]))
    sample = drawn(store, 10)
    (answer,) = sampled_answers(store, DAY, None)
    sheet = json_line(answer) + "\t".join(csv_row(answer))
    (stratum,) = sample.populations
    leaks = [
        "HIGHLY_RELEVANT",
        "PRECISE",
        "REFERENCE",
        "NONE",
        "EVIDENCE",
        "secret",
        "123456",
        str(SECRET / 2),
        str(1 - SECRET),
        str(candidate["quality_score"]),
        "0.75",
        "0.5",
        "0.82",
        stratum.lookup_class,
        "mismatch",
        "level",
        "score",
        "quality",
        "probability",
        str(sample.drawn[0].draw),
        stratum.model_version,
        '"dense"',
    ]
    assert [leak for leak in leaks if leak in sheet] == []


def test_an_answer_over_several_lookups_is_judged_once(store: ClickHouseStore) -> None:
    store_lookups(store, *lookups(3))
    store_answers(store, answered(["evt-0", "evt-1", "evt-2"], outcome_id="out"))
    drawn(store, 10)
    assert [a.outcome_id for a in sampled_answers(store, DAY, "acme")] == ["out"]


def test_refusals_are_listed_only_when_asked_for(store: ClickHouseStore) -> None:
    store_lookups(store, *lookups(2))
    store_answers(
        store,
        answered(["evt-0"], outcome_id="a"),
        answered(["evt-1"], outcome_id="r", action="refused"),
    )
    drawn(store, 10)
    assert [a.outcome_id for a in sampled_answers(store, DAY, None)] == ["a"]
    both = {a.outcome_id: a for a in sampled_answers(store, DAY, None, refused=True)}
    assert both["r"].refusal == "I found nothing I could rely on."


def test_the_sheets_beginning_is_a_random_sample_too(store: ClickHouseStore) -> None:
    events = [*lookups(60), *lookups(20, distance=1.6, prefix="none")]
    store_lookups(store, *events)
    store_answers(store, *(answered([e["event_id"]], outcome_id=e["event_id"]) for e in events))
    sample = drawn(store, 40)
    place = {
        one.event_id: one.draw / sample.plan.strata[one.stratum].probability for one in sample.drawn
    }
    sheet = [a.outcome_id for a in sampled_answers(store, DAY, None)]
    assert sheet == sorted(place, key=lambda i: place[i])


def test_an_answer_whose_other_lookups_are_not_stored_is_still_shown(
    store: ClickHouseStore,
) -> None:
    store_lookups(store, *lookups(1))
    store_answers(store, answered(["lost", "evt-0"], claims=None))
    drawn(store, 10)
    (answer,) = sampled_answers(store, DAY, None)
    assert (len(answer.queries), answer.claims) == (1, ())


def test_the_view_has_the_columns_that_others_build_on(store: ClickHouseStore) -> None:
    columns = {
        name
        for (name,) in store.query(
            "SELECT name FROM system.columns WHERE database = 'audit' AND table = 'samples'"
        )
    }
    assert columns >= {
        "tenant",
        "day",
        "event_id",
        "occurred_at",
        "mode",
        "model_version",
        "level",
        "class",
        "inclusion_probability",
        "draw",
        "seed",
        "drawn_at",
    }
