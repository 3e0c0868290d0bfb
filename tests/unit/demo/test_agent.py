from __future__ import annotations

from typing import Any

import pytest

from lookup_audit.deploy.demo.agent import (
    Agent,
    best_quote,
    decide,
    keywords_only,
    sentence_support,
    sentences,
)
from lookup_audit.deploy.demo.identifiers import Identifiers
from tests.unit.demo.conftest import noon

QUESTION = "Which port is the default?"


def make_answer(level: str | None, *excerpts: str) -> dict[str, Any]:
    return {
        "evidence_status": "EVIDENCE_FOUND" if excerpts else "NO_EVIDENCE",
        "relevance_level": level,
        "evidence": [
            {"document_id": f"page@1.0#{n}", "source_url": None, "excerpt": text}
            for n, text in enumerate(excerpts)
        ],
    }


def constant(value: float) -> Any:
    return lambda question, sentence: value


@pytest.mark.parametrize("level", [None, "REFERENCE", "PRECISE"])
def test_the_agent_refuses_when_nothing_is_good_enough(level: str | None) -> None:
    decision = decide(QUESTION, make_answer(level, "The port is not given here."), constant(0.1))
    assert decision.action == "refused"
    assert decision.quote is None


def test_the_agent_refuses_without_evidence() -> None:
    decision = decide(QUESTION, make_answer(None), constant(1.0))
    assert (decision.action, decision.refusal_reason) == ("refused", "no_evidence")


@pytest.mark.parametrize(
    ("level", "support", "outcome"),
    [
        pytest.param("PRECISE", 0.45, ("answered", "firm", None), id="precise"),
        pytest.param("PRECISE", 0.2, ("refused", None, "condition_not_covered"), id="over-refusal"),
        pytest.param("REFERENCE", 0.45, ("answered", "hedged", None), id="reference"),
        pytest.param("REFERENCE", 0.3, ("refused", None, "insufficient_sources"), id="weak"),
        pytest.param(None, 0.7, ("answered", "hedged", None), id="lucky"),
        pytest.param(None, 0.45, ("refused", None, "low_quality"), id="low quality"),
    ],
)
def test_what_is_enough_depends_on_the_level(
    level: str | None, support: float, outcome: tuple[str, str | None, str | None]
) -> None:
    decision = decide(QUESTION, make_answer(level, "The default port is 4318."), constant(support))
    assert (decision.action, decision.stance, decision.refusal_reason) == outcome


def test_the_answer_is_a_verbatim_sentence_of_the_best_passage() -> None:
    support = sentence_support(lambda question, sentence: float("4318" in sentence))
    quote = best_quote(
        QUESTION,
        make_answer("PRECISE", "Ports matter to firewalls.", "It has one. The default is 4318.")[
            "evidence"
        ],
        support,
    )
    assert quote is not None
    assert (quote.text, quote.chunk_id) == ("The default is 4318.", "page@1.0#1")


def test_sentences_are_pieces_of_their_passage() -> None:
    passage = "It gives `503`. Wait for it (see below).\nA list item with words"
    assert all(sentence in passage for sentence in sentences(passage))


def test_a_near_miss_without_level_is_looked_up_again_with_keywords(ids: Identifiers) -> None:
    asked: list[tuple[str, str | None]] = []

    def ask(
        text: str, category: str | None, run_id: str, tool_call_id: str
    ) -> tuple[dict[str, Any], str]:
        asked.append((text, category))
        level = None if len(asked) == 1 else "REFERENCE"
        return make_answer(level, "The default port is 4318."), f"event-{len(asked)}"

    agent = Agent(ask, constant(0.5), tenant="demo", ids=ids, clock=noon)
    outcome, decision = agent.run("What is the default port?", "operations")
    assert asked == [("What is the default port?", "operations"), ("default port", None)]
    assert outcome["lookup_event_ids"] == ["event-1", "event-2"]
    assert decision.action == outcome["action"] == "answered"


def test_an_unlinked_citation_names_no_url(ids: Identifiers) -> None:
    def ask(*args: object) -> tuple[dict[str, Any], str]:
        return make_answer("PRECISE", "The default port is 4318."), "event-1"

    outcome, _ = Agent(ask, constant(0.9), tenant="demo", ids=ids, clock=noon).run(QUESTION, None)
    assert outcome["claims"][0]["cited_chunk_ids"] == ["page@1.0#0"]
    assert outcome["claims"][0]["cited_source_urls"] == []


def test_keywords_keep_their_order() -> None:
    assert keywords_only("How do I replay dead letters?") == "replay dead letters"
