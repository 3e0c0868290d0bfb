import random
import unicodedata
from collections import Counter
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookup_audit.processors.conduct import conduct_examples, conduct_rates
from lookup_audit.processors.store import ClickHouseStore
from tests.support.agent_runs import START, at, candidate, random_runs, write
from tests.support.events import Event, make_lookup, make_outcome
from tests.support.slow_conduct import FindingRow, Stored, normalised
from tests.support.strategies import examples

pytest_plugins = ["tests.support.engine"]


def findings(store: ClickHouseStore) -> list[FindingRow]:
    columns = ", ".join(FindingRow._fields)
    return [
        FindingRow(*row) for row in store.query(f"SELECT {columns} FROM audit.conduct_findings")
    ]


def ask(event_id: str, minute: float, text: str = "Default timeout", **over: Any) -> Event:
    members = {"run_id": "r1", "relevance_level": "PRECISE", "occurred_at": at(minute)}
    return make_lookup(event_id=event_id, query={"text": text, "language": None}, **members | over)


@pytest.mark.parametrize(
    ("second", "is_wasted"),
    [
        pytest.param(ask("e2", 2), True, id="the same"),
        pytest.param(
            ask("e2", 2, " ＤＥＦＡＵＬＴ\u3000 timeout? "), True, id="the same, normalised"
        ),
        pytest.param(ask("e2", 2, "default timeouts"), False, id="other words"),
        pytest.param(ask("e2", 2, run_id="r2"), False, id="another run"),
        pytest.param(ask("e2", 2, tenant="other"), False, id="another tenant"),
        pytest.param(ask("e2", 2, mode="hybrid"), False, id="another mode is another ruler"),
        pytest.param(ask("e2", 1), False, id="at the same time is not after"),
        pytest.param(ask("e2", 0, relevance_level=None), False, id="before"),
    ],
)
def test_asking_the_same_again_after_precise_is_wasted(
    store: ClickHouseStore, second: Event, is_wasted: bool
) -> None:
    write(store, [second, ask("e1", 1)])
    expected = [FindingRow("wasted_lookup", "acme", "r1", "e2", "", 0)] if is_wasted else []
    assert findings(store) == expected
    if is_wasted:
        (evidence,) = store.query("SELECT evidence FROM audit.conduct_findings")[0]
        assert evidence == '{"earlier_precise_lookup":"e1"}'


@pytest.mark.parametrize("level", [None, "REFERENCE"])
def test_asking_again_after_a_lower_level_is_no_waste(
    store: ClickHouseStore, level: str | None
) -> None:
    write(store, [ask("e1", 1, relevance_level=level), ask("e2", 2)])
    assert findings(store) == []


def test_lookups_without_a_run_are_joined_by_their_outcome(store: ClickHouseStore) -> None:
    asked = [ask(f"e{i}", i, "超时 时间？", run_id=None) for i in (1, 2, 3)]
    outcome = make_outcome(
        outcome_id="o1", run_id=None, lookup_event_ids=["e2", "e1"], stance="hedged", claims=[]
    )
    write(store, asked)
    assert findings(store) == []
    write(store, (), [outcome])
    assert findings(store) == [FindingRow("wasted_lookup", "acme", "", "e2", "o1", 0)]


def test_a_query_that_is_unknown_or_only_marks_repeats_nothing(store: ClickHouseStore) -> None:
    write(
        store,
        [ask(f"e{i}", i, text) for i, text in enumerate(["", "", "?", "？！", "。"])],
    )
    assert findings(store) == []


def concluded(levels: list[str | None], **over: Any) -> tuple[list[Event], list[Event]]:
    """A run that asks other words each time, and refers to all its lookups unless told."""
    lookups = [ask(f"e{i}", i, f"q{i}", relevance_level=v) for i, v in enumerate(levels)]
    members: Event = {
        "outcome_id": "o1",
        "run_id": "r1",
        "lookup_event_ids": [e["event_id"] for e in lookups],
        "occurred_at": at(30),
        "claims": [],
    }
    return lookups, [make_outcome(**(members | over))]


