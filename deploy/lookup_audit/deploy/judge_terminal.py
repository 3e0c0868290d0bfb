"""Judging at the terminal: one answer at a time, each recorded before the next is shown."""

import textwrap
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from lookup_audit.deploy.cli.options import printable
from lookup_audit.processors.sampling.answers import Answer
from lookup_audit.schemas.names import JudgementVerdict

_KEYS: Final[dict[str, JudgementVerdict]] = {
    "c": "correct",
    "i": "incorrect",
    "p": "partly",
    "t": "cannot_tell",
}
_PROMPT: Final = "[c]orrect [i]ncorrect [p]artly cannot [t]ell [s]kip [q]uit > "
_WIDTH: Final = 96


@dataclass(slots=True)
class Session:
    """What a session came to."""

    judged: int = 0
    skipped: int = 0
    ended_early: bool = False


def judge_at_terminal(
    answers: Iterable[Answer],
    total: int,
    record: Callable[[Answer, JudgementVerdict, str], None],
    *,
    read_line: Callable[[str], str] = input,
    show: Callable[[str], None] = print,
) -> Session:
    """Show each answer and record what is typed, until all are seen or the person stops.

    Ctrl-C, Ctrl-D and ``q`` stop; what was recorded stays recorded, and the next session goes on
    with what is left.

    Args:
        answers: In the order to judge them.
        total: How many there are.
        record: Stores one verdict with its comment.
        read_line: Asks the person.
        show: Prints a line.
    """
    session = Session()
    try:
        for number, answer in enumerate(answers, 1):
            show(describe(answer, f"{number} of {total}"))
            key = _key(read_line, show)
            if key == "q":
                session.ended_early = True
                break
            if key == "s":
                session.skipped += 1
                continue
            record(answer, _KEYS[key], read_line("comment (or Enter) > ").strip())
            session.judged += 1
    except (KeyboardInterrupt, EOFError):
        show("")
        session.ended_early = True
    return session


def _key(read_line: Callable[[str], str], show: Callable[[str], None]) -> str:
    while True:
        key = read_line(_PROMPT).strip().lower()[:1]
        if key in _KEYS or key in ("s", "q"):
            return key
        show("type one of c, i, p, t, s, q")


def describe(answer: Answer, place: str) -> str:
    """An answer as text for a terminal; stored text cannot steer it."""
    lines = [f"--- {place}: {answer.outcome_id}"]
    lines += [f"question  {query}" for query in answer.queries or ("(not stored)",)]
    for one in answer.evidence:
        about = " ".join(
            filter(None, (one.document_id, one.document_version, one.document_updated_at[:10]))
        )
        lines.append(f"evidence  [{one.chunk_id}] {one.title}")
        lines += [f"          {text}" for text in (about, one.source_url) if text]
        lines += textwrap.wrap(
            one.excerpt, _WIDTH, initial_indent=" " * 10, subsequent_indent=" " * 10
        )
    for claim in answer.claims:
        cited = ", ".join(claim.cited_chunk_ids) or "nothing"
        lines.append(f"answer    {claim.text}")
        lines.append(f"          cites {cited}")
    if not answer.claims:
        lines.append(f"answer    ({answer.action}; no claims are stored) {answer.refusal}")
    return "\n".join(printable(line.replace("\n", " ")) for line in lines)
