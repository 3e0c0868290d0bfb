from datetime import timedelta
from typing import Any

import pytest

from lookup_audit.processors.reading import rows
from lookup_audit.processors.store import ClickHouseStore
from lookup_audit.processors.triage import newest_day, triage
from lookup_audit.processors.triage.causes import FACTORS
from lookup_audit.processors.triage.rises import factors_sql
from tests.support.agent_runs import START, at, candidate, write
from tests.support.events import Event, make_judgement, make_lookup, make_outcome

pytest_plugins = ["tests.support.engine"]

DAY = START.date()


def answered(
    name: str, *, day: int = 0, verdict: str | None = "correct", **over: Any
) -> tuple[Event, list[Event]]:
    """A PRECISE lookup, its outcome citing ``c1``, and a judgement unless it is ``None``."""
    action = over.pop("action", "answered")
    time = at(1440 * day + 60)
    members = {
        "relevance_level": "PRECISE",
        "candidates": [candidate(1)],
        "query": {"text": "超时"},
    }
    lookup = make_lookup(event_id=f"e-{name}", occurred_at=time, **members | over)
    claim = {"claim_id": "k", "text": "t", "cited_chunk_ids": ["c1"], "cited_source_urls": []}
    outcome = make_outcome(
        outcome_id=f"o-{name}",
        tenant=lookup["tenant"],
        lookup_event_ids=[lookup["event_id"]],
        occurred_at=at(1440 * day + 61),
        action=action,
        claims=[claim] if action == "answered" else [],
    )
    judgement = make_judgement(
        judgement_id=f"j-{name}", outcome_id=f"o-{name}", tenant=lookup["tenant"], verdict=verdict
    )
    return lookup, [outcome, judgement] if verdict else [outcome]


def store_all(store: ClickHouseStore, runs: list[tuple[Event, list[Event]]]) -> None:
    write(store, [lookup for lookup, _ in runs], [event for _, rest in runs for event in rest])


def factors(store: ClickHouseStore, kind: str, **over: Any) -> list[dict[str, Any]]:
    since = (DAY - timedelta(days=7)).isoformat()
    given = {"kind": kind, "day": DAY.isoformat(), "since": since, "tenant": "", "every_tenant": 1}
    return rows(store, factors_sql(), given | over)


def dated(number: int, days_ago: int, **over: Any) -> Event:
    updated = (START - timedelta(days=days_ago)).isoformat()
    return candidate(number, document_updated_at=updated, **over)


def test_a_row_says_what_an_answer_rested_on(store: ClickHouseStore) -> None:
    cited = dated(1, 30, document_id="d", document_version="v1", source_url=None)
    newer = dated(2, 3, document_id="d", document_version="v2")
    later = dated(3, -2, document_id="d", document_version="v3")
    wrong = answered(
        "a",
        verdict="incorrect",
        mode="hybrid",
        candidates=[cited, newer, later],
        selected_chunk_ids=["c1", "c2"],
        versions={"index": "kb-1", "chunker": "md@1", "reranker": None},
        retrieval_trace={"category_filter": "api", "unfiltered_retry": True},
    )
    store_all(store, [wrong])
    (row,) = factors(store, "errors")
    assert {name: row[name] for name in row if name not in ("ruleset", "quality")} == {
        "tenant": "acme",
        "model_version": "minilm-l6@2",
        "mode": "hybrid",
        "on_day": True,
        "bad": True,
        "age_days": 30,
        "old_version": 0,
        "missing_link": 1,
        "missing_version": 0,
        "category_filter": 1,
        "unfiltered_retry": 1,
        "rank_fallback": 0,
        "index_version": "kb-1",
        "chunker_version": "md@1",
        "reranker_version": "",
        "answer_model": "answerer@5",
        "judge": "reviewer-3",
        "top_k": 4,
        "n": 1,
    }
    assert {factor.name for factor in FACTORS} < set(row)
    # Refused or not is compared by what was selected, since a refusal cites nothing.
    (row,) = factors(store, "refusals")
    assert (row["bad"], row["missing_link"], row["old_version"]) == (False, 1, 0)


