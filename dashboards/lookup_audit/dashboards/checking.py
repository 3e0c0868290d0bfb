"""``dashboards check``: every rule, and every statement run with all kinds of choices."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta

from lookup_audit.dashboards.answers import Run, faults, is_time
from lookup_audit.dashboards.boards import BOARDS
from lookup_audit.dashboards.grafana_json import dashboard
from lookup_audit.dashboards.lint import lint_board, lint_dashboard
from lookup_audit.dashboards.macros import Range, Value, expand
from lookup_audit.dashboards.model import ALL, STRATUM, Board
from lookup_audit.schemas.errors import LookupAuditError

# A choice that nothing stored can be, made of all that could leave a literal or a list.
NASTY = "zz\\' OR 1=1 -- \\,{}${mode}$__toTime%27\n\x00东方"

Choices = Mapping[str, Value]


def lint(now: datetime) -> list[str]:
    """What is wrong with the boards as defined and as rendered."""
    span = Range(now - timedelta(hours=6), now)
    return [
        fault
        for board in BOARDS
        for found in (lint_board(board, span), lint_dashboard(dashboard(board)))
        for fault in found
    ]


def run_all(run: Run, now: datetime, event_ids: Sequence[str] = ()) -> Iterator[str]:
    """Run every statement with each variable at one, many and all values; yields the faults.

    Args:
        run: Runs an expanded statement.
        now: End of the ranges.
        event_ids: Lookups to show on the board of one lookup; an id that exists nowhere is tried
            in any case.
    """
    long = Range(now - timedelta(days=30), now, 3600)
    short = Range(now - timedelta(hours=1), now, 60)
    for board in BOARDS:
        options = read_options(run, board, long)
        everything, *others = combinations(options)
        ids = (NASTY, *event_ids) if _has(board, "event_id") else ("",)
        for event_id in ids:
            yield from run_board(run, board, long, {**everything, "event_id": event_id})
        yield from run_board(run, board, short, {**everything, "event_id": ""})
        for choices in others:
            yield from run_board(run, board, long, {**choices, "event_id": ids[-1]})


def run_board(run: Run, board: Board, span: Range, choices: Choices) -> Iterator[str]:
    """Run the statements of one board; yields what fails or does not fit its panel."""
    for panel in board.panels:
        if not panel.sql:
            continue
        try:
            answer = run(expand(panel.sql, span, choices))
        except LookupAuditError as error:
            yield f"{board.uid} panel {panel.id}: {error}"
            continue
        yield from (f"{board.uid} panel {panel.id}: {fault}" for fault in faults(panel, answer))
    for annotation in board.annotations:
        place = f"{board.uid} annotation {annotation.name}"
        try:
            answer = run(expand(annotation.sql, span, choices))
        except LookupAuditError as error:
            yield f"{place}: {error}"
            continue
        if answer.names != ("time", "text", "tags") or not is_time(answer.types[0]):
            yield f"{place}: answers {answer.names}, not time, text, tags"


def read_options(run: Run, board: Board, span: Range) -> dict[str, list[str]]:
    """The values that each variable of a board offers."""
    everything = {variable.name: ALL for variable in board.variables}
    return {
        variable.name: [str(row[0]) for row in run(expand(variable.sql, span, everything)).rows]
        for variable in board.variables
        if variable.sql
    }


def combinations(options: Mapping[str, Sequence[str]]) -> Iterator[dict[str, Value]]:
    """All at all; all at one, many and nasty values; each alone at one value."""
    everything: dict[str, Value] = dict.fromkeys(STRATUM, ALL)
    one = {name: found[0] if found else "(none)" for name, found in options.items()}
    yield everything
    yield {**everything, **one}
    yield {**everything, **{name: [*found[:2], "x"] for name, found in options.items()}}
    yield {**everything, **dict.fromkeys(options, NASTY)}
    for name, value in one.items():
        yield {**everything, name: value}


def _has(board: Board, name: str) -> bool:
    return any(variable.name == name for variable in board.variables)
