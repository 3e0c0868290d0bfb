"""The gold set: questions about the handbook with the sentences that a right answer comes from.

Supporting sentences are given as page and phrase, not as chunk ids: the two chunkers cut the
pages differently, and a phrase can be found in either cut.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files

from lookup_audit.deploy.demo.corpus import Chunk, Page, flatten

GOLD_FILE = "gold.jsonl"
KINDS = ("answerable", "paraphrased", "wrong_version", "unanswerable")


class GoldError(ValueError):
    """A line of the gold set that does not fit the corpus; the message names the line."""


@dataclass(frozen=True, slots=True)
class Support:
    """A verbatim phrase of one page; ``page`` is ``slug`` or ``slug@version``."""

    page: str
    phrase: str

    def is_on(self, page: Page) -> bool:
        """Whether this names the given page, in version 1.0 unless it says another."""
        slug, _, version = self.page.partition("@")
        return page.slug == slug and page.version == (version or "1.0")


@dataclass(frozen=True, slots=True)
class GoldQuestion:
    """One question; ``category`` is the filter that an agent would set, right or wrong."""

    question: str
    kind: str
    supporting: tuple[Support, ...]
    category: str | None = None


def load_gold(text: str | None = None) -> list[GoldQuestion]:
    """Read the shipped gold set, or the given JSON lines.

    Raises:
        GoldError: A line is incomplete or contradicts itself.
    """
    source = text
    if source is None:
        source = files(__package__).joinpath(GOLD_FILE).read_text(encoding="utf-8")
    return [
        _parse(number, line)
        for number, line in enumerate(source.splitlines(), start=1)
        if line.strip()
    ]


def _parse(number: int, line: str) -> GoldQuestion:
    try:
        raw = json.loads(line)
        question = GoldQuestion(
            question=raw["question"],
            kind=raw["kind"],
            supporting=tuple(Support(s["page"], s["phrase"]) for s in raw["supporting"]),
            category=raw.get("category"),
        )
    except (ValueError, KeyError, TypeError) as error:
        raise GoldError(f"{GOLD_FILE} line {number}: {error!r}") from error
    if question.kind not in KINDS:
        raise GoldError(f"{GOLD_FILE} line {number}: kind must be one of {', '.join(KINDS)}")
    if (question.kind == "unanswerable") == bool(question.supporting):
        raise GoldError(f"{GOLD_FILE} line {number}: only an unanswerable question has no support")
    return question


def check_gold(questions: Iterable[GoldQuestion], pages: Sequence[Page]) -> None:
    """Make sure that every phrase stands on the page it names.

    Raises:
        GoldError: A page or phrase is not there.
    """
    for question in questions:
        for support in question.supporting:
            texts = [flatten(page.text) for page in pages if support.is_on(page)]
            if not texts:
                raise GoldError(f"{question.question!r}: there is no page {support.page}")
            if flatten(support.phrase) not in texts[0]:
                raise GoldError(
                    f"{question.question!r}: {support.page} does not say {support.phrase!r}"
                )


def supporting_chunk_ids(question: GoldQuestion, chunks: Iterable[Chunk]) -> list[str]:
    """The chunks of one cut that hold a supporting phrase whole."""
    return [
        chunk.chunk_id
        for chunk in chunks
        if any(
            s.is_on(chunk.page) and flatten(s.phrase) in flatten(chunk.text)
            for s in question.supporting
        )
    ]


def gold_file(questions: Iterable[GoldQuestion], cuts: Mapping[str, Sequence[Chunk]]) -> str:
    """The gold set in the form that ``lookup-audit calibrate`` reads, one question a line.

    Args:
        questions: The questions.
        cuts: The chunks of each model version.
    """
    return "".join(
        json.dumps(
            {
                "question": question.question,
                "supporting": {
                    version: supporting_chunk_ids(question, chunks)
                    for version, chunks in cuts.items()
                },
                "answerable": bool(question.supporting),
                "category": question.kind,
            },
            ensure_ascii=False,
        )
        + "\n"
        for question in questions
    )
