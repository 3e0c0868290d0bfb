"""Boards as Grafana's classic dashboard JSON (``schemaVersion`` 42).

The classic model is what file provisioning takes in every Grafana from 11.6 to 13. No id of a
server is in it: a board is found by its uid, a panel by its id, the data source by a variable.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from lookup_audit.dashboards.boards import LOOKUP_UID
from lookup_audit.dashboards.model import ALL, Annotation, Board, Column, Panel, Variable

PLUGIN: Final = "grafana-clickhouse-datasource"
PLUGIN_VERSION: Final = "4.20.0"
SCHEMA_VERSION: Final = 42
TAG: Final = "lookup-audit"
MAX_UID_LENGTH: Final = 40

_SOURCE: Final[Mapping[str, str]] = {"type": PLUGIN, "uid": "${datasource}"}
# Names of our units that Grafana calls otherwise.
_UNITS: Final[Mapping[str, str]] = {
    "time": "dateTimeAsIso",
    "text": "string",
    "json": "string",
    "short": "short",
}
_FORMATS: Final[Mapping[str, int]] = {"timeseries": 0, "table": 1, "stat": 1, "record": 1}
_TYPES: Final[Mapping[str, str]] = {"record": "table"}
_REFRESH_ON_TIME: Final = 2

# Brings the reader to one lookup, in the range and with the variables of where they come from.
_LOOKUP_LINK: Final = (
    f"/d/{LOOKUP_UID}?var-event_id=${{__value.raw:percentencode}}"
    "&${datasource:queryparam}&${tenant:queryparam}&${service:queryparam}"
    "&${model_version:queryparam}&${mode:queryparam}&${__url_time_range}"
)


def dashboard(board: Board) -> dict[str, Any]:
    """The JSON model of a board."""
    return {
        "annotations": {"list": [_annotation(one) for one in board.annotations]},
        "description": board.about,
        "editable": False,
        "fiscalYearStartMonth": 0,
        "graphTooltip": 1,
        "id": None,
        "links": [_board_links()],
        "panels": _panels(board.panels),
        "refresh": "1m",
        "schemaVersion": SCHEMA_VERSION,
        "tags": [TAG],
        "templating": {"list": [_source_variable(), *map(_variable, board.variables)]},
        "time": {"from": board.since, "to": "now"},
        "timepicker": {},
        "timezone": "utc",
        "title": board.title,
        "uid": board.uid,
    }


def dashboard_text(board: Board) -> str:
    """The JSON model as a file's text: sorted, so that a change is a small difference."""
    text = json.dumps(dashboard(board), indent=2, sort_keys=True, ensure_ascii=False)
    return text + "\n"


def target(sql: str, *, kind: str = "table", ref: str = "A") -> dict[str, Any]:
    """A query as the plugin wants it; without the version it would be taken for an old one."""
    return {
        "datasource": dict(_SOURCE),
        "editorType": "sql",
        "format": _FORMATS[kind],
        "meta": {},
        "pluginVersion": PLUGIN_VERSION,
        "queryType": "timeseries" if kind == "timeseries" else "table",
        "rawSql": sql,
        "refId": ref,
    }


def _board_links() -> dict[str, Any]:
    return {
        "asDropdown": False,
        "icon": "external link",
        "includeVars": True,
        "keepTime": True,
        "tags": [TAG],
        "targetBlank": False,
        "title": "Lookup Audit",
        "tooltip": "The other boards, with this range and these variables",
        "type": "dashboards",
        "url": "",
    }


def _source_variable() -> dict[str, Any]:
    return {
        "current": {},
        "hide": 0,
        "includeAll": False,
        "label": "Data source",
        "multi": False,
        "name": "datasource",
        "options": [],
        "query": PLUGIN,
        "refresh": 1,
        "regex": "",
        "type": "datasource",
    }


def _variable(variable: Variable) -> dict[str, Any]:
    common: dict[str, Any] = {
        "hide": 2 if variable.hidden else 0,
        "label": variable.label,
        "name": variable.name,
        "options": [],
    }
    if variable.is_text:
        return common | {
            "current": {"text": "", "value": ""},
            "query": "",
            "type": "textbox",
        }
    return common | {
        # In the format percentencode Grafana encodes this as any value; it is no stored one.
        "allValue": ALL,
        "current": {"text": ["All"], "value": ["$__all"]},
        "datasource": dict(_SOURCE),
        "includeAll": True,
        "multi": True,
        "query": target(variable.sql, ref=variable.name),
        "refresh": _REFRESH_ON_TIME,
        "regex": "",
        "sort": 0,
        "type": "query",
    }


