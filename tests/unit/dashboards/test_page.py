"""The page's parts without a store: addresses, numbers, charts, escaping."""

import contextlib
from datetime import UTC, datetime, timedelta
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookup_audit.dashboards.answers import Answer
from lookup_audit.dashboards.boards import BOARDS
from lookup_audit.dashboards.model import Board, Column, Panel, number, share, text, time
from lookup_audit.dashboards.page import chart, html, show
from lookup_audit.dashboards.page.times import TimeError, read_range, read_time
from lookup_audit.dashboards.page.view import AskedWrongError, View, read

NOW = datetime(2026, 11, 2, 12, tzinfo=UTC)
LINES = Panel(
    id=1,
    title="Rate",
    kind="timeseries",
    shows="s",
    misread="m",
    do="d",
    columns=(time(), text("mode"), share("rate")),
    unit="percentunit",
)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("now", "2026-11-02T12:00:00+00:00"),
        ("now-90m", "2026-11-02T10:30:00+00:00"),
        ("now-2d", "2026-10-31T12:00:00+00:00"),
        ("1793534400000", "2026-11-01T12:00:00+00:00"),
        ("2026-11-01T14:00:00+02:00", "2026-11-01T12:00:00+00:00"),
        ("2026-11-01", "2026-11-01T00:00:00+00:00"),
    ],
)
def test_times_are_read_as_grafana_writes_them(written: str, expected: str) -> None:
    assert read_time(written, NOW).isoformat() == expected


@given(st.text(max_size=20))
def test_any_other_time_is_an_error_with_the_fix_and_never_a_crash(written: str) -> None:
    with contextlib.suppress(TimeError):
        assert read_range(written, "now", NOW).end == NOW


@pytest.mark.parametrize(("since", "until"), [("now", "now"), ("now", "now-1h"), ("0", "now")])
def test_a_range_that_is_none_is_refused(since: str, until: str) -> None:
    with pytest.raises(TimeError, match="before its end"):
        read_range(since, until, NOW)


@pytest.mark.parametrize(
    ("since", "seconds"), [("now-1h", 60), ("now-24h", 900), ("now-7d", 7200), ("now-30d", 21600)]
)
def test_buckets_make_about_a_hundred_points(since: str, seconds: int) -> None:
    assert read_range(since, "now", NOW).interval_seconds == seconds


def test_an_address_keeps_range_and_choices_over_boards() -> None:
    asked = read([("board", "drift"), ("from", "now-2h"), ("var-mode", "dense"),
                  ("var-mode", "hybrid"), ("var-tenant", "a%2Cb")], NOW)  # fmt: skip
    again = asked.lookup("id with & and 东")

    assert again == (
        "/?board=la-lookup&from=now-2h&to=now&var-tenant=a%252Cb&var-mode=dense&var-mode=hybrid"
        "&var-event_id=id+with+%26+and+%E4%B8%9C"
    )


def test_grafanas_words_for_a_board_and_for_all_are_understood() -> None:
    asked = read([("board", "la-drift"), ("var-mode", "$__all"), ("var-mode", "")], NOW)

    assert asked.board.uid == "la-drift"
    assert asked.choices["mode"] == ("*",)


def test_all_gives_way_to_what_is_chosen_beside_it() -> None:
    assert read([("var-mode", "*"), ("var-mode", "dense")], NOW).choices["mode"] == ("dense",)


@pytest.mark.parametrize(
    "query", [[("board", "nope")], [("var-mode", "x" * 1025)], [("unknown", "x" * 2000)]]
)
def test_an_address_of_what_is_not_there_is_refused(
    query: list[tuple[str, str]],
) -> None:
    with pytest.raises(AskedWrongError):
        read(query, NOW)


@given(st.text())
def test_no_text_becomes_markup(value: str) -> None:
    shown = show.text(value)

    assert not set("<>\"'") & set(shown)
    assert not any(ord(c) < 32 and c not in "\n\t" for c in shown)


def test_no_value_is_said_so_and_is_not_zero() -> None:
    column = share("rate")

    assert show.cell(None, column, "Float64") == "–"
    assert show.cell(0, column, "Float64") == "0.0 %"


def test_the_event_is_shown_as_json_and_what_is_none_as_it_is() -> None:
    column = Column("raw", unit="json")

    assert (
        show.cell('{"a":"<b>"}', column, "String") == "{\n  &quot;a&quot;: &quot;&lt;b&gt;&quot;\n}"
    )
    assert show.cell("[" * 9000, column, "String") == "[" * 9000


def answer(*rows: list[object]) -> Answer:
    return Answer(("time", "mode", "rate"), ("DateTime", "String", "Float64"), list(rows))


def test_a_gap_breaks_the_line() -> None:
    at = [(NOW - timedelta(days=days)).strftime("%Y-%m-%d %H:%M:%S") for days in (9, 8, 7, 2, 1)]
    found = chart.series_of(
        LINES, answer(*([one, "dense", 0.5] for one in at), [at[4], "hybrid", None])
    )
    drawn = chart.draw(LINES, found, [], read_range("now-10d", "now", NOW))

    assert [line.name for line in found] == ["dense", "hybrid"]
    assert drawn.count("<polyline") == 2
    assert drawn.count("<circle") == 5


def test_a_chart_is_well_formed_whatever_its_names() -> None:
    name = "a<b>&\"'\x00\u202e东"
    at = NOW.strftime("%Y-%m-%d %H:%M:%S")
    found = chart.series_of(LINES, answer([at, name, 1.5], [at, "", -3.0]))
    marks = [chart.Mark(NOW.timestamp(), name)]
    drawn = chart.draw(LINES, found, marks, read_range("now-1h", "now", NOW))

    ElementTree.fromstring(drawn)
    ElementTree.fromstring(chart.legend(found, "percentunit"))


def test_too_many_lines_are_said_to_be_too_many() -> None:
    at = NOW.strftime("%Y-%m-%d %H:%M:%S")
    found = chart.series_of(LINES, answer(*([at, f"m{n}", 0.5] for n in range(30))))

    assert "and 6 more in the table" in chart.legend(found, "percentunit")


@pytest.mark.parametrize("board", BOARDS, ids=lambda board: board.uid)
def test_a_page_without_answers_says_so_in_each_panel(board: Board) -> None:
    asked = read([("board", board.uid)], NOW)
    page = html.board_page(View(asked, {}))

    queried = [panel for panel in asked.board.panels if panel.sql]
    assert page.count("This panel has no answer") == len(queried)
    assert page.count("<script") == 1
    assert "style=" not in page
    assert "http://" not in page
    assert "https://" not in page


def test_numbers_are_short() -> None:
    assert show.number(3, "short") == "3"
    assert show.number(0.561587, "short") == "0.5616"
    assert show.number(1183725, "bytes") == "1.18 MB"
    assert show.number(90, "s") == "1.5 min"
    assert show.number(None, "s") == "–"
    assert number("n").unit == "short"
