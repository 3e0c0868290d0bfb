from __future__ import annotations

import pytest

from lookup_audit.deploy.demo.agent import Quote
from lookup_audit.deploy.demo.corpus import Chunk, parse_page
from lookup_audit.deploy.demo.gold import GoldQuestion, Support
from lookup_audit.deploy.demo.identifiers import Identifiers
from lookup_audit.deploy.demo.judge import judgement, verdict
from tests.unit.demo.conftest import noon

TEXT = "The default port is 4318. It listens on loopback."
RIGHT = "The default port is 4318."


def make_chunk(version: str) -> Chunk:
    page = parse_page(
        "ports.md",
        f"---\ntitle: Ports\ncategory: operations\nversion: {version}\nupdated: 2026-10-01\n---\n"
        f"\n{TEXT}\n",
    )
    return Chunk(f"ports@{version}#0", page, "Ports", TEXT, TEXT, None, 10)


CHUNKS = {chunk.chunk_id: chunk for chunk in (make_chunk("1.0"), make_chunk("0.9"))}
PORT = GoldQuestion("Which port?", "answerable", (Support("ports", RIGHT),))
OLD_PORT = GoldQuestion("Which port in 0.9?", "wrong_version", (Support("ports@0.9", RIGHT),))
BREAD = GoldQuestion("How to bake?", "unanswerable", ())


@pytest.mark.parametrize(
    ("question", "text", "version", "expected"),
    [
        pytest.param(PORT, RIGHT, "1.0", "correct", id="phrase"),
        pytest.param(PORT, "default port is 4318.", "1.0", "correct", id="most of the phrase"),
        pytest.param(PORT, "is 4318.", "1.0", "partly", id="too little of the phrase"),
        pytest.param(PORT, "It listens on loopback.", "1.0", "partly", id="neighbour"),
        pytest.param(PORT, RIGHT, "0.9", "incorrect", id="other version"),
        pytest.param(OLD_PORT, RIGHT, "0.9", "correct", id="old version asked"),
        pytest.param(OLD_PORT, RIGHT, "1.0", "incorrect", id="new version not asked"),
        pytest.param(BREAD, RIGHT, "1.0", "incorrect", id="unanswerable"),
    ],
)
def test_a_quote_is_judged_by_phrase_page_and_version(
    question: GoldQuestion, text: str, version: str, expected: str
) -> None:
    assert verdict(question, Quote(text, f"ports@{version}#0", None, 0.9), CHUNKS)[0] == expected


def test_a_judgement_names_outcome_source_and_judge(ids: Identifiers) -> None:
    outcome = {"tenant": "demo", "outcome_id": "o-1"}
    quote = Quote(RIGHT, "ports@1.0#0", None, 0.9)
    event = judgement(PORT, quote, outcome, CHUNKS, ids=ids, clock=noon)
    assert event["outcome_id"] == "o-1"
    assert (event["source"], event["verdict"]) == ("gold", "correct")
    assert event["judge"] == {"id": "handbook-gold", "version": "1"}
