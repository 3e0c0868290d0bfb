"""The redaction rules laid out along an event, so that a walk looks each name up once."""

import re
from collections.abc import Mapping
from typing import Final, Literal

from pydantic.alias_generators import to_camel

from lookup_audit.collector.redaction.config import KNOWN, Action, forbidden
from lookup_audit.schemas.event_paths import UNKNOWN_FIELD, Kind

NodeAction = Literal["hash", "drop", "keep", "scan"]
NodeKind = Kind | Literal["unknown"]

# What the agent saw is a copy of what the service knew: a rule for one is a rule for both.
_COPIES: Final[Mapping[str, str]] = {
    "projection.query": "query.text",
    "projection.tool_call_id": "tool_call_id",
    "projection.completeness_hint": "completeness_hint",
    **{
        f"projection.evidence.*.{name}": f"candidates.*.{name}"
        for name in ("source", "source_url", "title", "breadcrumb", "excerpt")
    },
    "projection.evidence.*.document_id": "candidates.*.chunk_id",
    "selected_chunk_ids.*": "candidates.*.chunk_id",
    "rerank_trace.moves.*.chunk_id": "candidates.*.chunk_id",
    "claims.*.cited_chunk_ids.*": "candidates.*.chunk_id",
    "claims.*.cited_source_urls.*": "candidates.*.source_url",
    "lookup_event_ids.*": "event_id",
}
_OTHER_NAMES: Final = {"evidence_blocks": "candidates", "evidenceBlocks": "candidates"}
_IDENTIFIER = re.compile(r"(?:^|_)ids?(?:\.\*)?$|(?:^|\.)tenant$")
_UPPER = re.compile(r"(?<=[a-z0-9])([A-Z])")


class Node:
    """One place of an event.

    Args:
        path: Canonical, with ``*`` for list members.
        kind: What stands there, ``unknown`` where the models do not know the place.
        rules: Every rule, by path.
    """

    __slots__ = ("_children", "_rules", "action", "is_identifier", "kind", "path")

    def __init__(self, path: str, kind: NodeKind, rules: Mapping[str, Action]):
        self.path = path
        self.kind = kind
        self._rules = rules
        self._children: dict[str, Node] = {}
        self.action: NodeAction = _action(path, rules)
        self.is_identifier = kind != "unknown" and _IDENTIFIER.search(path) is not None

    @property
    def flag(self) -> str:
        """How an event says that something here was changed."""
        return UNKNOWN_FIELD if self.kind == "unknown" else self.path

    def child(self, name: str) -> "Node":
        """The place of a member, by either spelling; ``*`` for those of a list."""
        found = self._children.get(name)
        if found is None:
            # Not kept: unknown names come from outside and have no end.
            inner = _UPPER.sub(lambda match: "_" + match[1].lower(), name)
            path = f"{self.path}.{inner}" if self.path else inner
            return Node(path, "unknown", self._rules)
        return found

    def knows(self, name: str) -> bool:
        """Whether the models know a member of this name."""
        return name in self._children

    def _add(self, name: str, node: "Node") -> None:
        self._children[name] = self._children[to_camel(name)] = node


def make_tree(rules: Mapping[str, Action]) -> Node:
    """The root of all places that the models know."""
    root = Node("", "object", rules)
    nodes = {"": root}
    for path, kind in KNOWN.items():
        parent, _, name = path.rpartition(".")
        node = nodes[path] = nodes.get(path) or Node(path, kind, rules)
        nodes[parent]._add(name, node)
    for name, canonical in _OTHER_NAMES.items():
        root._children[name] = nodes[canonical]
    return root


def _action(path: str, rules: Mapping[str, Action]) -> NodeAction:
    """The most specific rule for a path; a copy without one follows its original."""
    if not rules or not path:
        return "scan"
    parts = path.split(".")
    best: tuple[tuple[int, int], NodeAction] | None = None
    for rule, action in rules.items():
        specific = _matches(rule.split("."), parts)
        # A wildcard takes what it may and leaves the rest.
        if specific is None or forbidden(path, action):
            continue
        if best is None or specific > best[0]:
            best = (specific, action)
    if best is None and path in _COPIES:
        return _action(_COPIES[path], rules)
    return best[1] if best is not None else "scan"


def _matches(rule: list[str], path: list[str]) -> tuple[int, int] | None:
    """How specific a rule is for a path, or ``None`` where it says nothing of it."""
    if rule[-1] == "**":
        rule, rest = rule[:-1], path[len(rule) - 1 :]
        if not rest:
            return None
        path = path[: len(rule)]
    elif len(rule) != len(path):
        return None
    if any(r not in (p, "*") for r, p in zip(rule, path, strict=False)) or len(path) < len(rule):
        return None
    return len(rule), sum(r == p for r, p in zip(rule, path, strict=True))