@pytest.mark.parametrize(
    ("version", "days_ago", "is_old"),
    [
        pytest.param("v2", 3, 1, id="a newer one was there"),
        pytest.param("v2", -1, 0, id="the newer one came later"),
        pytest.param("v1", 3, 0, id="the same version again"),
        pytest.param("", 3, 0, id="a version that is not known"),
    ],
)
def test_a_version_is_old_if_a_newer_one_was_known_by_then(
    store: ClickHouseStore, version: str, days_ago: int, is_old: int
) -> None:
    mine = dated(1, 30, document_id="d", document_version="v1")
    other = dated(2, days_ago, document_id="d", document_version=version)
    store_all(
        store,
        [answered("a", candidates=[mine]), answered("b", day=-1, candidates=[candidate(1), other])],
    )
    (row,) = [row for row in factors(store, "errors") if row["on_day"]]
    assert (row["old_version"], row["age_days"]) == (is_old, 30)


def test_only_judged_precise_answers_are_counted_for_errors(store: ClickHouseStore) -> None:
    store_all(
        store,
        [
            answered("right"),
            answered("wrong", verdict="incorrect"),
            answered("partly", verdict="partly"),
            answered("unsure", verdict="cannot_tell"),
            answered("unjudged", verdict=None),
            answered("refused", verdict=None, action="refused"),
            answered("low", relevance_level=None, verdict="incorrect"),
            answered("old", day=-8),
            answered("next", day=1),
            answered("other", tenant="other"),
        ],
    )
    found = factors(store, "errors", tenant="acme", every_tenant=0)
    assert sum(row["n"] for row in found) == 3
    assert sum(row["n"] for row in found if row["bad"]) == 1
    refusals = factors(store, "refusals", tenant="acme", every_tenant=0)
    assert sum(row["n"] for row in refusals) == 7
    assert sum(row["n"] for row in refusals if row["bad"]) == 1
    assert newest_day(store) == DAY + timedelta(days=1)
    assert newest_day(store, "nobody") is None


def history() -> list[tuple[Event, list[Event]]]:
    """A week without trouble."""
    return [
        answered(
            f"past-{i}",
            day=-1 - i % 5,
            verdict="incorrect" if i % 20 == 0 else "correct",
            candidates=[dated(1, 20 + i % 9)],
            action="refused" if i % 15 == 0 else "answered",
        )
        for i in range(60)
    ]


def test_stale_documents_behind_errors_are_found_first(store: ClickHouseStore) -> None:
    today = [
        answered(
            f"now-{i}",
            verdict="incorrect" if i < 12 else "correct",
            candidates=[dated(1, 400 + i if i < 12 else 20 + i % 9)],
        )
        for i in range(30)
    ]
    store_all(store, history() + today)
    before = triage(store, "errors", day=DAY, baseline_days=7)
    (rise,) = before
    assert (rise.state, rise.bad, rise.n, rise.baseline_n) == ("rise", 12, 30, 56)
    first = rise.causes[0]
    assert (first.factor, first.is_clear) == ("age_days", True)
    assert [c.factor for c in rise.causes if c.is_clear and c.factor != "age_days"] == []
    for lookup, rest in today:
        write(store, [lookup], rest, start=5000)
    assert triage(store, "errors", day=DAY, baseline_days=7) == before


def test_missing_links_behind_refusals_are_found_first(store: ClickHouseStore) -> None:
    today = [
        answered(
            f"now-{i}",
            action="refused" if i < 14 else "answered",
            candidates=[dated(1, 22, source_url=None if i < 13 else "https://kb/1")],
        )
        for i in range(30)
    ]
    store_all(store, history() + today)
    (rise,) = triage(store, "refusals", day=DAY, baseline_days=7)
    assert (rise.state, rise.bad, rise.n, rise.baseline_bad) == ("rise", 14, 30, 4)
    assert (rise.causes[0].factor, rise.causes[0].is_clear) == ("missing_link", True)
    assert triage(store, "refusals", day=DAY, baseline_days=7, tenant="x'; --") == []


def test_a_day_like_those_before_has_no_rise_and_no_causes(store: ClickHouseStore) -> None:
    today = [answered(f"now-{i}", verdict="incorrect" if i == 0 else "correct") for i in range(25)]
    store_all(store, history() + today)
    (rise,) = triage(store, "errors", day=DAY, baseline_days=7)
    assert (rise.state, rise.causes) == ("no_rise", [])
