import random
from typing import Any

import pytest

from lookup_audit.processors.store import ClickHouseStore
from tests.support.agent_runs import candidate, random_runs, write
from tests.support.events import Event, make_candidate, make_lookup, make_outcome
from tests.support.slow_conduct import ClaimRow, Stored

pytest_plugins = ["tests.support.engine"]

LINKED, UNLINKED = candidate(1), candidate(2, source_url=None)
UNSELECTED, DROPPED = candidate(3), candidate(4, kept=False, drop_reason="top_k")


def claim(*chunks: str, urls: tuple[str, ...] = ()) -> Event:
    cited = {"cited_chunk_ids": list(chunks), "cited_source_urls": list(urls)}
    return {"claim_id": "k", "text": "三十秒"} | cited


def one_run(claims: list[Event], **outcome: Any) -> tuple[list[Event], list[Event]]:
    lookup = make_lookup(
        event_id="e1",
        run_id="r1",
        candidates=[LINKED, UNLINKED, UNSELECTED, DROPPED],
        selected_chunk_ids=["c1", "c2"],
    )
    members = {"outcome_id": "o1", "run_id": "r1", "lookup_event_ids": ["e1"], "claims": claims}
    return [lookup], [make_outcome(**(members | outcome))]


def claim_rows(store: ClickHouseStore) -> list[ClaimRow]:
    columns = ", ".join(ClaimRow._fields)
    found = store.query(f"SELECT {columns} FROM audit.claims ORDER BY tenant, outcome_id, 3")
    return [ClaimRow._make((*row[:7], tuple(row[7]))) for row in found]


@pytest.mark.parametrize(
    ("cited", "reason"),
    [
        pytest.param(claim("c1"), "", id="selected with a link"),
        pytest.param(claim("c9", "c1", "c2"), "", id="one good chunk is enough"),
        pytest.param(claim("c2"), "no_link", id="selected without a link"),
        pytest.param(claim("c3", "c2", "c9"), "no_link", id="no link is nearest"),
        pytest.param(claim("c3"), "unselected_chunk", id="kept and not selected"),
        pytest.param(claim("c4", "c3", "c9"), "unselected_chunk", id="unselected beats dropped"),
        pytest.param(claim("c9", "c4"), "dropped_chunk", id="dropped beats unknown"),
        pytest.param(claim("c9"), "unknown_chunk", id="retrieved by nobody"),
        pytest.param(claim(), "no_citation", id="nothing cited"),
        pytest.param(claim(urls=("https://kb/1",)), "", id="the url of a selected chunk"),
        pytest.param(claim(urls=("https://kb/3",)), "unselected_chunk", id="url of an unselected"),
        pytest.param(claim(urls=("https://kb/1/",)), "unknown_chunk", id="a url that differs"),
        pytest.param(claim(urls=("",)), "no_citation", id="an empty url cites nothing"),
    ],
)
def test_a_claim_is_supported_or_says_what_is_missing(
    store: ClickHouseStore, cited: Event, reason: str
) -> None:
    write(store, *one_run([cited]))
    (row,) = claim_rows(store)
    assert (row.supported, row.reason) == (reason == "", reason)
    assert (row.mode, row.model_version) == ("dense", "minilm-l6@2")


def test_a_claim_of_a_lookup_that_is_not_stored_yet_is_not_held_against_anyone(
    store: ClickHouseStore,
) -> None:
    lookups, outcomes = one_run([claim("c9"), claim(), claim("c1")], lookup_event_ids=["e1", "e2"])
    write(store, (), outcomes)
    assert [r.reason for r in claim_rows(store)] == [
        "lookup_missing",
        "no_citation",
        "lookup_missing",
    ]
    write(store, lookups)
    assert [r.reason for r in claim_rows(store)] == ["lookup_missing", "no_citation", ""]
    assert store.query("SELECT coverage FROM audit.answer_coverage") == [(None,)]
    daily = "SELECT claims, supported, unverifiable, coverage FROM audit.coverage_daily"
    assert store.query(daily) == [(3, 1, 1, 0.5)]
    second = make_lookup(event_id="e2", candidates=[candidate(9)])
    write(store, [second], start=9)
    assert [r.reason for r in claim_rows(store)] == ["", "no_citation", ""]
    assert store.query(daily) == [(3, 2, 0, 2 / 3)]


