"""A board as a page of HTML. Every stored or given text goes through ``show.text``."""

from collections.abc import Iterator, Sequence
from typing import Final

from lookup_audit.dashboards.answers import Answer
from lookup_audit.dashboards.boards import BOARDS
from lookup_audit.dashboards.model import ALL, Column, Panel, Variable
from lookup_audit.dashboards.page import chart, show
from lookup_audit.dashboards.page.view import REFRESHES, Asked, View

CONTENT_POLICY: Final = (
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; "
    "img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_RANGES: Final = ("now-1h", "now-6h", "now-24h", "now-7d", "now-30d", "now-90d")
_MAX_ROWS: Final = 500


def board_page(view: View) -> str:
    """The page of a board with its answers."""
    asked = view.asked
    body = [
        _header(asked),
        _form(view),
        f'<main id="main"><h1>{show.text(asked.board.title)}</h1>'
        f"<p>{show.text(asked.board.about)} Times are UTC, "
        f"{show.moment(asked.span.start)} to {show.moment(asked.span.end)}.</p>"
        '<div class="panels">',
        *(_panel(panel, view) for panel in asked.board.panels),
        "</div></main>",
    ]
    return _document(asked.board.title, "".join(body), refresh=asked.refresh)


def message_page(title: str, message: str) -> str:
    """A page that says what is wrong and leads back."""
    body = (
        f'<main id="main"><h1>{show.text(title)}</h1><p>{show.text(message)}</p>'
        '<p><a href="/">To the overview</a></p></main>'
    )
    return _document(title, body)


def token_page() -> str:
    """Asks for a token; holds nothing of what is stored."""
    body = (
        '<main id="main"><h1>Lookup Audit</h1>'
        "<p>This service wants a token. It is kept in this page's memory only: closing or "
        "reloading the page forgets it.</p>"
        '<form id="token-form" autocomplete="off"><label>Token '
        '<input id="token" type="password" required autocomplete="off" spellcheck="false">'
        '</label> <button>Open</button></form><p id="token-problem" role="alert"></p>'
        "<noscript><p>Without a script, send the token yourself: "
        "<code>curl -H 'Authorization: Bearer …' -H 'Accept: text/html' …</code></p></noscript>"
        "</main>"
    )
    return _document("Lookup Audit", body)


def _document(title: str, body: str, *, refresh: str = "") -> str:
    reload = f'<meta http-equiv="refresh" content="{int(refresh)}">' if refresh else ""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{show.text(title)} · Lookup Audit</title>{reload}"
        '<link rel="icon" href="/page/icon.svg"><link rel="stylesheet" href="/page/style.css">'
        '<script src="/page/page.js" defer></script></head><body>'
        f'<a class="skip" href="#main">To the panels</a>{body}</body></html>\n'
    )


def _header(asked: Asked) -> str:
    here = {asked.board.uid: ' aria-current="page"'}
    links = "".join(
        f'<a href="{show.text(asked.address(board.uid))}"{here.get(board.uid, "")}>'
        f"{show.text(board.title)}</a>"
        for board in BOARDS
    )
    return f'<header><strong>Lookup Audit</strong><nav aria-label="Boards">{links}</nav></header>'


def _form(view: View) -> str:
    asked = view.asked
    ranges = "".join(f'<option value="{one}">' for one in _RANGES)
    refreshes = "".join(
        f'<option value="{one}"{_selected(one == asked.refresh)}>{one + " s" if one else "off"}'
        "</option>"
        for one in REFRESHES
    )
    hidden = [
        f'<input type="hidden" name="var-{show.text(name)}" value="{show.text(value)}">'
        for name, values in asked.choices.items()
        for value in values
        if value != ALL and value and not _is_shown(asked, name)
    ]
    return (
        '<form class="choices" method="get" action="/">'
        f'<input type="hidden" name="board" value="{asked.board.uid}">{"".join(hidden)}'
        f"{''.join(_picker(v, view) for v in asked.board.variables if not v.hidden)}"
        f'<label>From <input name="from" list="ranges" value="{show.text(asked.since)}"></label>'
        f'<label>To <input name="to" value="{show.text(asked.until)}"></label>'
        f'<datalist id="ranges">{ranges}</datalist>'
        f'<label>Reload <select name="refresh">{refreshes}</select></label>'
        "<button>Show</button></form>"
    )


def _is_shown(asked: Asked, name: str) -> bool:
    return any(v.name == name and not v.hidden for v in asked.board.variables)


