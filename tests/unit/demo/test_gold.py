from __future__ import annotations

import json
from collections import Counter

import pytest

from lookup_audit.deploy.demo.corpus import Page, section_chunks, window_chunks
from lookup_audit.deploy.demo.embedding import MiniLm
from lookup_audit.deploy.demo.gold import (
    KINDS,
    GoldError,
    check_gold,
    gold_file,
    load_gold,
    supporting_chunk_ids,
)
from lookup_audit.processors.calibration.gold import parse_gold


def test_the_gold_set_is_complete() -> None:
    gold = load_gold()
    kinds = Counter(question.kind for question in gold)
    assert len(gold) >= 80
    assert set(kinds) == set(KINDS)
    assert kinds["unanswerable"] >= 20
    assert min(kinds.values()) >= 10
    assert len({question.question for question in gold}) == len(gold)


def test_every_supporting_phrase_stands_on_its_page(pages: list[Page]) -> None:
    check_gold(load_gold(), pages)


def test_categories_of_questions_exist(pages: list[Page]) -> None:
    known = {page.category for page in pages}
    assert {q.category for q in load_gold() if q.category} <= known


def test_every_answerable_question_has_a_supporting_chunk_of_sections(
    pages: list[Page], model: MiniLm
) -> None:
    chunks = section_chunks(pages, model.tokenizer.count)
    for question in load_gold():
        assert bool(supporting_chunk_ids(question, chunks)) == bool(question.supporting)


def test_blind_windows_cut_some_supporting_phrases_apart(pages: list[Page], model: MiniLm) -> None:
    chunks = window_chunks(pages, model.tokenizer.count)
    lost = [q for q in load_gold() if q.supporting and not supporting_chunk_ids(q, chunks)]
    assert 0 < len(lost) < 40


def test_the_gold_set_is_a_gold_file_of_both_cuts(pages: list[Page], model: MiniLm) -> None:
    cuts = {
        "a": section_chunks(pages, model.tokenizer.count),
        "b": window_chunks(pages, model.tokenizer.count),
    }
    read = parse_gold(gold_file(load_gold(), cuts).encode().splitlines())
    assert [q.question for q in read] == [q.question for q in load_gold()]
    assert [q.answerable for q in read] == [bool(q.supporting) for q in load_gold()]
    for mine, theirs in zip(read, load_gold(), strict=True):
        assert mine.supporting_in("b") == frozenset(supporting_chunk_ids(theirs, cuts["b"]))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        pytest.param({"kind": "easy"}, "kind must be one of", id="kind"),
        pytest.param({"supporting": []}, "only an unanswerable question", id="no support"),
        pytest.param({"question": None}, "there is no page", id="page"),
        pytest.param({"supporting": [{"page": "x"}]}, "phrase", id="phrase missing"),
    ],
)
def test_a_broken_line_is_refused_with_the_reason(
    change: dict[str, object], message: str, pages: list[Page]
) -> None:
    line = {"question": "q", "kind": "answerable", "supporting": [{"page": "x", "phrase": "y"}]}
    with pytest.raises(GoldError, match=message):
        check_gold(load_gold(json.dumps({**line, **change})), pages)