def test_a_chunk_selected_by_another_lookup_of_the_run_supports_nothing(
    store: ClickHouseStore,
) -> None:
    lookups, outcomes = one_run([claim("c7")])
    mate = make_lookup(event_id="e2", run_id="r1", candidates=[candidate(7)])
    stranger = make_lookup(event_id="e3", run_id="r2", candidates=[candidate(8)])
    outcomes[0]["claims"].append(claim("c8"))
    write(store, [*lookups, mate, stranger], outcomes)
    assert [r.reason for r in claim_rows(store)] == ["unselected_chunk", "unknown_chunk"]


def test_tenants_that_share_ids_do_not_share_evidence(store: ClickHouseStore) -> None:
    lookups, outcomes = one_run([claim("c1")], tenant="other")
    write(store, lookups, outcomes)
    assert [r.reason for r in claim_rows(store)] == ["lookup_missing"]


def test_an_outcome_of_two_modes_is_a_stratum_of_its_own(store: ClickHouseStore) -> None:
    lookups, outcomes = one_run([claim("c1")], lookup_event_ids=["e1", "e2"])
    other = make_lookup(event_id="e2", mode="hybrid", model_version="m@9", run_id="r1")
    write(store, [*lookups, other], outcomes)
    daily = "SELECT mode, model_version, answers, coverage FROM audit.coverage_daily"
    assert store.query(daily) == [("dense+hybrid", "m@9+minilm-l6@2", 1, 1.0)]


def test_coverage_of_an_answer_without_claims_and_of_a_refusal_has_no_value(
    store: ClickHouseStore,
) -> None:
    lookups, answers = one_run([])
    _, refusals = one_run([], outcome_id="o2", action="refused")
    write(store, lookups, answers + refusals)
    found = store.query("SELECT outcome_id, claims, coverage FROM audit.answer_coverage")
    assert found == [("o1", 0, None)]
    assert store.query("SELECT answers, coverage FROM audit.coverage_daily") == [(1, None)]


@pytest.mark.parametrize("seed", range(3))
def test_claims_equal_those_worked_out_from_the_raw_events(
    store: ClickHouseStore, seed: int
) -> None:
    lookups, outcomes = random_runs(seed)
    write(store, lookups, outcomes)
    expected = Stored(lookups, outcomes).claims()
    assert claim_rows(store) == sorted(expected, key=lambda r: (r.tenant, r.outcome_id, r[2]))
    assert len({r.reason for r in expected}) == 7


def test_order_of_arrival_and_replays_change_no_claim(store: ClickHouseStore) -> None:
    lookups, outcomes = random_runs(7, count=40)
    write(store, (), outcomes)
    write(store, lookups)
    before = claim_rows(store)
    chance = random.Random(1)
    for _ in range(2):
        write(store, chance.sample(lookups, len(lookups)), outcomes, start=1000)
    assert claim_rows(store) == before
    expected = Stored(lookups, outcomes).claims()
    assert before == sorted(expected, key=lambda r: (r.tenant, r.outcome_id, r.claim_number))


LOW = candidate(2, similarity_score=0.5, layer="low")
TWIN = LINKED | {"chunk_id": "c5", "original_rank": 5, "dense_distance": 0.42}


