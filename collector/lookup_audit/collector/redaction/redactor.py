"""An event without what must not be kept: fields hashed or dropped, patterns replaced.

Bytes in, bytes out, before anything is written anywhere. An event in which nothing was found
keeps its bytes. Where this code fails, or cannot read what the decoder would accept, nothing of
the event leaves: see :class:`Withheld`.
"""

import hashlib
import hmac
import json
import logging
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from lookup_audit.collector.redaction.config import RedactionConfig
from lookup_audit.collector.redaction.patterns import scrub
from lookup_audit.collector.redaction.tree import Node, make_tree
from lookup_audit.schemas.decode import CODECS
from lookup_audit.schemas.errors import Rejected
from lookup_audit.schemas.event_paths import REDACTED_PREFIX
from lookup_audit.schemas.names import EventType

logger = logging.getLogger(__name__)

_HASHED = re.compile(r"hmac:[0-9a-f]{32}")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)", re.ASCII)
_LONG_NUMBER: Final = 10**9
_DROPPED: Final = object()
# What a sender puts in the place of an event that it could not redact; a collector knows it.
CONTENT_REMOVED: Final = b'{"lookup_audit":"redaction failed, content removed"}'


@dataclass(frozen=True, slots=True)
class Withheld:
    """An event that could not be redacted; nothing of its content is left."""


class Redactor:
    """Applies one configuration; safe from any thread.

    Args:
        config: Rules, patterns and key.
    """

    def __init__(self, config: RedactionConfig):
        self._key = config.key.get_secret_value().encode()
        self._patterns = config.patterns
        self._tree = make_tree(config.fields)

    def redact(self, raw: bytes, kind: EventType) -> bytes | Withheld:
        """The event as it may be kept; never raises.

        Bytes that are no event for the decoder either come back as they are: they are refused to
        the caller and written nowhere.
        """
        try:
            event = _Reader().read(raw)
            if event is None:
                refused = isinstance(CODECS[kind].decode(raw), Rejected)
                return raw if refused else Withheld()
            return self._redact(raw, event)
        except Exception as error:
            # Without the text: it may quote the event.
            logger.error("An event could not be redacted: %s.", type(error).__name__)
            return Withheld()

    def _redact(self, raw: bytes, event: "_Read") -> bytes:
        changed: set[str] = set()
        members = self._walk(event.members, self._tree, changed)
        if not changed and not event.has_doubles:
            return raw
        if changed:
            flags = sorted(REDACTED_PREFIX + path for path in changed)
            known = members.get("degradations")
            if known is None:
                known = []
            if isinstance(known, list):
                members["degradations"] = known + [f for f in flags if f not in known]
        try:
            return _dumps(members, ascii_only=False).encode()
        except UnicodeEncodeError:
            return _dumps(members, ascii_only=True).encode()

    def _walk(self, value: Any, node: Node, changed: set[str]) -> Any:
        if node.action == "keep":
            return value
        if node.action == "drop" and value is not None:
            changed.add(node.flag)
            return _DROPPED
        if node.action == "hash" and isinstance(value, (dict, list)):
            changed.add(node.flag)
            return self._hash(_dumps(value, ascii_only=True))
        if isinstance(value, dict):
            return self._walk_members(value, node, changed)
        if isinstance(value, list):
            inner = node.child("*")
            walked = [self._walk(member, inner, changed) for member in value]
            return [member for member in walked if member is not _DROPPED]
        if isinstance(value, str):
            # A plain string stands for a query's text.
            place = node.child("text") if node.path == "query" else node
            return self._walk_text(value, place, changed)
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return self._walk_number(value, node, changed)
        return value

    def _walk_members(
        self, members: dict[str, Any], node: Node, changed: set[str]
    ) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, value in members.items():
            key = name
            if not node.knows(name):
                key = scrub(name, self._patterns)
                if key != name:
                    changed.add(node.child(name).flag)
            walked = self._walk(value, node.child(name), changed)
            if walked is not _DROPPED:
                while key in found:
                    key += "_"
                found[key] = walked
        return found

    def _walk_text(self, text: str, node: Node, changed: set[str]) -> Any:
        if node.action == "drop":
            changed.add(node.flag)
            return _DROPPED
        if node.action == "keep" or not text:
            return text
        if text.startswith("hmac:") and _HASHED.fullmatch(text):
            return text
        if node.action == "hash":
            changed.add(node.flag)
            return self._hash(text)
        if text[10:11] == "T" and _TIME.fullmatch(text):
            return text
        scrubbed = scrub(text, self._patterns)
        if scrubbed == text:
            return text
        changed.add(node.flag)
        # Two different ids must stay different.
        return self._hash(text) if node.is_identifier else scrubbed

    def _walk_number(self, value: float, node: Node, changed: set[str]) -> Any:
        """Numbers that the models know are numbers; any other long one may be a card's."""
        if node.kind == "number":
            return value
        if node.action == "hash":
            changed.add(node.flag)
            return self._hash(str(value))
        if abs(value) < _LONG_NUMBER or value != value or value in (float("inf"), -float("inf")):
            return value
        text = str(int(value))
        scrubbed = scrub(text, self._patterns)
        if scrubbed == text:
            return value
        changed.add(node.flag)
        return self._hash(text) if node.is_identifier else scrubbed

    def _hash(self, text: str) -> str:
        data = text.encode("utf-8", "surrogatepass")
        return "hmac:" + hmac.new(self._key, data, hashlib.sha256).hexdigest()[:32]


@lru_cache(maxsize=16)
def redactor_of(config: RedactionConfig) -> Redactor:
    """The redactor of a configuration, made once."""
    return Redactor(config)


@dataclass(frozen=True, slots=True)
class _Read:
    members: dict[str, Any]
    has_doubles: bool


class _Reader:
    """Reads JSON and notices a name that is given twice: only the last would be seen."""

    def __init__(self) -> None:
        self._has_doubles = False

    def read(self, raw: bytes) -> _Read | None:
        """The members of an event, ``None`` where the bytes are no JSON object."""
        try:
            members = json.loads(raw.decode(), object_pairs_hook=self._pairs)
        except (ValueError, RecursionError):
            return None
        return _Read(members, self._has_doubles) if isinstance(members, dict) else None

    def _pairs(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        members = dict(pairs)
        self._has_doubles |= len(members) != len(pairs)
        return members


def _dumps(value: Any, *, ascii_only: bool) -> str:
    return json.dumps(value, ensure_ascii=ascii_only, separators=(",", ":"))
