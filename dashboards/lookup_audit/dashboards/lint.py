"""What must hold for every board and every rendered dashboard, as sentences of what does not.

The rules are those of Grafana's own linter that apply, and what was learned of the ClickHouse
plugin: queries without ``format`` or plugin version, quotes around variables, series not in order
of time, data sources by a fixed name.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from lookup_audit.dashboards.grafana_json import (
    MAX_UID_LENGTH,
    PLUGIN,
    SCHEMA_VERSION,
    TAG,
)
from lookup_audit.dashboards.macros import MacroError, Range, expand
from lookup_audit.dashboards.model import STRATUM, Board, Panel

MAX_PANELS: Final = 12
# Grafana's names of units that boards use.
UNITS: Final = frozenset(
    {"short", "percentunit", "s", "ms", "bytes", "none", "dateTimeAsIso", "string"}
)
_TIME_FILTER = re.compile(r"\$__(?:timeFilter|fromTime|toTime)\b")
_UNQUOTED = re.compile(r"(?<!')\$\{\w+:percentencode\}|\$\{\w+:percentencode\}(?!')")


def lint_board(board: Board, span: Range) -> Iterator[str]:
    """What is wrong with a board's definition.

    Args:
        board: As defined.
        span: Any range, to expand macros with.
    """
    if len(board.uid) > MAX_UID_LENGTH or not re.fullmatch(r"[a-z][a-z0-9-]*", board.uid):
        yield f"{board.uid}: a uid is of lower-case letters, digits and dashes, at most 40"
    if not 0 < len(board.panels) <= MAX_PANELS:
        yield f"{board.uid}: has {len(board.panels)} panels, which is none or more than 12"
    ids = [panel.id for panel in board.panels]
    if len(set(ids)) != len(ids) or min(ids, default=1) < 1:
        yield f"{board.uid}: panel ids repeat or are below 1"
    names = [variable.name for variable in board.variables]
    if missing := [name for name in STRATUM if name not in names]:
        yield f"{board.uid}: lacks the variables {', '.join(missing)}"
    for name, sql in board.queries():
        yield from _lint_sql(name, sql, names, span)
        if _needs_time(name, sql) and not _TIME_FILTER.search(sql):
            yield f"{name}: has no time filter"
    for panel in board.panels:
        yield from (f"{board.uid} panel {panel.id}: {fault}" for fault in _lint_panel(panel))


def _lint_panel(panel: Panel) -> Iterator[str]:
    for what in ("title", "shows", "misread", "do", "no_value"):
        if not getattr(panel, what).strip():
            yield f"has no {what}"
    if panel.kind == "text":
        if panel.sql:
            yield "is a text and has a query"
        return
    if not panel.sql or not panel.columns:
        yield "has no query or no columns"
    if not panel.modeless and "mode" not in panel.labels:
        yield "neither shows the mode nor says why its figures have none"
    for name in STRATUM:
        if (f"${{{name}:" in panel.sql) == (name in panel.ignores):
            yield f"must either filter by {name} or say that it ignores it"
    if panel.kind == "timeseries":
        if panel.columns[0].name != "time" or panel.columns[0].unit != "time":
            yield "is a time series whose first column is not time"
        if not panel.values:
            yield "draws nothing"
        keys = ", ".join(("time", *panel.labels))
        if not panel.sql.endswith(f"ORDER BY {keys}"):
            yield f"must end with ORDER BY {keys}: the plugin wants series in order"
    elif "ORDER BY" not in panel.sql:
        yield "has rows in no order"


def _lint_sql(name: str, sql: str, variables: list[str], span: Range) -> Iterator[str]:
    if _UNQUOTED.search(sql):
        yield f"{name}: a variable stands outside quotes"
    if "$__conditionalAll" in sql or "$__adHocFilters" in sql:
        yield f"{name}: uses a macro that only Grafana's front end knows"
    try:
        expand(sql, span, dict.fromkeys(variables, "x"))
    except MacroError as error:
        yield f"{name}: {error}"


def _needs_time(name: str, sql: str) -> bool:
    """One lookup is found by its id alone; sizes and the watcher's state are of now."""
    by_id = "${event_id:" in sql
    return not by_id and "FROM system.parts" not in sql and "FROM audit.drift_strata" not in sql


def lint_dashboard(model: Mapping[str, Any]) -> Iterator[str]:
    """What is wrong with a rendered dashboard's structure."""
    uid = model.get("uid", "?")
    expected = {"id": None, "schemaVersion": SCHEMA_VERSION, "editable": False, "timezone": "utc"}
    for key, value in expected.items():
        if key not in model or model[key] != value:
            yield f"{uid}: {key} is not {value!r}"
    if TAG not in model.get("tags", ()) or not model.get("title"):
        yield f"{uid}: lacks its tag or its title"
    if "version" in model or "__inputs" in model:
        yield f"{uid}: holds what only an export has"
    taken: set[tuple[int, int]] = set()
    for panel in model["panels"]:
        place = f"{uid} panel {panel.get('id')}"
        yield from (f"{place}: {fault}" for fault in _lint_rendered(panel))
        grid = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(grid["x"], grid["x"] + grid["w"])
            for y in range(grid["y"], grid["y"] + grid["h"])
        }
        if cells & taken or max(x for x, _ in cells) > 23:
            yield f"{place}: overlaps another or leaves the grid"
        taken |= cells
    for variable in model["templating"]["list"]:
        if variable["type"] == "query":
            yield from _lint_target(f"{uid} variable {variable['name']}", variable["query"])
    for annotation in model["annotations"]["list"]:
        yield from _lint_target(f"{uid} annotation {annotation['name']}", annotation["target"])


def _lint_rendered(panel: Mapping[str, Any]) -> Iterator[str]:
    for key in ("id", "title", "type", "description", "gridPos"):
        if not panel.get(key):
            yield f"has no {key}"
    if panel["type"] == "text":
        return
    defaults = panel["fieldConfig"]["defaults"]
    if not defaults.get("noValue"):
        yield "has no noValue"
    units = [defaults.get("unit")] + [
        prop["value"]
        for override in panel["fieldConfig"]["overrides"]
        for prop in override["properties"]
        if prop["id"] == "unit"
    ]
    if unknown := set(units) - UNITS:
        yield f"has units that Grafana does not know: {unknown}"
    steps = defaults["thresholds"]["steps"]
    values = [step["value"] for step in steps]
    if not steps or values[0] is not None or values[1:] != sorted(values[1:]):
        yield "has thresholds without a base or out of order"
    if panel["datasource"] != {"type": PLUGIN, "uid": "${datasource}"}:
        yield "does not use the variable data source"
    if not panel["targets"]:
        yield "has no query"
    for one in panel["targets"]:
        yield from _lint_target("query", one)
        if one["format"] != (0 if panel["type"] == "timeseries" else 1):
            yield "has a query whose format does not fit the panel"


def _lint_target(name: str, target: Mapping[str, Any]) -> Iterator[str]:
    if target.get("editorType") != "sql" or not target.get("rawSql"):
        yield f"{name}: is not written as SQL"
    if not str(target.get("pluginVersion", "")).startswith("4."):
        yield f"{name}: lacks the plugin's version and would be taken for an old query"
    if target.get("format") not in (0, 1):
        yield f"{name}: has no format"
    if target.get("datasource", {}).get("uid") != "${datasource}":
        yield f"{name}: does not use the variable data source"
