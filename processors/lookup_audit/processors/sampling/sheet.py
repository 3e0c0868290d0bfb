"""The reviewers' sheet: answers out as CSV or JSON lines, verdicts back in.

Reading is exact: each fault is a value with its row and column, and the caller decides whether the
good rows count. CSV rows are numbered as a spreadsheet shows them, the heading being row 1; JSON
lines are numbered as lines.
"""

import contextlib
import csv
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Final, get_args

from pydantic_core import PydanticCustomError

from lookup_audit.processors.sampling.answers import Answer, Claim, Evidence
from lookup_audit.processors.sampling.cells import fit, protect, unprotect
from lookup_audit.schemas.errors import ConfigError
from lookup_audit.schemas.fields import parse_instant
from lookup_audit.schemas.names import JudgementVerdict

VERDICTS: Final[tuple[JudgementVerdict, ...]] = get_args(JudgementVerdict)
COLUMNS: Final = (
    "outcome_id",
    "tenant",
    "query",
    "evidence",
    "action",
    "claims",
    "verdict",
    "comment",
    "judged_at",
)
_NEEDED: Final = ("outcome_id", "verdict")
_EXCERPT: Final = 2_000
_MAX_BYTES: Final = 512 * 1024 * 1024
_MAX_ID, _MAX_COMMENT = 128, 10_000


@dataclass(frozen=True, slots=True)
class SheetVerdict:
    """One judged row.

    Args:
        row: Its number in the sheet.
        tenant: ``""`` for none.
        outcome_id: What was judged.
        verdict: One of :data:`VERDICTS`.
        comment: ``""`` for none.
        judged_at: Where the sheet says it.
    """

    row: int
    tenant: str
    outcome_id: str
    verdict: JudgementVerdict
    comment: str
    judged_at: datetime | None


@dataclass(frozen=True, slots=True)
class SheetFault:
    """What is wrong in one cell, with the fix."""

    row: int
    column: str
    message: str

    def __str__(self) -> str:
        return f"row {self.row}, column {self.column}: {self.message}"


@dataclass(slots=True)
class SheetContent:
    """What a sheet holds: verdicts, faults, and how many rows are not judged yet."""

    verdicts: list[SheetVerdict] = field(default_factory=list)
    faults: list[SheetFault] = field(default_factory=list)
    open_rows: int = 0


def write_sheet(path: Path, answers: Iterable[Answer]) -> int:
    """Write a sheet, whole or not at all; returns the number of answers.

    Args:
        path: Ends with ``.csv`` or ``.jsonl``.
        answers: In the order to judge them.

    Raises:
        ConfigError: The file cannot be written.
    """
    partial = path.with_name(path.name + ".partial")
    try:
        if path.suffix.lower() == ".csv":
            # The mark at the beginning tells spreadsheets that it is UTF-8.
            with open(partial, "w", encoding="utf-8-sig", newline="") as stream:
                # Quoted, so that a semicolon in a text parts no cell where semicolons do.
                writer = csv.writer(stream, quoting=csv.QUOTE_ALL)
                writer.writerow(COLUMNS)
                count = sum(1 for _ in map(writer.writerow, map(csv_row, answers)))
        else:
            with open(partial, "w", encoding="utf-8") as stream:
                count = sum(1 for _ in map(stream.write, map(json_line, answers)))
        os.replace(partial, path)
    except OSError as error:
        raise ConfigError(f"cannot write {path}: {error.strerror}") from error
    finally:
        with contextlib.suppress(OSError):
            partial.unlink()
    return count


def json_line(answer: Answer) -> str:
    """An answer as a line of JSON with its verdict to be filled in."""
    blank = {"verdict": None, "comment": None, "judged_at": None}
    return json.dumps(answer.as_json() | blank, ensure_ascii=False) + "\n"


def csv_row(answer: Answer) -> list[str]:
    """An answer as cells, in the order of :data:`COLUMNS`."""
    cells = (
        answer.outcome_id,
        answer.tenant,
        "\n".join(answer.queries),
        "\n\n".join(map(_evidence_text, answer.evidence)),
        answer.action,
        "\n".join(map(_claim_text, answer.claims)) or answer.refusal,
        "",
        "",
        "",
    )
    return [protect(fit(cell)) for cell in cells]


def _evidence_text(one: Evidence) -> str:
    version = " ".join(filter(None, (one.document_version, one.document_updated_at[:10])))
    head = f"[{one.chunk_id}] {one.title}".rstrip()
    document = f"{one.document_id} {version}".strip()
    return "\n".join(filter(None, (head, document, one.source_url, fit(one.excerpt, _EXCERPT))))


def _claim_text(claim: Claim) -> str:
    cited = ", ".join((*claim.cited_chunk_ids, *claim.cited_source_urls))
    return f"{claim.text} [{cited}]" if cited else f"{claim.text} [cites nothing]"


def read_sheet(path: Path) -> SheetContent:
    """Read a sheet back.

    Raises:
        ConfigError: The file is no such sheet at all.
    """
    content = SheetContent()
    seen: dict[tuple[str, str], int] = {}
    rows = _csv_rows(path) if path.suffix.lower() == ".csv" else _json_rows(path)
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise ConfigError(f"{path} has more than {_MAX_BYTES >> 20} MiB; send it in parts")
        for number, row in rows:
            found = row if isinstance(row, SheetFault) else check_row(number, row)
            if isinstance(found, SheetVerdict):
                key = (found.tenant, found.outcome_id)
                if key in seen:
                    text = f"is judged in row {seen[key]} already; keep one of the two"
                    found = SheetFault(number, "outcome_id", text)
                seen.setdefault(key, number)
            if isinstance(found, SheetFault):
                content.faults.append(found)
            elif found is None:
                content.open_rows += 1
            else:
                content.verdicts.append(found)
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is not UTF-8; save it as 'CSV UTF-8' or JSON lines") from error
    return content


def check_row(number: int, row: Mapping[str, Any]) -> SheetVerdict | SheetFault | None:
    """One row as a verdict, a fault, or ``None`` where it is not judged yet."""
    texts: dict[str, str] = {}
    for column in ("outcome_id", "tenant", "verdict", "comment", "judged_at"):
        value = row.get(column)
        if value is not None and not isinstance(value, str):
            return SheetFault(number, column, f"must be text, not {json.dumps(value)[:40]}")
        texts[column] = (value or "").strip()
        if not is_whole(texts[column]):
            return SheetFault(number, column, "holds half a character (a lone surrogate)")
    if not texts["outcome_id"]:
        return SheetFault(number, "outcome_id", "is empty; restore it from the exported sheet")
    for column, limit in (("outcome_id", _MAX_ID), ("comment", _MAX_COMMENT)):
        if len(texts[column]) > limit:
            return SheetFault(number, column, f"is longer than {limit} characters")
    verdict = next((v for v in VERDICTS if v == texts["verdict"].lower()), None)
    if verdict is None:
        allowed = ", ".join(VERDICTS)
        if texts["verdict"]:
            return SheetFault(number, "verdict", f"{texts['verdict'][:40]!r} is none of {allowed}")
        if texts["comment"]:
            return SheetFault(
                number, "verdict", f"is empty beside a comment; give one of {allowed}"
            )
        return None
    try:
        judged_at = parse_instant(texts["judged_at"]) if texts["judged_at"] else None
    except PydanticCustomError as error:
        return SheetFault(number, "judged_at", error.message())
    return SheetVerdict(
        number, texts["tenant"], texts["outcome_id"], verdict, texts["comment"], judged_at
    )


def is_whole(text: str) -> bool:
    r"""Whether a text from JSON can be written: it holds no half of a surrogate pair.

    >>> is_whole("\ud83d")
    False
    """
    return not any("\ud800" <= character <= "\udfff" for character in text)


def _csv_rows(path: Path) -> Iterator[tuple[int, Mapping[str, Any] | SheetFault]]:
    with open(path, encoding="utf-8-sig", newline="") as stream:
        heading = stream.readline()
        # Spreadsheets of some countries write semicolons, or tabs.
        delimiter = max(",;\t", key=heading.count)
        names = [name.strip() for name in next(csv.reader([heading], delimiter=delimiter), [])]
        _check_heading(path, names)
        reader = csv.reader(stream, delimiter=delimiter, strict=True)
        number = 1
        while True:
            number += 1
            try:
                cells = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                yield number, SheetFault(number, "(all)", f"cannot be read as CSV: {error}")
                return
            if not any(cells):
                continue
            if len(cells) > len(names):
                text = f"has {len(cells)} cells, the heading has {len(names)}"
                yield number, SheetFault(number, "(all)", text)
                continue
            yield number, dict(zip(names, map(unprotect, cells), strict=False))


def _check_heading(path: Path, names: list[str]) -> None:
    for name in _NEEDED:
        if name not in names:
            raise ConfigError(
                f"{path}: row 1 has no column {name!r}; the sheet must have the heading of "
                f"'lookup-audit sample --export': {', '.join(COLUMNS)}"
            )
    for name in COLUMNS:
        if names.count(name) > 1:
            raise ConfigError(f"{path}: row 1 has the column {name!r} twice; remove one")


def _json_rows(path: Path) -> Iterator[tuple[int, Mapping[str, Any] | SheetFault]]:
    with open(path, encoding="utf-8-sig") as stream:
        for number, line in enumerate(stream, 1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except (ValueError, RecursionError) as error:
                yield number, SheetFault(number, "(all)", f"is no JSON: {error}")
                continue
            if not isinstance(row, dict):
                yield number, SheetFault(number, "(all)", "is no JSON object")
                continue
            if missing := [name for name in _NEEDED if name not in row]:
                yield number, SheetFault(number, missing[0], "is missing")
                continue
            yield number, row
