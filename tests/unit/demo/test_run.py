from __future__ import annotations

from typing import Any

import pytest

from lookup_audit.deploy.demo import run
from lookup_audit.deploy.demo.embedding import MiniLm
from lookup_audit.deploy.demo.gold import load_gold
from lookup_audit.deploy.demo.lookup import KnowledgeBase
from lookup_audit.deploy.demo.run import DemoSummary, Progress
from tests.unit.demo.stub_collector import StubCollector, stub_collector

Result = tuple[DemoSummary, StubCollector, list[Progress]]


@pytest.fixture(scope="module")
def result(model: MiniLm, candidate: KnowledgeBase, baseline: KnowledgeBase) -> Result:
    gold = load_gold()
    about = ("What is the default port of the collector in version 1.0?", "rank fallback", "bread")
    questions = [q for q in gold if any(part in q.question for part in about)]
    seen: list[Progress] = []
    with stub_collector() as stub:
        summary = run.run_demo(
            stub.url,
            questions=questions,
            model=model,
            bases=[candidate, baseline],
            on_progress=seen.append,
        )
        return summary, stub, seen


def test_each_question_is_asked_of_both_versions_in_both_modes(result: Result) -> None:
    summary, stub, _ = result
    first = {e["event_id"]: e for e in stub.take("/v1/lookups")}
    asked = [
        (e["query"]["text"], e["model_version"], e["mode"])
        for e in (first[o["lookup_event_ids"][0]] for o in stub.take("/v1/outcomes"))
    ]
    assert len(asked) == len(set(asked)) == summary.questions * 4


def test_what_the_summary_counts_is_what_arrived(result: Result) -> None:
    summary, stub, _ = result
    assert summary.lookups == len(stub.take("/v1/lookups"))
    assert summary.outcomes == len(stub.take("/v1/outcomes"))
    assert summary.judgements == len(stub.take("/v1/judgements"))
    assert summary.refused == ()


def test_every_answer_is_judged_and_no_refusal_is(result: Result) -> None:
    _, stub, _ = result
    answered = {o["outcome_id"] for o in stub.take("/v1/outcomes") if o["action"] == "answered"}
    assert answered == {j["outcome_id"] for j in stub.take("/v1/judgements")}
    assert all(j["source"] == "gold" for j in stub.take("/v1/judgements"))


def test_the_bread_question_is_refused(result: Result) -> None:
    _, stub, _ = result
    bread = {e["run_id"] for e in stub.take("/v1/lookups") if "bread" in e["query"]["text"]}
    outcomes = [o for o in stub.take("/v1/outcomes") if o["run_id"] in bread]
    assert len(outcomes) == 4
    assert {o["action"] for o in outcomes} == {"refused"}


def test_citations_name_returned_chunks_and_quote_them(result: Result) -> None:
    _, stub, _ = result
    seen: dict[str, dict[str, str]] = {}
    for event in stub.take("/v1/lookups"):
        for item in event["projection"]["evidence"]:
            seen.setdefault(event["run_id"], {})[item["document_id"]] = item["excerpt"]
    claims: list[tuple[str, dict[str, Any]]] = [
        (o["run_id"], claim) for o in stub.take("/v1/outcomes") for claim in o["claims"]
    ]
    assert claims
    for run_id, claim in claims:
        assert claim["text"] in seen[run_id][claim["cited_chunk_ids"][0]]


def test_progress_goes_through_every_stage_to_its_end(result: Result) -> None:
    _, _, seen = result
    stages = list(dict.fromkeys(p.stage for p in seen))
    assert stages == ["asking", "delivering"]
    assert (seen[-1].done, seen[-1].total) == (3, 3)


def test_nothing_but_loopback_is_reached(result: Result, only_loopback: list[Any]) -> None:
    with stub_collector() as stub:
        question = load_gold()[0]
        run.run_demo(stub.url, questions=[question], model=MiniLm.installed(), bases=[])
    assert result[0].lookups > 0
    assert all(address[0] == "127.0.0.1" for address in only_loopback)
