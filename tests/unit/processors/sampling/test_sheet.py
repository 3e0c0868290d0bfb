import csv
import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookup_audit.processors.sampling.answers import Answer, Claim, Evidence
from lookup_audit.processors.sampling.cells import MAX_CELL, fit, protect, unprotect
from lookup_audit.processors.sampling.sheet import COLUMNS, read_sheet, write_sheet
from lookup_audit.schemas.errors import ConfigError

FORMULA_SIGNS = tuple("=+-@\t\r\n＝＋－＠")


def make_answer(**over: object) -> Answer:
    answer = Answer(
        tenant="客户",
        outcome_id="out-1",
        queries=("默认超时是多少？",),
        evidence=(
            Evidence("doc-1#0", "超时", "三十秒。", "https://kb/1", "doc-1", "v3", "2026-10-01"),
        ),
        action="answered",
        claims=(Claim("默认超时为三十秒。", ("doc-1#0",), ()), Claim("It is so.", (), ())),
    )
    return replace(answer, **over)  # type: ignore[arg-type]


def fill(path: Path, *verdicts: dict[str, str]) -> None:
    """Write verdicts into an exported sheet as a reviewer's program does."""
    if path.suffix == ".jsonl":
        lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        text = "\n".join(json.dumps(r | v) for r, v in zip(lines, verdicts, strict=True))
        path.write_text(text, encoding="utf-8")
        return
    with open(path, encoding="utf-8-sig", newline="") as stream:
        rows = list(csv.DictReader(stream))
    with open(path, "w", encoding="utf-8-sig", newline="") as stream:
        writer = csv.DictWriter(stream, COLUMNS)
        writer.writeheader()
        writer.writerows(r | v for r, v in zip(rows, verdicts, strict=True))


@given(st.text(max_size=20))
def test_a_cell_is_never_a_formula_and_comes_back_exactly(text: str) -> None:
    for hostile in (text, *(sign + text for sign in FORMULA_SIGNS), "'" + text):
        cell = protect(hostile)
        assert not cell.startswith(FORMULA_SIGNS)
        assert unprotect(cell) == hostile


def test_a_cell_is_cut_where_a_spreadsheet_would_cut_it_in_silence() -> None:
    assert fit("a" * MAX_CELL) == "a" * MAX_CELL
    assert fit("a" * (MAX_CELL + 1)).endswith("[…]")
    assert fit("a\x00\x1bb") == "a\N{REPLACEMENT CHARACTER}\N{REPLACEMENT CHARACTER}b"


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_a_filled_sheet_gives_its_verdicts_back(form: str, tmp_path: Path) -> None:
    path = tmp_path / f"sheet.{form}"
    hostile = "=HYPERLINK(1)"
    answers = [make_answer(), make_answer(outcome_id=hostile), make_answer(outcome_id="out-3")]
    assert write_sheet(path, answers) == 3
    assert list(tmp_path.iterdir()) == [path]
    fill(
        path,
        {"verdict": "Correct ", "comment": "对", "judged_at": "2026-11-30T12:00:00+01:00"},
        {"verdict": "cannot_tell"},
        {"verdict": ""},
    )
    content = read_sheet(path)
    assert (content.faults, content.open_rows) == ([], 1)
    first, second = content.verdicts
    assert (first.tenant, first.outcome_id, first.verdict) == ("客户", "out-1", "correct")
    assert (first.comment, first.judged_at) == ("对", datetime(2026, 11, 30, 11, tzinfo=UTC))
    assert (second.outcome_id, second.verdict, second.judged_at) == (hostile, "cannot_tell", None)


def test_the_csv_sheet_says_what_a_reviewer_needs(tmp_path: Path) -> None:
    path = tmp_path / "sheet.csv"
    write_sheet(path, [make_answer()])
    assert path.read_bytes().startswith(b"\xef\xbb\xbf")
    with open(path, encoding="utf-8-sig", newline="") as stream:
        (row,) = csv.DictReader(stream)
    assert row["query"] == "默认超时是多少？"
    assert row["evidence"] == "[doc-1#0] 超时\ndoc-1 v3 2026-10-01\nhttps://kb/1\n三十秒。"
    assert row["claims"] == "默认超时为三十秒。 [doc-1#0]\nIt is so. [cites nothing]"


