from collections.abc import Callable
from dataclasses import replace

import pytest

from lookup_audit.deploy.judge_terminal import Session, describe, judge_at_terminal
from tests.unit.processors.sampling.test_sheet import make_answer

ANSWERS = [make_answer(outcome_id=f"out-{n}") for n in range(4)]


def typing(*lines: str | type[BaseException]) -> Callable[[str], str]:
    left = list(lines)

    def read_line(prompt: str) -> str:
        line = left.pop(0)
        if isinstance(line, str):
            return line
        raise line

    return read_line


def run(*lines: str | type[BaseException]) -> tuple[Session, list[tuple[str, str, str]], str]:
    recorded: list[tuple[str, str, str]] = []
    shown: list[str] = []
    session = judge_at_terminal(
        ANSWERS,
        len(ANSWERS),
        lambda answer, verdict, comment: recorded.append((answer.outcome_id, verdict, comment)),
        read_line=typing(*lines),
        show=shown.append,
    )
    return session, recorded, "\n".join(shown)


def test_each_key_is_its_verdict() -> None:
    session, recorded, shown = run("c", "", "I", " wrong version ", "p", "", "t", "")
    assert recorded == [
        ("out-0", "correct", ""),
        ("out-1", "incorrect", "wrong version"),
        ("out-2", "partly", ""),
        ("out-3", "cannot_tell", ""),
    ]
    assert session == Session(judged=4)
    assert "4 of 4" in shown


@pytest.mark.parametrize(
    "end", ["q", KeyboardInterrupt, EOFError], ids=["q", "Ctrl-C", "end-of-input"]
)
def test_stopping_keeps_what_was_recorded(end: str | type[BaseException]) -> None:
    session, recorded, _ = run("c", "", "s", end)
    assert recorded == [("out-0", "correct", "")]
    assert session == Session(judged=1, skipped=1, ended_early=True)


def test_stopping_at_the_comment_records_nothing_of_that_answer() -> None:
    session, recorded, _ = run("c", KeyboardInterrupt)
    assert recorded == []
    assert session.ended_early


def test_another_key_is_asked_again() -> None:
    _, recorded, shown = run("x", "", "c", "", "q")
    assert recorded == [("out-0", "correct", "")]
    assert "type one of" in shown


def test_stored_text_cannot_steer_the_terminal() -> None:
    hostile = "\x1b]0;owned\x07\x1b[2J"
    answer = make_answer(queries=(hostile,), outcome_id=hostile, tenant=hostile)
    answer = replace(answer, claims=tuple(replace(c, text=hostile) for c in answer.claims))
    text = describe(answer, "1 of 1")
    assert "\x1b" not in text
    assert "owned" in text
