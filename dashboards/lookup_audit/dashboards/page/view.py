"""What a reader asked for, read from the address, and the answers to it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final
from urllib.parse import urlencode

from lookup_audit.dashboards.answers import Answer, Run
from lookup_audit.dashboards.boards import BOARDS, LOOKUP_UID
from lookup_audit.dashboards.macros import Range, Value, expand
from lookup_audit.dashboards.model import ALL, Board, Panel
from lookup_audit.dashboards.page.chart import Mark, marks_of
from lookup_audit.dashboards.page.times import read_range
from lookup_audit.schemas.errors import LookupAuditError

REFRESHES: Final = ("", "30", "60", "300")
_MAX_VALUE: Final = 1024
_MAX_VALUES: Final = 50


class AskedWrongError(LookupAuditError):
    """The address asks for something that is not there."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What the address says.

    Args:
        board: Which board.
        since: Start of the range, as written.
        until: End of the range, as written.
        refresh: Seconds between reloads, or empty.
        choices: Values of each variable; ``*`` for all.
        span: The range.
    """

    board: Board
    since: str
    until: str
    refresh: str
    choices: Mapping[str, tuple[str, ...]]
    span: Range

    def address(self, board: str | None = None, **values: str) -> str:
        """The page's address with another board or other values; the rest is kept."""
        pairs = [("board", board or self.board.uid), ("from", self.since), ("to", self.until)]
        if self.refresh:
            pairs.append(("refresh", self.refresh))
        chosen = {**self.choices, **{name: (value,) for name, value in values.items()}}
        pairs += [
            (f"var-{name}", value)
            for name, found in chosen.items()
            for value in found
            if value != ALL and value
        ]
        return f"/?{urlencode(pairs)}"

    def lookup(self, event_id: str) -> str:
        """The address of one lookup."""
        return self.address(LOOKUP_UID, event_id=event_id)


@dataclass(frozen=True, slots=True)
class View:
    """A board with its answers.

    Args:
        asked: What was asked for.
        options: ``(value, text)`` of each variable.
        answers: By panel; a text is why there is none.
        marks: Drawn over time series.
    """

    asked: Asked
    options: Mapping[str, Sequence[tuple[str, str]]]
    answers: Mapping[int, Answer | str] = field(default_factory=dict)
    marks: Sequence[Mark] = ()


def read(query: Sequence[tuple[str, str]], now: datetime) -> Asked:
    """Read the address.

    Args:
        query: Names and values of its query.
        now: The clock.

    Raises:
        AskedWrongError: There is no such board, or a value is too long.
        TimeError: A time cannot be read.
    """
    values: dict[str, list[str]] = {}
    for name, value in query:
        if len(value) > _MAX_VALUE:
            raise AskedWrongError(f"the value of {name[:40]} has more than {_MAX_VALUE} characters")
        values.setdefault(name, []).append(value)
    uid = values.get("board", [BOARDS[0].uid])[0]
    board = next((one for one in BOARDS if uid in (one.uid, one.uid.removeprefix("la-"))), None)
    if board is None:
        raise AskedWrongError(f"there is no board {uid[:40]!r}")
    since = values.get("from", [board.since])[0] or board.since
    until = values.get("to", ["now"])[0] or "now"
    refresh = values.get("refresh", [""])[0]
    names = {variable.name: variable.is_text for one in BOARDS for variable in one.variables}
    choices = {}
    for name, is_text in names.items():
        found = tuple(values.get(f"var-{name}", ()))[:_MAX_VALUES]
        choices[name] = found[:1] or ("",) if is_text else _listed(found)
    return Asked(
        board,
        since,
        until,
        refresh if refresh in REFRESHES else "",
        choices,
        read_range(since, until, now),
    )


def _listed(found: Sequence[str]) -> tuple[str, ...]:
    """Values of a picker: All gives way to whatever is chosen beside it."""
    return tuple(value for value in found if value not in ("", ALL, "$__all")) or (ALL,)


def answer_panel(run: Run, asked: Asked, panel: Panel) -> Answer | str:
    """The answer of one panel, or why there is none."""
    try:
        return run(expand(panel.sql, asked.span, _variables(asked)))
    except LookupAuditError as error:
        return str(error)


def read_options(run: Run, asked: Asked) -> dict[str, list[tuple[str, str]]]:
    """What each picker offers in the range."""
    everything = dict.fromkeys(asked.choices, ALL)
    return {
        variable.name: [
            (str(value), str(text))
            for value, text in run(expand(variable.sql, asked.span, everything)).rows
        ]
        for variable in asked.board.variables
        if variable.sql and not variable.hidden
    }


def read_marks(run: Run, asked: Asked) -> list[Mark]:
    """What happened in the range."""
    found: list[Mark] = []
    for annotation in asked.board.annotations:
        answer = run(expand(annotation.sql, asked.span, _variables(asked)))
        found += marks_of([dict(zip(answer.names, row, strict=True)) for row in answer.rows])
    return found


def _variables(asked: Asked) -> dict[str, Value]:
    return {
        name: values[0] if len(values) == 1 else list(values)
        for name, values in asked.choices.items()
    }