@pytest.mark.parametrize(
    ("levels", "over", "last"),
    [
        pytest.param([None], {}, "e0", id="firm on NONE"),
        pytest.param([None, None], {}, "e1", id="looked further, still NONE"),
        pytest.param([None], {"stance": "hedged"}, None, id="hedged"),
        pytest.param([None], {"stance": None}, None, id="stance unknown"),
        pytest.param([None], {"action": "refused"}, None, id="refused"),
        pytest.param(["REFERENCE"], {}, None, id="firm on REFERENCE"),
        pytest.param([None, "PRECISE"], {}, None, id="looked further and found"),
        pytest.param(["PRECISE", None], {}, None, id="rests on an earlier lookup"),
        pytest.param([None, "PRECISE"], {"lookup_event_ids": ["e0"]}, None, id="found in the run"),
        pytest.param([None], {"lookup_event_ids": ["e0", "lost"]}, None, id="a lookup is missing"),
        pytest.param([None], {"run_id": None}, "e0", id="no run id"),
    ],
)
def test_a_firm_conclusion_on_none_is_over_confident(
    store: ClickHouseStore, levels: list[str | None], over: Event, last: str | None
) -> None:
    write(store, *concluded(levels, **over))
    run_id = over.get("run_id", "r1") or ""
    expected = [FindingRow("over_confident", "acme", run_id, last, "o1", 0)] if last else []
    assert findings(store) == expected


CITED = [candidate(1), candidate(2, source_url=None), candidate(3, kept=False)]


@pytest.mark.parametrize(
    ("cited", "urls", "status", "found"),
    [
        pytest.param(["c1"], [], "EVIDENCE_FOUND", [], id="returned"),
        pytest.param(["c1"], [], None, [], id="status unknown"),
        pytest.param(["c1"], [], "NO_EVIDENCE", ["fabricated_citation"], id="on NO_EVIDENCE"),
        pytest.param(["c1", "c9"], [], "EVIDENCE_FOUND", ["fabricated_citation"], id="invented"),
        pytest.param(["c3"], [], "EVIDENCE_FOUND", ["fabricated_citation"], id="dropped"),
        pytest.param([], ["https://x"], "EVIDENCE_FOUND", ["fabricated_citation"], id="a url"),
        pytest.param(["c1"], ["https://x"], "EVIDENCE_FOUND", [], id="a url beside a chunk"),
        pytest.param(["c2"], [], "EVIDENCE_FOUND", ["unsupported_claim"], id="no link"),
        pytest.param(["c2", "c1"], [], "EVIDENCE_FOUND", [], id="no link, and another with one"),
        pytest.param([], [], "NO_EVIDENCE", [], id="cites nothing"),
    ],
)
def test_citations_that_cannot_be_are_found(
    store: ClickHouseStore, cited: list[str], urls: list[str], status: str | None, found: list[str]
) -> None:
    lookup = ask("e1", 1, candidates=CITED, selected_chunk_ids=["c1", "c2"], evidence_status=status)
    claim = {"claim_id": "k", "text": "t", "cited_chunk_ids": cited, "cited_source_urls": urls}
    outcome = make_outcome(
        outcome_id="o1", run_id="r1", lookup_event_ids=["e1"], claims=[claim], occurred_at=at(3)
    )
    write(store, [lookup], [outcome])
    assert findings(store) == [FindingRow(name, "acme", "r1", "e1", "o1", 1) for name in found]


def test_a_chunk_of_an_earlier_lookup_of_the_run_is_no_fabrication(store: ClickHouseStore) -> None:
    earlier = ask("e1", 1, "other words", candidates=[candidate(8)])
    lookups, outcomes = concluded(["PRECISE"])
    outcomes[0]["claims"] = [
        {"claim_id": None, "text": "t", "cited_chunk_ids": ["c8"], "cited_source_urls": []}
    ]
    write(store, [earlier, *lookups], outcomes)
    assert findings(store) == []


@pytest.mark.parametrize("seed", range(3))
def test_findings_and_rates_equal_those_worked_out_from_the_raw_events(
    store: ClickHouseStore, seed: int
) -> None:
    lookups, outcomes = random_runs(seed)
    write(store, lookups, outcomes)
    found = findings(store)
    expected = Stored(lookups, outcomes).findings()
    assert set(found) == expected
    assert len(found) == len(expected)
    kinds = Counter(row.finding for row in found)
    assert len(kinds) == 4
    counts = store.query(
        "SELECT sum(wasted_lookups), sum(over_confident), sum(fabricated_citations), "
        "sum(unsupported_claims), sum(lookups_in_runs) FROM audit.conduct_daily"
    )[0]
    assert counts[:4] == tuple(
        kinds[name]
        for name in ("wasted_lookup", "over_confident", "fabricated_citation", "unsupported_claim")
    )
    in_runs = {(e["tenant"], e["event_id"]) for e in lookups if e["run_id"] and e["query"]} | {
        (o["tenant"], e["event_id"])
        for o in outcomes
        for e in Stored(lookups, outcomes).referred(o)
        if e["query"]
    }
    assert counts[4] == len(in_runs)


