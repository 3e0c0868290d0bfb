"""Alert rules as Grafana's provisioning file and as the body of its API: one model, two spellings.

Labels and titles of a file are expanded by Grafana from its environment, so their ``$`` is
doubled there; statements and annotations are not.
"""

from typing import Any, Final

from lookup_audit.dashboards.alerts import RULE_GROUPS, Group, Rule
from lookup_audit.dashboards.grafana_json import PLUGIN, PLUGIN_VERSION

DEFAULT_RUNBOOKS: Final = "https://lookup-audit.example/runbooks"
# A label set that vanishes resolves after so many evaluations without it.
_MISSING_EVALS: Final = 3
_KEEP_FIRING: Final = "5m"
# Rows of the last minute may still be on their way.
_LATEST_SECONDS: Final = 60


def rules_file(folder: str, source_uid: str, runbooks: str = DEFAULT_RUNBOOKS) -> dict[str, Any]:
    """The provisioning file of all groups.

    Args:
        folder: Title of the folder.
        source_uid: Data source of the statements.
        runbooks: Base URL of the runbooks.
    """
    return {
        "apiVersion": 1,
        "groups": [
            {
                "orgId": 1,
                "name": group.name,
                "folder": folder,
                "interval": f"{group.interval_seconds}s",
                "rules": [_file_rule(rule, source_uid, runbooks) for rule in group.rules],
            }
            for group in RULE_GROUPS
        ],
    }


def api_group(
    group: Group, folder_uid: str, source_uid: str, runbooks: str = DEFAULT_RUNBOOKS
) -> dict[str, Any]:
    """The body of ``PUT …/rule-groups/<group>``."""
    return {
        "title": group.name,
        "folderUid": folder_uid,
        "interval": group.interval_seconds,
        "rules": [
            _common(rule, source_uid, runbooks)
            | {
                "folderUID": folder_uid,
                "ruleGroup": group.name,
                "orgID": 1,
                "keep_firing_for": _KEEP_FIRING,
                "missingSeriesEvalsToResolve": _MISSING_EVALS,
            }
            for rule in group.rules
        ],
    }


def _file_rule(rule: Rule, source_uid: str, runbooks: str) -> dict[str, Any]:
    made = _common(rule, source_uid, runbooks)
    # Annotations link the panel where rules come by the API.
    for name in ("__dashboardUid__", "__panelId__"):
        del made["annotations"][name]
    return made | {
        "title": rule.title.replace("$", "$$"),
        "labels": {name: value.replace("$", "$$") for name, value in made["labels"].items()},
        "dashboardUid": rule.board,
        "panelId": rule.panel,
        "keepFiringFor": _KEEP_FIRING,
        "missing_series_evals_to_resolve": _MISSING_EVALS,
    }


def _common(rule: Rule, source_uid: str, runbooks: str) -> dict[str, Any]:
    span = {"from": rule.range_seconds + _LATEST_SECONDS, "to": _LATEST_SECONDS}
    expression = {"type": "__expr__", "uid": "__expr__"}
    return {
        "uid": rule.uid,
        "title": rule.title,
        "condition": "C",
        "data": [
            {
                "refId": "A",
                "relativeTimeRange": span,
                "datasourceUid": source_uid,
                "model": {
                    "refId": "A",
                    "datasource": {"type": PLUGIN, "uid": source_uid},
                    "editorType": "sql",
                    "queryType": "table",
                    "format": 1,
                    "pluginVersion": PLUGIN_VERSION,
                    "intervalMs": 60000,
                    "maxDataPoints": 43200,
                    "rawSql": rule.sql,
                },
            },
            {
                "refId": "C",
                "relativeTimeRange": span,
                "datasourceUid": "__expr__",
                "model": {
                    "refId": "C",
                    "type": "threshold",
                    "expression": "A",
                    "datasource": expression,
                    "conditions": [{"evaluator": {"type": "gt", "params": [rule.above]}}],
                    "intervalMs": 60000,
                    "maxDataPoints": 43200,
                },
            },
        ],
        "noDataState": rule.no_data,
        # An error has an alert of its own: a rule that cannot run must not look like a finding.
        "execErrState": "Error",
        "for": rule.for_,
        "annotations": {
            "summary": rule.summary,
            "runbook_url": f"{runbooks.rstrip('/')}/{rule.uid}",
            "no_data": rule.no_data_because,
            "__dashboardUid__": rule.board,
            "__panelId__": str(rule.panel),
        },
        "labels": {"severity": rule.severity, "team": "lookup-audit"},
        "isPaused": False,
    }