def _annotation(annotation: Annotation) -> dict[str, Any]:
    return {
        "datasource": dict(_SOURCE),
        "enable": True,
        "hide": False,
        "iconColor": annotation.color,
        "name": annotation.name,
        "target": target(annotation.sql, ref="annotation"),
    }


def _panels(panels: Sequence[Panel]) -> list[dict[str, Any]]:
    """Panels in reading order: left to right, and down where a row is full."""
    placed, x, y, tallest = [], 0, 0, 0
    for panel in panels:
        if x + panel.width > 24:
            x, y, tallest = 0, y + tallest, 0
        position = {"h": panel.height, "w": panel.width, "x": x, "y": y}
        placed.append(_panel(panel) | {"gridPos": position})
        x, tallest = x + panel.width, max(tallest, panel.height)
    return placed


def _panel(panel: Panel) -> dict[str, Any]:
    common: dict[str, Any] = {
        "description": panel.description,
        "id": panel.id,
        "title": panel.title,
        "type": _TYPES.get(panel.kind, panel.kind),
    }
    if panel.kind == "text":
        content = f"{panel.shows}\n\n{panel.misread}\n\n{panel.do}"
        return common | {"options": {"content": content, "mode": "markdown"}}
    made = common | {
        "datasource": dict(_SOURCE),
        "fieldConfig": {"defaults": _defaults(panel), "overrides": _overrides(panel)},
        "options": _options(panel),
        "targets": [target(panel.sql, kind=panel.kind)],
    }
    if panel.kind == "timeseries":
        made["interval"] = "1m"
    if panel.kind == "record":
        made["transformations"] = [{"id": "transpose", "options": {}}]
    return made


def _defaults(panel: Panel) -> dict[str, Any]:
    defaults: dict[str, Any] = {
        "noValue": panel.no_value,
        "thresholds": {
            "mode": "absolute",
            "steps": [{"color": step.color, "value": step.at} for step in panel.steps],
        },
        "unit": _unit(panel.unit),
    }
    if panel.minimum is not None:
        defaults["min"] = panel.minimum
    if panel.maximum is not None:
        defaults["max"] = panel.maximum
    if panel.kind == "timeseries":
        labels = " / ".join(f"${{__field.labels.{name}}}" for name in panel.labels)
        several = len(panel.values) > 1
        defaults["displayName"] = f"${{__field.name}} {labels}" if several else labels
        defaults["custom"] = {
            "drawStyle": "line",
            "fillOpacity": 20 if panel.stacked else 0,
            "lineWidth": 1,
            "showPoints": "auto",
            "spanNulls": False,
            "stacking": {"group": "A", "mode": "normal" if panel.stacked else "none"},
        }
    elif panel.kind in ("table", "record"):
        defaults["custom"] = {"align": "auto", "cellOptions": {"type": "auto"}, "inspect": True}
    return defaults


def _overrides(panel: Panel) -> list[dict[str, Any]]:
    if panel.kind == "timeseries":
        return []
    return [
        {"matcher": {"id": "byName", "options": column.name}, "properties": _properties(column)}
        for column in panel.columns
    ]


def _properties(column: Column) -> list[dict[str, Any]]:
    properties: list[dict[str, Any]] = [
        {"id": "displayName", "value": column.heading},
        {"id": "unit", "value": _unit(column.unit)},
    ]
    if column.links:
        link = {"targetBlank": False, "title": "Open this lookup", "url": _LOOKUP_LINK}
        properties.append({"id": "links", "value": [link]})
    return properties


def _options(panel: Panel) -> dict[str, Any]:
    if panel.kind == "timeseries":
        return {
            "legend": {
                "calcs": ["lastNotNull", "min", "max"],
                "displayMode": "table",
                "placement": "bottom",
                "showLegend": True,
            },
            "tooltip": {"mode": "multi", "sort": "desc"},
        }
    if panel.kind == "stat":
        return {
            "colorMode": "value",
            "graphMode": "none",
            "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": True},
            "textMode": "auto",
        }
    return {"cellHeight": "sm", "showHeader": panel.kind != "record"}


def _unit(unit: str) -> str:
    return _UNITS.get(unit, unit)