@pytest.mark.parametrize(
    ("row", "column", "words"),
    [
        pytest.param("out-1,wrong,,", "verdict", "'wrong' is none of correct, ", id="verdict"),
        pytest.param("out-1,,so so,", "verdict", "empty beside a comment", id="comment-alone"),
        pytest.param(",correct,,", "outcome_id", "is empty", id="no-id"),
        pytest.param("o" * 129 + ",correct,,", "outcome_id", "longer than 128", id="long-id"),
        pytest.param("out-1,correct,,2026-11-30", "judged_at", "RFC 3339", id="time"),
        pytest.param("out-0,correct,,", "outcome_id", "judged in row 2 already", id="twice"),
        pytest.param("out-1,correct,,,x", "(all)", "has 5 cells, the heading has 4", id="cells"),
    ],
)
def test_a_fault_is_named_by_row_and_column(
    row: str, column: str, words: str, tmp_path: Path
) -> None:
    path = tmp_path / "sheet.csv"
    heading = "outcome_id,verdict,comment,judged_at"
    path.write_text(f'{heading}\nout-0,correct,"two\nlines",\n\n{row}\nout-9,partly,,\n')
    content = read_sheet(path)
    assert [(f.row, f.column) for f in content.faults] == [(4, column)]
    assert words in content.faults[0].message
    assert [v.outcome_id for v in content.verdicts] == ["out-0", "out-9"]


@pytest.mark.parametrize(
    ("line", "column"),
    [
        ("{", "(all)"),
        ("[1]", "(all)"),
        ('{"outcome_id": "a"}', "verdict"),
        ('{"outcome_id": "a", "verdict": true}', "verdict"),
        ('{"outcome_id": 7, "verdict": "correct"}', "outcome_id"),
        ('{"outcome_id": "\\ud83d", "verdict": "correct"}', "outcome_id"),
        ('{"outcome_id": "a", "verdict": "correct", "comment": "\\udc00"}', "comment"),
    ],
)
def test_a_faulty_json_line_is_named(line: str, column: str, tmp_path: Path) -> None:
    path = tmp_path / "sheet.jsonl"
    path.write_text('{"outcome_id": "b", "verdict": "correct"}\n\n' + line)
    content = read_sheet(path)
    assert [(f.row, f.column) for f in content.faults] == [(3, column)]
    assert len(content.verdicts) == 1


@pytest.mark.parametrize("delimiter", [";", "\t"])
def test_other_delimiters_of_spreadsheets_are_read(delimiter: str, tmp_path: Path) -> None:
    path = tmp_path / "sheet.csv"
    path.write_text(delimiter.join(("outcome_id", "comment", "verdict")) + "\r\na;b;partly\r\n")
    path.write_text(path.read_text().replace(";", delimiter))
    assert [v.verdict for v in read_sheet(path).verdicts] == ["partly"]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        pytest.param(b"", "no column 'outcome_id'", id="empty"),
        pytest.param(b"a,b\n", "no column 'outcome_id'", id="other-file"),
        pytest.param(b"outcome_id,verdict,verdict\n", "'verdict' twice", id="twice"),
        pytest.param("outcome_id,verdict\n超,correct".encode("gbk"), "not UTF-8", id="gbk"),
        pytest.param(None, "cannot read", id="missing"),
    ],
)
def test_what_is_no_sheet_is_refused_with_the_reason(
    content: bytes | None, words: str, tmp_path: Path
) -> None:
    path = tmp_path / "sheet.csv"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigError, match=words):
        read_sheet(path)


@given(content=st.binary(max_size=120), form=st.sampled_from(["csv", "jsonl"]))
def test_any_file_is_read_or_refused_and_never_breaks(
    content: bytes, form: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / f"any.{form}"
    path.write_bytes(content if form == "jsonl" else b"outcome_id,verdict\n" + content)
    try:
        found = read_sheet(path)
    except ConfigError:
        return
    assert all(v.outcome_id and v.verdict for v in found.verdicts)


def test_a_sheet_that_cannot_be_finished_leaves_nothing_behind(tmp_path: Path) -> None:
    def broken() -> object:
        yield make_answer()
        raise ConfigError("the store went away")

    path = tmp_path / "sheet.csv"
    with pytest.raises(ConfigError, match="went away"):
        write_sheet(path, broken())  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []
