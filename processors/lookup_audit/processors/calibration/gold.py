"""Gold files: questions with the chunks a right answer comes from, one JSON object a line.

``{"question": "…", "supporting_chunk_ids": ["…"], "answerable": true, "category": "…"}``. An empty
list says that the corpus does not answer the question. Where chunk ids depend on the model version,
``"supporting": {"<model version>": ["…"]}`` stands instead; with ``"answerable": true`` a version's
list may be empty, if its chunker cut the support in two. Every fault is named by line and field.
"""

import json
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeGuard

from lookup_audit.schemas.errors import ConfigError

_SHOWN_PROBLEMS = 20
_MOST_BYTES = 256 << 20


@dataclass(frozen=True, slots=True)
class GoldProblem:
    """What is wrong with one line; ``field`` is ``""`` where it is the line as a whole."""

    line: int
    field: str
    message: str

    def __str__(self) -> str:
        where = f"line {self.line}, {self.field}" if self.field else f"line {self.line}"
        return f"{where}: {self.message}"


class GoldFileError(ConfigError):
    """A gold file with faults; ``problems`` has all of them, the message the first twenty."""

    def __init__(self, name: str, problems: list[GoldProblem]):
        shown = [f"  {problem}" for problem in problems[:_SHOWN_PROBLEMS]]
        if len(problems) > _SHOWN_PROBLEMS:
            shown.append(f"  … and {len(problems) - _SHOWN_PROBLEMS} more")
        count = f"{len(problems)} problem" + ("s" if len(problems) > 1 else "")
        super().__init__("\n".join([f"{name} has {count}; correct:", *shown]))
        self.problems = problems


@dataclass(frozen=True, slots=True)
class GoldQuestion:
    """One question and what supports an answer to it.

    Args:
        line: Where it stands in the file, from 1.
        question: As asked.
        supporting: Chunk ids for every model version, or by model version.
        answerable: Whether the corpus answers it at all.
        category: The file's own label, ``None`` if it has none.
    """

    line: int
    question: str
    supporting: frozenset[str] | Mapping[str, frozenset[str]]
    answerable: bool
    category: str | None = None

    def supporting_in(self, model_version: str) -> frozenset[str] | None:
        """The supporting chunks under a model version; ``None`` if the file does not say.

        Empty for an answerable question means that this version's chunks hold no support whole.
        """
        if isinstance(self.supporting, frozenset):
            return self.supporting
        if not self.answerable:
            return frozenset()
        return self.supporting.get(model_version)


def normalise(text: str) -> str:
    """The form in which questions are compared: NFKC, case folded, white space collapsed.

    >>> normalise("  Default   ＴＩＭＥＯＵＴ？ ")
    'default timeout?'
    """
    folded = unicodedata.normalize("NFKC", text).casefold()
    return " ".join(unicodedata.normalize("NFKC", folded).split())


def read_gold(path: Path) -> list[GoldQuestion]:
    """Read a gold file.

    Raises:
        GoldFileError: With every fault by line and field.
        ConfigError: The file cannot be read, or is far too large to be one.
    """
    try:
        with path.open("rb") as stream:
            if path.stat().st_size > _MOST_BYTES:
                raise ConfigError(f"{path} is larger than 256 MiB and no gold file")
            return parse_gold(stream, str(path))
    except OSError as error:
        raise ConfigError(f"cannot read the gold file {path}: {error.strerror}") from error


def parse_gold(lines: Iterable[bytes], name: str = "the gold file") -> list[GoldQuestion]:
    """Read the lines of a gold file; blank ones are passed over.

    Raises:
        GoldFileError: With every fault by line and field, also for a file without a question.
    """
    problems: list[GoldProblem] = []
    questions: list[GoldQuestion] = []
    first_line: dict[str, int] = {}
    for number, line in enumerate(lines, start=1):
        text = line.removeprefix(b"\xef\xbb\xbf").strip() if number == 1 else line.strip()
        if not text:
            continue
        found = list(_problems_of(number, value := _loads(text)))
        if not found:
            question = _question(number, value)
            key = normalise(question.question)
            if key in first_line:
                said = f"says the same as line {first_line[key]}; keep one of them"
                found.append(GoldProblem(number, "question", said))
            first_line.setdefault(key, number)
            questions.append(question)
        problems += found
    if not problems and not questions:
        problems.append(GoldProblem(1, "", "there is no question; write one JSON object a line"))
    if problems:
        raise GoldFileError(name, problems)
    return questions


_UNREADABLE = object()


def _loads(text: bytes) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return _UNREADABLE


def _problems_of(number: int, value: Any) -> Iterator[GoldProblem]:
    if not isinstance(value, dict):
        what = "is not JSON" if value is _UNREADABLE else "is not a JSON object"
        yield GoldProblem(number, "", f'{what}; write {{"question": "…", …}} on one line')
        return
    question = value.get("question")
    if not _is_text(question) or not normalise(question):
        yield GoldProblem(number, "question", "must be a text that is not blank")
    answerable = value.get("answerable")
    if answerable is not None and not isinstance(answerable, bool):
        yield GoldProblem(number, "answerable", "must be true or false")
        answerable = None
    if not isinstance(value.get("category"), (str, type(None))):
        yield GoldProblem(number, "category", "must be a text")
    yield from _support_problems(number, value, answerable)


def _support_problems(
    number: int, value: dict[str, Any], answerable: bool | None
) -> Iterator[GoldProblem]:
    chunks, by_version = value.get("supporting_chunk_ids"), value.get("supporting")
    if (chunks is None) == (by_version is None):
        said = "give it, or supporting by model version, and not both; [] is unanswerable"
        yield GoldProblem(number, "supporting_chunk_ids", said)
        return
    if by_version is not None and not isinstance(by_version, dict):
        said = 'must be an object of lists, {"<model version>": ["<chunk id>"]}'
        yield GoldProblem(number, "supporting", said)
        return
    lists = {"supporting_chunk_ids": chunks}
    if by_version is not None:
        lists = {f"supporting.{version}": listed for version, listed in by_version.items()}
    wrong = [place for place, listed in lists.items() if not _is_chunk_list(listed)]
    for place in wrong:
        yield GoldProblem(number, place, "must be a list of chunk ids, each a text")
    some = not wrong and any(lists.values())
    if some and answerable is False:
        yield GoldProblem(number, "answerable", "is false, yet supporting chunks are named")
    if chunks == [] and answerable:
        yield GoldProblem(number, "answerable", "is true, yet no supporting chunk is named")


def _is_chunk_list(value: Any) -> bool:
    return isinstance(value, list) and all(_is_text(chunk) and chunk for chunk in value)


def _is_text(value: object) -> TypeGuard[str]:
    """Whether it is text that can be written; half a surrogate pair cannot."""
    return isinstance(value, str) and not any("\ud800" <= c <= "\udfff" for c in value)


def _question(number: int, value: dict[str, Any]) -> GoldQuestion:
    chunks, by_version = value.get("supporting_chunk_ids"), value.get("supporting")
    supporting: frozenset[str] | dict[str, frozenset[str]]
    if by_version is None:
        supporting = frozenset(chunks or ())
        some = bool(supporting)
    else:
        supporting = {version: frozenset(listed) for version, listed in by_version.items()}
        some = any(supporting.values())
    answerable = value.get("answerable")
    return GoldQuestion(
        line=number,
        question=value["question"],
        supporting=supporting,
        answerable=some if answerable is None else answerable,
        category=value.get("category"),
    )