def _picker(variable: Variable, view: View) -> str:
    chosen = view.asked.choices[variable.name]
    name, label = show.text(f"var-{variable.name}"), show.text(variable.label)
    if variable.is_text:
        return (
            f'<label>{label} <input name="{name}" value="{show.text(chosen[0])}" size="40" '
            'autocomplete="off" spellcheck="false"></label>'
        )
    offered = list(view.options.get(variable.name, ()))
    known = {value for value, _ in offered}
    # What is chosen stays chosen, though the range holds nothing of it.
    offered += [(value, f"{value} (not in this range)") for value in chosen
                if value not in known and value != ALL]  # fmt: skip
    options = "".join(
        f'<option value="{show.text(value)}"{_selected(value in chosen)}>{show.text(text)}</option>'
        for value, text in [(ALL, "All"), *offered]
    )
    return f'<label>{label} <select name="{name}" multiple size="3">{options}</select></label>'


def _selected(yes: bool) -> str:
    return " selected" if yes else ""


def _panel(panel: Panel, view: View) -> str:
    wide = " wide" if panel.width == 24 else ""
    description = "".join(f"<p>{show.text(part)}</p>" for part in panel.description.split("\n\n"))
    head = f'<h2 id="p{panel.id}">{show.text(panel.title)}</h2>'
    opening = f'<section class="panel{wide}" aria-labelledby="p{panel.id}">{head}'
    if panel.kind == "text":
        words = (panel.shows, panel.misread, panel.do)
        told = "".join(f"<p>{show.text(part.replace('*', ''))}</p>" for part in words)
        return f"{opening}{told}</section>"
    help_text = f"<details><summary>How to read it</summary>{description}</details>"
    return f"{opening}{_content(panel, view)}{help_text}</section>"


def _content(panel: Panel, view: View) -> str:
    answer = view.answers.get(panel.id, "was not asked")
    if isinstance(answer, str):
        return f'<p class="problem">This panel has no answer: {show.text(answer)}</p>'
    if not answer.rows:
        return f'<p class="nothing">{show.text(panel.no_value)}</p>'
    if panel.kind == "record":
        return "".join(_record(panel, answer, row, view) for row in answer.rows)
    if panel.kind != "timeseries":
        return _table(panel, answer, view)
    lines = chart.series_of(panel, answer)
    unit = panel.values[0].unit if panel.unit == "short" else panel.unit
    drawn = chart.draw(panel, lines, view.marks, view.asked.span)
    table = _table(panel, answer, view)
    return (
        f"{drawn}{chart.legend(lines, unit)}"
        f"<details><summary>The numbers</summary>{table}</details>"
    )


def _table(panel: Panel, answer: Answer, view: View) -> str:
    heads = "".join(
        f'<th scope="col"{_right(column)}>{show.text(column.heading)}</th>'
        for column in panel.columns
    )
    rows = "".join(
        f"<tr>{''.join(_cells(panel, answer, row, view.asked))}</tr>"
        for row in answer.rows[:_MAX_ROWS]
    )
    rest = len(answer.rows) - _MAX_ROWS
    more = f"<p>{rest} more rows; choose a shorter range.</p>" if rest > 0 else ""
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{show.text(panel.title)}">'
        f"<table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></div>{more}"
    )


def _cells(panel: Panel, answer: Answer, row: Sequence[object], asked: Asked) -> Iterator[str]:
    for column, kind, value in zip(panel.columns, answer.types, row, strict=True):
        yield f"<td{_right(column)}>{_value(value, column, kind, asked)}</td>"


def _record(panel: Panel, answer: Answer, row: Sequence[object], view: View) -> str:
    lines = "".join(
        f'<tr><th scope="row">{show.text(column.heading)}</th>'
        f"<td>{_value(value, column, kind, view.asked)}</td></tr>"
        for column, kind, value in zip(panel.columns, answer.types, row, strict=True)
    )
    return f'<table class="record"><tbody>{lines}</tbody></table>'


def _value(value: object, column: Column, kind: str, asked: Asked) -> str:
    shown = show.cell(value, column, kind)
    if column.links and value:
        return f'<a href="{show.text(asked.lookup(str(value)))}">{shown}</a>'
    return f"<pre>{shown}</pre>" if column.unit == "json" else shown


def _right(column: Column) -> str:
    return "" if column.unit in ("text", "time", "json") else ' class="n"'
