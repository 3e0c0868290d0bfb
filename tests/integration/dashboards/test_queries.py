"""Every statement of every board on the real engine."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lookup_audit.dashboards.answers import Answer, Run, faults, read_json_compact
from lookup_audit.dashboards.boards import BOARDS
from lookup_audit.dashboards.checking import NASTY, lint, read_options, run_all, run_board
from lookup_audit.dashboards.filters import option, picked
from lookup_audit.dashboards.macros import Range, Value, expand
from lookup_audit.dashboards.model import ALL, STRATUM, Board, Panel
from lookup_audit.processors import ratio
from lookup_audit.processors.store import ClickHouseStore
from tests.support.board_data import NASTY_MODEL, NASTY_QUERY, fill

pytest_plugins = ["tests.support.engine"]

NOW = datetime.now(UTC)
SPAN = Range(NOW - timedelta(days=3), NOW + timedelta(minutes=1), 3600)
EVERYTHING: dict[str, Value] = dict.fromkeys((*STRATUM, "event_id"), ALL)
PANELS = [(board, panel) for board in BOARDS for panel in board.panels if panel.sql]


def runner(store: ClickHouseStore) -> Run:
    return lambda sql: read_json_compact(store.raw(sql, output_format="JSONCompact"))


@pytest.fixture(scope="module")
def filled(engine: ClickHouseStore) -> tuple[Run, list[str]]:
    # Imported here: pytest rewrites the plugin first.
    from tests.support.engine import TABLES

    for table in TABLES:
        engine.command(f"TRUNCATE TABLE audit_store.{table}")
    return runner(engine), fill(engine, NOW)


def answer(run: Run, sql: str, **choices: Value) -> Answer:
    return run(expand(sql, SPAN, EVERYTHING | choices))


def as_set(found: Answer) -> set[str]:
    return {json.dumps(row, sort_keys=True) for row in found.rows}


def test_the_boards_keep_every_rule() -> None:
    assert lint(NOW) == []


@pytest.mark.parametrize(("board", "panel"), PANELS, ids=[f"{b.uid}-{p.id}" for b, p in PANELS])
def test_no_panel_sums_modes(filled: tuple[Run, list[str]], board: Board, panel: Panel) -> None:
    run, ids = filled
    # Of one lookup those of both modes are asked for: the first and the last event.
    events = (ids[0], ids[-1]) if board.uid == "la-lookup" else ("",)
    modes = set(read_options(run, board, SPAN)["mode"])
    assert modes == {"dense", "hybrid"}
    for event_id in events:
        everything = answer(run, panel.sql, event_id=event_id)
        if panel.modeless:
            assert "mode" in panel.ignores or "mode" not in panel.labels
            continue
        parts = [answer(run, panel.sql, event_id=event_id, mode=mode) for mode in modes]

        assert "mode" in everything.names
        assert as_set(everything) == as_set(parts[0]) | as_set(parts[1])


def test_the_proof_would_find_a_panel_that_sums_modes(filled: tuple[Run, list[str]]) -> None:
    run, _ = filled
    panel = next(panel for panel in BOARDS[0].panels if panel.title == "Lookups")
    summed = panel.sql.replace(", mode, sum(", ", 'any' AS mode, sum(")
    assert summed != panel.sql
    parts = [answer(run, summed, mode=mode) for mode in ("dense", "hybrid")]

    assert as_set(answer(run, summed)) != as_set(parts[0]) | as_set(parts[1])


def test_a_panel_without_modes_counts_no_levels() -> None:
    for board, panel in PANELS:
        if panel.modeless:
            assert "level" not in panel.sql, f"{board.uid} panel {panel.id}"
            assert "quality" not in panel.sql, f"{board.uid} panel {panel.id}"


@pytest.mark.parametrize(("board", "panel"), PANELS, ids=[f"{b.uid}-{p.id}" for b, p in PANELS])
def test_every_panel_has_something_to_show(
    filled: tuple[Run, list[str]], board: Board, panel: Panel
) -> None:
    run, ids = filled
    found = answer(run, panel.sql, event_id=ids[0])

    assert list(faults(panel, found)) == []
    assert found.rows


def test_everything_runs_with_every_choice(filled: tuple[Run, list[str]]) -> None:
    run, ids = filled
    assert list(run_all(run, NOW, ids[:1])) == []


def test_the_headline_of_a_period_is_the_one_of_the_command_line(
    filled: tuple[Run, list[str]], engine: ClickHouseStore
) -> None:
    run, _ = filled
    headline = BOARDS[0].panels[0]
    found = answer(run, headline.sql)
    period = ratio.Period(first=SPAN.start.date(), last=SPAN.end.date())
    expected = ratio.headlines(engine, ["model_version", "mode"], period)

    assert len(found.rows) == len(expected) == 4
    for row, want in zip(found.rows, expected, strict=True):
        got = dict(zip(found.names, row, strict=True))
        assert {n: got[n] for n in want.stratum} == dict(want.stratum)
        error = want.rates["high_score_error_share"]
        refusal = want.rates["low_score_refusal_share"]
        assert error is not None
        assert refusal is not None
        assert want.ratio is not None
        assert [got["error_share"], got["error_share_low"], got["error_share_high"]] == (
            pytest.approx([error.value, error.low, error.high])
        )
        assert [got["refusal_share"], got["refusal_share_low"], got["refusal_share_high"]] == (
            pytest.approx([refusal.value, refusal.low, refusal.high])
        )
        assert [got["ratio"], got["ratio_low"], got["ratio_high"]] == pytest.approx(
            list(want.ratio)
        )


def test_the_split_of_a_change_adds_up(filled: tuple[Run, list[str]]) -> None:
    run, _ = filled
    panel = next(p for _, p in PANELS if p.title.startswith("Why the PRECISE rate"))
    # The range begins in the middle of the history, so that there is a before.
    span = Range(NOW - timedelta(hours=2, minutes=50), NOW, 3600)
    found = run(expand(panel.sql, span, EVERYTHING))
    whole = [dict(zip(found.names, row, strict=True)) for row in found.rows]
    split = [row for row in whole if row["n_before"] and row["n_after"]]

    assert split
    for row in split:
        assert row["before"] + row["mix"] + row["within"] == pytest.approx(row["after"])


def test_a_lookup_shows_its_text_as_it_was_sent(filled: tuple[Run, list[str]]) -> None:
    run, ids = filled
    found = answer(run, BOARDS[-1].panels[0].sql, event_id=ids[2])
    shown = dict(zip(found.names, found.rows[0], strict=True))

    assert shown["query_text"] == NASTY_QUERY


@pytest.mark.parametrize("attack", ["zz\\' OR 1=1 -- ", "' OR '1'='1", "\\", "%27 OR 1=1", "{a,b}"])
def test_an_id_that_is_sql_finds_nothing(filled: tuple[Run, list[str]], attack: str) -> None:
    run, _ = filled
    for panel in BOARDS[-1].panels:
        assert answer(run, panel.sql, event_id=attack).rows == [], panel.title


def test_a_variable_of_odd_characters_picks_just_its_rows(filled: tuple[Run, list[str]]) -> None:
    run, _ = filled
    options = read_options(run, BOARDS[0], SPAN)
    volume = next(panel for panel in BOARDS[0].panels if panel.title == "Lookups")
    for choice in options["model_version"]:
        found = answer(run, volume.sql, model_version=choice)
        assert len({row[1] for row in found.rows}) == 1
    named = {row[1] for row in answer(run, volume.sql).rows}
    assert named == {"mini@1", NASTY_MODEL}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None,
          max_examples=40)  # fmt: skip
@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=8), max_size=4))
def test_choices_pick_just_the_chosen_values(engine: ClickHouseStore, stored: list[str]) -> None:
    values = [*stored, "", "*", "(none)", "a,b", "{", "}"]
    run = runner(engine)
    listed = ", ".join(f"unhex('{value.encode().hex()}')" for value in values)
    source = f"(SELECT arrayJoin([{listed}]) AS v)"
    options = run(f"SELECT DISTINCT v, {option('v')} FROM {source}").rows
    encoded: dict[str, str] = dict(options)
    chosen = [value for value in encoded if value in stored[:2]] or ["a,b"]
    sql = f"SELECT DISTINCT v FROM {source} WHERE {picked('x', 'v')}"

    found = run(expand(sql, SPAN, {"x": [encoded[value] for value in chosen]}))

    assert {row[0] for row in found.rows} == set(chosen)


def test_nothing_breaks_on_an_empty_store(store: ClickHouseStore) -> None:
    run = runner(store)
    for board in BOARDS:
        options = read_options(run, board, SPAN)
        assert not any(options.values())
        for choices in (EVERYTHING, dict.fromkeys(EVERYTHING, NASTY)):
            assert list(run_board(run, board, SPAN, choices)) == []


def test_an_empty_store_shows_no_figure(store: ClickHouseStore) -> None:
    run = runner(store)
    shown: Sequence[Any] = [
        (board.uid, panel.title)
        for board, panel in PANELS
        if panel.title != "Size of the store" and answer(run, panel.sql).rows
    ]

    assert shown == []