def test_order_of_arrival_and_replays_change_no_finding(store: ClickHouseStore) -> None:
    lookups, outcomes = random_runs(11, count=40)
    write(store, (), outcomes)
    write(store, lookups)
    before = sorted(findings(store))
    daily = sorted(store.query("SELECT * FROM audit.conduct_daily"))
    write(store, random.Random(1).sample(lookups, len(lookups)), outcomes, start=1000)
    assert sorted(findings(store)) == before
    assert sorted(store.query("SELECT * FROM audit.conduct_daily")) == daily


def test_rates_have_their_occasions_and_no_value_without_one(store: ClickHouseStore) -> None:
    lookups, outcomes = concluded([None])
    write(store, [*lookups, ask("x1", 1, run_id=None, mode="hybrid")], outcomes)
    (row,) = store.query("SELECT * EXCEPT day FROM audit.conduct_daily").dicts()
    assert row == {
        "tenant": "acme",
        "model_version": "minilm-l6@2",
        "mode": "dense",
        "lookups_in_runs": 1,
        "wasted_lookups": 0,
        "wasted_lookup_rate": 0.0,
        "outcomes_on_none": 1,
        "over_confident": 1,
        "over_confident_rate": 1.0,
        "citing_claims": 0,
        "fabricated_citations": 0,
        "fabricated_citation_rate": None,
        "unsupported_claims": 0,
        "unsupported_claim_rate": None,
    }


ASSIGNED = st.characters(exclude_categories=["Cs", "Cn", "Co"], exclude_characters="\0")


@examples(20)
@given(st.lists(st.text(ASSIGNED, min_size=1, max_size=12), min_size=20, max_size=40))
def test_a_query_is_normalised_alike_in_sql_and_python(
    engine: ClickHouseStore, texts: list[str]
) -> None:
    texts += ["İ ΑΣ. ẞ\x85\u2028x", "ﬁ…", "¿Qué?  ", "。超时 。", "ǅ\x1f\x0b!"]
    asked = [ask(f"n{2 * i}", 1, text, run_id=f"run-{i}") for i, text in enumerate(texts)]
    asked += [
        ask(f"n{2 * i + 1}", 2, normalised(text) or "?", run_id=f"run-{i}")
        for i, text in enumerate(texts)
    ]
    for table in ("lookups", "outcomes", "event_ids"):
        engine.command(f"TRUNCATE TABLE audit_store.{table}")
    write(engine, asked)
    wasted = {row.event_id for row in findings(engine)}
    assert wasted == {f"n{2 * i + 1}" for i, text in enumerate(texts) if normalised(text)}, [
        unicodedata.name(c, "?") for text in texts for c in text
    ]


def test_rates_are_read_by_stratum_and_never_pooled(store: ClickHouseStore) -> None:
    for offset, (tenant, mode) in enumerate([("a", "dense"), ("a", "hybrid"), ("b", "dense")]):
        mine = {"tenant": tenant, "outcome_id": f"o{offset}", "lookup_event_ids": [f"e{offset}"]}
        lookups, outcomes = concluded([None], run_id=None, **mine)
        own = {"tenant": tenant, "mode": mode, "event_id": f"e{offset}", "run_id": None}
        write(store, [lookups[0] | own], outcomes, start=10 * offset)
    found = [r for r in conduct_rates(store) if r.finding == "over_confident"]
    assert [(r.tenant, r.mode, r.found, r.occasions, r.rate) for r in found] == [
        ("a", "dense", 1, 1, 1.0),
        ("a", "hybrid", 1, 1, 1.0),
        ("b", "dense", 1, 1, 1.0),
    ]


def test_rates_and_examples_keep_to_the_days_and_the_tenant(store: ClickHouseStore) -> None:
    lookups, outcomes = concluded([None])
    write(store, lookups, outcomes)
    after = START.date() + timedelta(days=1)
    assert conduct_rates(store, since=after) == []
    assert conduct_examples(store, each=9, since=after) == []
    assert conduct_rates(store, tenant="acme'; DROP VIEW x") == []
    assert len(conduct_rates(store, since=START.date(), tenant="acme")) == 4
    assert conduct_examples(store, each=0) == []
    (example,) = conduct_examples(store, each=9, tenant="acme")
    assert (example["finding"], example["run_id"]) == ("over_confident", "r1")


def test_a_rate_without_an_occasion_has_neither_value_nor_interval(store: ClickHouseStore) -> None:
    write(store, *concluded([None]))
    by_name = {rate.finding: rate for rate in conduct_rates(store)}
    none, one = by_name["fabricated_citation"], by_name["over_confident"]
    assert (none.occasions, none.rate, none.interval) == (0, None, None)
    assert one.interval is not None
    # Wilson for 1 of 1: low end 1 / (1 + z^2).
    assert one.interval == pytest.approx((1 / (1 + 1.959964**2), 1.0), abs=1e-6)
