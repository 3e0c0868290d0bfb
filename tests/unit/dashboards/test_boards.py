import copy
import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from lookup_audit.dashboards.boards import BOARDS
from lookup_audit.dashboards.grafana_json import dashboard
from lookup_audit.dashboards.lint import lint_board, lint_dashboard
from lookup_audit.dashboards.macros import Range
from lookup_audit.dashboards.model import Board, Panel
from lookup_audit.dashboards.provisioning import SOURCE_UID, files

ROOT = Path(__file__).parents[3]
RENDERED = ROOT / "dashboards" / "grafana"
NOW = datetime(2026, 11, 1, tzinfo=UTC)
SPAN = Range(NOW - timedelta(hours=6), NOW)


@pytest.mark.parametrize("board", BOARDS, ids=lambda board: board.uid)
def test_a_board_keeps_every_rule(board: Board) -> None:
    assert list(lint_board(board, SPAN)) == []
    assert list(lint_dashboard(dashboard(board))) == []


def test_what_is_committed_is_what_would_be_rendered() -> None:
    expected = dict(files())
    found = {
        str(path.relative_to(RENDERED)): path.read_text("utf-8")
        for path in RENDERED.rglob("*")
        if path.is_file()
    }

    assert found == expected, "run: lookup-audit dashboards render"


def test_rendering_twice_gives_the_same_bytes() -> None:
    assert list(files()) == list(files())


def test_every_rendered_file_can_be_read() -> None:
    for name, text in files():
        assert json.loads(text) if name.endswith(".json") else yaml.safe_load(text)


def test_links_lead_to_boards_that_exist() -> None:
    uids = {board.uid for board in BOARDS}
    links = [
        link["url"]
        for board in BOARDS
        for panel in dashboard(board)["panels"]
        for override in panel.get("fieldConfig", {}).get("overrides", ())
        for prop in override["properties"]
        if prop["id"] == "links"
        for link in prop["value"]
    ]

    assert links
    assert {link.split("?")[0].removeprefix("/d/") for link in links} <= uids
    assert all("${__url_time_range}" in link and "${mode:queryparam}" in link for link in links)


def test_the_data_source_is_named_once() -> None:
    source = yaml.safe_load(dict(files())["provisioning/datasources/lookup-audit.yaml"])

    assert source["datasources"][0]["uid"] == SOURCE_UID


def _change(**over: Any) -> Callable[[Panel], Panel]:
    return lambda panel: replace(panel, **over)


BAD_PANELS = [
    (_change(misread=" "), "no misread"),
    (_change(no_value=""), "no no_value"),
    (_change(sql="SELECT 1"), "filter by tenant"),
    (_change(modeless="x", ignores=("mode",)), "filter by mode"),
    (_change(columns=()), "no columns"),
    (lambda p: replace(p, sql=p.sql + " DESC"), "must end with ORDER BY"),
    (lambda p: replace(p, sql=p.sql.replace("'${mode:percentencode}'", "${mode:percentencode}")),
     "outside quotes"),
    (lambda p: replace(p, sql=p.sql.replace("percentencode", "singlequote", 1)), "percentencode"),
    (lambda p: replace(p, sql=p.sql.replace("$__timeFilter", "$__timeFiltre")), "no macro"),
    (lambda p: replace(p, columns=tuple(c for c in p.columns if c.name != "mode")),
     "neither shows the mode"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "fault"), BAD_PANELS, ids=[fault for _, fault in BAD_PANELS])
def test_the_linter_finds_a_bad_panel(change: Callable[[Panel], Panel], fault: str) -> None:
    board = BOARDS[0]
    good = next(panel for panel in board.panels if panel.title == "Lookups")
    bad = replace(board, panels=(change(good),))

    assert any(fault in found for found in lint_board(bad, SPAN))


def test_the_linter_finds_thirteen_panels_and_repeated_ids() -> None:
    board = BOARDS[0]
    found = list(lint_board(replace(board, panels=board.panels[:1] * 13), SPAN))

    assert any("13 panels" in fault for fault in found)
    assert any("ids repeat" in fault for fault in found)


def _spoil(model: dict[str, Any], path: str, value: Any) -> None:
    *parents, last = path.split(".")
    for name in parents:
        model = model[int(name)] if isinstance(model, list) else model[name]
    model[last] = value


SPOILED = [
    ("schemaVersion", 36, "schemaVersion"),
    ("id", 7, "id is not"),
    ("tags", [], "tag"),
    ("version", 3, "export"),
    ("panels.0.fieldConfig.defaults.unit", "parsecs", "units"),
    ("panels.0.fieldConfig.defaults.noValue", "", "noValue"),
    ("panels.0.datasource", {"uid": "x"}, "variable data source"),
    ("panels.0.targets.0.pluginVersion", "", "old query"),
    ("panels.0.targets.0.format", 0, "does not fit"),
    ("panels.1.gridPos", {"x": 0, "y": 0, "w": 24, "h": 9}, "overlaps"),
    ("panels.0.description", "", "description"),
]


@pytest.mark.parametrize(("path", "value", "fault"), SPOILED, ids=[path for path, *_ in SPOILED])
def test_the_linter_finds_a_spoiled_dashboard(path: str, value: Any, fault: str) -> None:
    model = copy.deepcopy(dashboard(BOARDS[0]))
    _spoil(model, path, value)

    assert any(fault in found for found in lint_dashboard(model))
