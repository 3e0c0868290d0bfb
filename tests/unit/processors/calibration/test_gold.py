import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookup_audit.processors.calibration.gold import GoldFileError, normalise, parse_gold


def lines(*values: object) -> list[bytes]:
    return [json.dumps(value, ensure_ascii=False).encode() for value in values]


def test_an_empty_list_is_an_unanswerable_question() -> None:
    found = parse_gold(
        lines(
            {"question": "a", "supporting_chunk_ids": ["c1", "c2"], "category": "faq"},
            {"question": "b", "supporting_chunk_ids": []},
        )
    )
    assert [(q.answerable, q.category) for q in found] == [(True, "faq"), (False, None)]
    assert found[0].supporting_in("any@1") == frozenset({"c1", "c2"})
    assert found[1].supporting_in("any@1") == frozenset()


def test_chunks_may_depend_on_the_model_version() -> None:
    (found,) = parse_gold(lines({"question": "a", "supporting": {"m@1": ["c1"], "m@2": []}}))
    assert found.answerable
    assert found.supporting_in("m@1") == frozenset({"c1"})
    assert found.supporting_in("m@2") == frozenset()
    assert found.supporting_in("m@3") is None


def test_an_unanswerable_question_is_so_under_every_version() -> None:
    (found,) = parse_gold(lines({"question": "a", "supporting": {"m@1": []}}))
    assert not found.answerable
    assert found.supporting_in("m@9") == frozenset()


def test_blank_lines_and_a_byte_order_mark_are_passed_over() -> None:
    (line,) = lines({"question": "a", "supporting_chunk_ids": []})
    found = parse_gold([b"\xef\xbb\xbf" + line + b"\r\n", b"  \n", b"\n"])
    assert len(found) == 1


@pytest.mark.parametrize(
    ("line", "field"),
    [
        (b"{", ""),
        (b"[" * 100_000, ""),
        (b"\xff\xfe", ""),
        (b"[]", ""),
        (b'{"supporting_chunk_ids": []}', "question"),
        (b'{"question": "  ", "supporting_chunk_ids": []}', "question"),
        (b'{"question": "\\ud800", "supporting_chunk_ids": []}', "question"),
        (b'{"question": "a", "supporting_chunk_ids": ["\\udfff"]}', "supporting_chunk_ids"),
        (b'{"question": 7, "supporting_chunk_ids": []}', "question"),
        (b'{"question": "a"}', "supporting_chunk_ids"),
        (
            b'{"question": "a", "supporting_chunk_ids": [], "supporting": {}}',
            "supporting_chunk_ids",
        ),
        (b'{"question": "a", "supporting_chunk_ids": "c1"}', "supporting_chunk_ids"),
        (b'{"question": "a", "supporting_chunk_ids": [1]}', "supporting_chunk_ids"),
        (b'{"question": "a", "supporting_chunk_ids": [""]}', "supporting_chunk_ids"),
        (b'{"question": "a", "supporting": ["c1"]}', "supporting"),
        (b'{"question": "a", "supporting": {"m@1": "c1"}}', "supporting.m@1"),
        (b'{"question": "a", "supporting_chunk_ids": [], "answerable": true}', "answerable"),
        (b'{"question": "a", "supporting_chunk_ids": ["c"], "answerable": false}', "answerable"),
        (b'{"question": "a", "supporting_chunk_ids": [], "answerable": "no"}', "answerable"),
        (b'{"question": "a", "supporting_chunk_ids": [], "category": 1}', "category"),
    ],
)
def test_a_fault_is_named_by_line_and_field(line: bytes, field: str) -> None:
    good = b'{"question": "good", "supporting_chunk_ids": []}'
    with pytest.raises(GoldFileError) as refused:
        parse_gold([good, line], "gold.jsonl")
    assert [(p.line, p.field) for p in refused.value.problems] == [(2, field)]
    assert "gold.jsonl has 1 problem" in str(refused.value)


def test_all_faults_are_collected() -> None:
    with pytest.raises(GoldFileError) as refused:
        parse_gold([b"{}", b"nonsense"] * 15)
    assert len(refused.value.problems) == 45
    assert "and 25 more" in str(refused.value)


def test_one_question_twice_is_a_fault_of_the_second() -> None:
    twice = lines(
        {"question": "默认 超时 ？", "supporting_chunk_ids": []},
        {"question": " 默认　超时 ? ", "supporting_chunk_ids": ["c"]},
    )
    with pytest.raises(GoldFileError, match=r"line 2, question: says the same as line 1"):
        parse_gold(twice)


def test_an_empty_file_is_refused() -> None:
    with pytest.raises(GoldFileError, match="no question"):
        parse_gold([b"", b"\n"])


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("What IS it?", "what  is\tit?"),
        ("ＡＢＣ　１２３", "abc 123"),
        ("Straße", "STRASSE"),
        ("默认超时是多少？", "默认超时是多少?"),
        ("cafe\u0301", "CAFÉ"),
        ("ﬁle", "FILE"),
    ],
)
def test_questions_are_compared_without_case_width_and_spacing(one: str, other: str) -> None:
    assert normalise(one) == normalise(other)


@given(st.text())
def test_the_normal_form_is_normal(text: str) -> None:
    assert normalise(normalise(text)) == normalise(text)