@pytest.mark.parametrize(
    ("candidates", "selected", "findings"),
    [
        pytest.param([LINKED], ["c1"], [[]], id="sound"),
        pytest.param([LINKED], ["c9"], [["unknown_chunk"]], id="unknown"),
        pytest.param([LINKED, DROPPED], ["c1", "c4"], [[], ["dropped_chunk"]], id="dropped"),
        pytest.param([LINKED, LOW], ["c1", "c2"], [[], ["low_layer"]], id="low layer"),
        pytest.param([LINKED], ["c1", "c1"], [[], ["duplicate"]], id="the same chunk twice"),
        pytest.param([LINKED, TWIN], ["c1", "c5"], [[], ["duplicate"]], id="the same citation"),
        pytest.param(
            [LINKED, TWIN | {"breadcrumb": "SDK > Other"}],
            ["c1", "c5"],
            [[], []],
            id="another breadcrumb",
        ),
        pytest.param(
            [LINKED, TWIN | {"document_version": "v4"}], ["c1", "c5"], [[], []], id="other version"
        ),
        pytest.param(
            [LINKED | {"similarity_score": None, "layer": None}],
            ["c1"],
            [["unknown_layer"]],
            id="no similarity",
        ),
        pytest.param(
            [LINKED | {"kept": False, "similarity_score": 0.1}, LINKED | {"original_rank": 2}],
            ["c1"],
            [[]],
            id="of a chunk listed twice the kept copy counts",
        ),
    ],
)
def test_what_is_wrong_with_a_selected_chunk_is_named(
    store: ClickHouseStore,
    candidates: list[Event],
    selected: list[str],
    findings: list[list[str]],
) -> None:
    write(store, [make_lookup(candidates=candidates, selected_chunk_ids=selected)])
    sql = "SELECT findings FROM audit.selections ORDER BY position"
    assert [list(f) for (f,) in store.query(sql)] == findings


@pytest.mark.parametrize(
    ("budget", "is_over"),
    [
        pytest.param({"limit_tokens": 180, "used_tokens": 180}, False, id="exactly full"),
        pytest.param({"limit_tokens": 179, "used_tokens": None}, True, id="by the chunks"),
        pytest.param({"limit_tokens": 180, "used_tokens": 181}, True, id="by its own word"),
        pytest.param({"limit_tokens": None, "used_tokens": 9**9}, False, id="no limit known"),
        pytest.param(None, False, id="no budget"),
    ],
)
def test_a_lookup_over_its_context_budget_is_found(
    store: ClickHouseStore, budget: Event | None, is_over: bool
) -> None:
    write(store, [make_lookup(context_budget=budget)])
    assert store.query("SELECT over_budget FROM audit.selections") == [(is_over,)]


def selecting(chance: random.Random) -> Event:
    """A lookup that selects, at times wrongly, among alike candidates."""
    same: list[str | None] = [None, "", "x"]
    found = [
        make_candidate(
            chunk_id=chance.choice([f"c{rank}", "c1"]),
            document_id=chance.choice([None, "d", "d", "d"]),
            document_version=chance.choice(same),
            source_url=chance.choice(same),
            breadcrumb=chance.choice(same),
            similarity_score=chance.choice([None, 0.9, 0.9, 0.9, 0.9, 0.1]),
            layer=chance.choice([None, "high", "high", "high", "low"]),
            kept=chance.choice([None, True, True, True, False]),
            tokens=chance.choice([None, 40, 60]),
            original_rank=rank,
        )
        for rank in range(1, chance.choice([3, 3, 4]))
    ]
    budget = {
        "limit_tokens": chance.choice([None, 100]),
        "used_tokens": chance.choice([None, 90, 100, 101]),
    }
    names = ["c1", "c2", "c1", "c2", "c3"]
    chosen = chance.choices(names, k=chance.randrange(4))
    event = make_lookup(
        candidates=found,
        selected_chunk_ids=chosen if chance.random() < 0.3 else list(dict.fromkeys(chosen)),
        context_budget=chance.choice([None, budget, budget]),
    )
    if chance.random() < 0.2:
        event["evidenceBlocks"] = event.pop("candidates")
    return event


def test_selections_agree_with_the_selection_check(store: ClickHouseStore) -> None:
    chance = random.Random(1)
    write(store, [selecting(chance) for _ in range(2500)])
    differing = store.query(
        "SELECT event_id, failures FROM audit.lookups WHERE has(failed_checks, 'selection') != "
        "(event_id IN (SELECT event_id FROM audit.selections WHERE over_budget "
        "OR arrayExists(finding -> finding != 'unknown_layer', findings)))"
    )
    assert differing == []
    reasons = store.query(
        "SELECT DISTINCT extract(arrayJoin(failures), 'selection:([a-z_]+)') AS reason "
        "FROM audit.lookups WHERE reason != ''"
    )
    expected = {"unknown_chunk", "dropped_chunk", "low_layer", "duplicate", "over_budget"}
    assert {reason for (reason,) in reasons} == expected
