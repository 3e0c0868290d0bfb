"""Files that Grafana reads at its start: data source, dashboards provider, dashboards."""

from collections.abc import Iterator
from typing import Any, Final

from lookup_audit.dashboards.alert_files import DEFAULT_RUNBOOKS, rules_file
from lookup_audit.dashboards.boards import BOARDS
from lookup_audit.dashboards.grafana_json import PLUGIN, dashboard_text
from lookup_audit.dashboards.prometheus_rules import metric_rules_file
from lookup_audit.dashboards.yaml_text import yaml_text

SOURCE_UID: Final = "la-clickhouse"
SOURCE_NAME: Final = "Lookup Audit ClickHouse"
FOLDER_UID: Final = "lookup-audit"
FOLDER: Final = "Lookup Audit"
# Where the provider looks for the dashboards inside Grafana's container.
DASHBOARDS_PATH: Final = "/var/lib/grafana/dashboards/lookup-audit"

_GENERATED: Final = "Written by: lookup-audit dashboards render. Changes here are overwritten."


def files(runbooks: str = DEFAULT_RUNBOOKS) -> Iterator[tuple[str, str]]:
    """Every file of ``dashboards render``: path below the output folder, and its text."""
    for board in BOARDS:
        yield f"dashboards/{board.uid}.json", dashboard_text(board)
    yield "provisioning/dashboards/lookup-audit.yaml", yaml_text(provider(), heading=_GENERATED)
    yield "provisioning/datasources/lookup-audit.yaml", yaml_text(source(), heading=_GENERATED)
    rules = rules_file(FOLDER, SOURCE_UID, runbooks)
    yield "provisioning/alerting/lookup-audit.yaml", yaml_text(rules, heading=_GENERATED)
    metric_rules = metric_rules_file(runbooks)
    yield "prometheus/lookup-audit-rules.yaml", yaml_text(metric_rules, heading=_GENERATED)


def provider() -> dict[str, Any]:
    """The provider that loads the dashboards' folder."""
    return {
        "apiVersion": 1,
        "providers": [
            {
                "name": "lookup-audit",
                "orgId": 1,
                "folder": FOLDER,
                "folderUid": FOLDER_UID,
                "type": "file",
                "disableDeletion": False,
                "allowUiUpdates": False,
                "updateIntervalSeconds": 30,
                "options": {"path": DASHBOARDS_PATH, "foldersFromFilesStructure": False},
            }
        ],
    }


def source() -> dict[str, Any]:
    """The data source; host and password come from Grafana's environment.

    Its ClickHouse user needs ``readonly = 1`` with ``max_execution_time CHANGEABLE_IN_READONLY``:
    the plugin sets that limit with every query.
    """
    return {
        "apiVersion": 1,
        "datasources": [
            {
                "name": SOURCE_NAME,
                "uid": SOURCE_UID,
                "orgId": 1,
                "type": PLUGIN,
                "access": "proxy",
                "editable": False,
                "jsonData": {
                    "host": "$CLICKHOUSE_HOST",
                    "port": 9000,
                    "protocol": "native",
                    "secure": False,
                    "defaultDatabase": "audit",
                    "username": "$CLICKHOUSE_GRAFANA_USER",
                    "dialTimeout": "10",
                    "queryTimeout": "30",
                    "validateSql": False,
                    "enableRowLimit": False,
                },
                "secureJsonData": {"password": "$CLICKHOUSE_GRAFANA_PASSWORD"},
            }
        ],
    }
