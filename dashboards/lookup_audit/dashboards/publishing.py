"""``dashboards publish``: what Grafana has against what would be rendered, and the difference made.

Boards are found by uid, rules by their group: running it twice changes nothing, and what stopped
half-way is finished by running it again.
"""

import difflib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, Protocol

from lookup_audit.dashboards.alert_files import DEFAULT_RUNBOOKS, api_group
from lookup_audit.dashboards.alerts import RULE_GROUPS
from lookup_audit.dashboards.boards import BOARDS
from lookup_audit.dashboards.grafana_json import dashboard

_MESSAGE: Final = "published by lookup-audit dashboards publish"
# What Grafana adds to a model it stores.
_SERVERS_OWN: Final = frozenset({"id", "version", "iteration"})
_RULES_OWN: Final = frozenset({"id", "updated", "provenance"})


class Port(Protocol):
    """What is needed of Grafana; see :class:`lookup_audit.dashboards.grafana.Grafana`."""

    def folder(self, uid: str) -> dict[str, Any] | None: ...  # noqa: D102
    def create_folder(self, uid: str, title: str) -> None: ...  # noqa: D102
    def dashboard(self, uid: str) -> dict[str, Any] | None: ...  # noqa: D102
    def put_dashboard(  # noqa: D102
        self, model: Mapping[str, Any], folder_uid: str, message: str
    ) -> None: ...
    def rule_group(self, folder_uid: str, group: str) -> dict[str, Any] | None: ...  # noqa: D102
    def put_rule_group(self, folder_uid: str, group: Mapping[str, Any]) -> None: ...  # noqa: D102


@dataclass(frozen=True, slots=True)
class Change:
    """One thing and what publishing does to it.

    Args:
        what: Folder, board or group of rules, with its uid or name.
        action: What publishing does.
        difference: Lines of a unified diff, from what is there to what will be.
    """

    what: str
    action: Literal["create", "update", "keep"]
    difference: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Target:
    """Where to publish.

    Args:
        folder_uid: Of the folder; made where it is missing.
        folder_title: For a new folder.
        source_uid: Data source of the alert rules.
        alerts: Whether rules are published too.
        runbooks: Base URL of the runbooks.
    """

    folder_uid: str
    folder_title: str
    source_uid: str
    alerts: bool = True
    runbooks: str = DEFAULT_RUNBOOKS


def publish(port: Port, target: Target, *, dry_run: bool) -> Iterator[Change]:
    """Make Grafana hold what would be rendered; yields each thing once it is done.

    Args:
        port: Grafana.
        target: Where to.
        dry_run: Only say what would be done.
    """
    if port.folder(target.folder_uid) is None:
        if not dry_run:
            port.create_folder(target.folder_uid, target.folder_title)
        yield Change(f"folder {target.folder_uid}", "create")
    for board in BOARDS:
        wanted = dashboard(board)
        found = port.dashboard(board.uid)
        there = None if found is None else _without(found.get("dashboard", {}), _SERVERS_OWN)
        moved = found is not None and (
            found.get("meta", {}).get("folderUid", target.folder_uid) != target.folder_uid
        )
        change = _compare(f"board {board.uid}", there, _without(wanted, _SERVERS_OWN), moved)
        if change.action != "keep" and not dry_run:
            port.put_dashboard(wanted, target.folder_uid, _MESSAGE)
        yield change
    for group in RULE_GROUPS if target.alerts else ():
        wanted = api_group(group, target.folder_uid, target.source_uid, target.runbooks)
        found = port.rule_group(target.folder_uid, group.name)
        change = _compare(
            f"alert rules {group.name}",
            None if found is None else _shared_rules(found, wanted),
            wanted,
        )
        if change.action != "keep" and not dry_run:
            port.put_rule_group(target.folder_uid, wanted)
        yield change


def _compare(
    what: str, there: Mapping[str, Any] | None, wanted: Mapping[str, Any], moved: bool = False
) -> Change:
    if there is None:
        return Change(what, "create")
    if there == wanted:
        return (
            Change(what, "update", ("moved to another folder",)) if moved else Change(what, "keep")
        )
    old, new = (
        json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False).splitlines()
        for value in (there, wanted)
    )
    lines = difflib.unified_diff(old, new, "in Grafana", "to publish", lineterm="", n=1)
    return Change(what, "update", tuple(lines))


def _without(model: Mapping[str, Any], names: frozenset[str]) -> dict[str, Any]:
    return {name: value for name, value in model.items() if name not in names}


def _shared_rules(found: Mapping[str, Any], wanted: Mapping[str, Any]) -> dict[str, Any]:
    """What is there, without what Grafana adds to each rule by itself."""
    known = {name for rule in wanted["rules"] for name in rule}
    return {
        **{name: value for name, value in found.items() if name in wanted},
        "rules": [
            {n: v for n, v in rule.items() if n in known and n not in _RULES_OWN}
            for rule in found.get("rules", ())
        ],
    }
