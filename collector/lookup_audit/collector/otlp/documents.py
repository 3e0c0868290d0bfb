"""Retrieved documents in every shape the dialects write them, as one.

OpenInference flattens a list into attributes (``retrieval.documents.<i>.document.id``); others send
JSON text, or a structured value. The index is the rank: gaps stay gaps, and ``10`` comes after
``2``.
"""

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from lookup_audit.collector.otlp.spans import Attributes, is_vector, number_of, text_of

REDACTED: Final = "__REDACTED__"
_INDEXED: Final = re.compile(r"(0|[1-9][0-9]{0,5})\.(?:document\.)?(.+)")
# What a dialect may call a member, the most specific first.
_IDS: Final = ("id", "chunk_id", "id_", "node_id")
_TEXTS: Final = ("content", "page_content", "text", "document")
_SCORES: Final = ("score", "relevance_score", "distance")


class Document(msgspec.Struct):
    """One document as told; ``index`` counts from 0.

    Args:
        index: Its place in the list.
        id: The source's id of the chunk, or ``""``.
        content: Its text, or ``None`` where unknown or redacted.
        score: The source's number, NaN included, or ``None``.
        score_name: What the source called the number.
        metadata: Its metadata as text, or ``""``.
        facts: The metadata read, empty where it is not readable.
        url: The document's own address, or ``""``.
        title: Its name, or ``""``.
        is_redacted: Something of it is redacted.
        unreadable: The metadata is not JSON.
    """

    index: int
    id: str = ""
    content: str | None = None
    score: float | None = None
    score_name: str = ""
    metadata: str = ""
    facts: dict[str, Any] = {}
    url: str = ""
    title: str = ""
    is_redacted: bool = False
    unreadable: bool = False


def read_json(value: Any) -> Any:
    """JSON text as a value, ``None`` where it is none; a value that is not text as it is."""
    if not isinstance(value, str):
        return value
    try:
        return msgspec.json.decode(value)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        pass
    try:
        # Python's own writer puts NaN where JSON has no word for it.
        return json.loads(value) if "NaN" in value or "Infinity" in value else None
    except (ValueError, RecursionError):
        return None


def flattened(attributes: Attributes, prefix: str) -> list[Document] | None:
    """Documents under ``<prefix>.<i>.…``, or in ``<prefix>`` itself; ``None`` without either."""
    whole = attributes.get(prefix)
    if whole is not None and whole != REDACTED:
        listed = read_json(whole)
        if isinstance(listed, list):
            return from_list(listed)
    parts: dict[int, dict[str, Any]] = {}
    start = prefix + "."
    skip = len(start)
    for key, value in attributes.items():
        if key.startswith(start):
            match = _INDEXED.fullmatch(key, skip)
            if match:
                parts.setdefault(int(match[1]), {})[match[2]] = value
    if not parts:
        return None
    return [make_document(index, parts[index]) for index in sorted(parts)]


def from_list(items: Iterable[Any]) -> list[Document]:
    """Documents of a list of objects, or of JSON texts of objects."""
    documents = []
    for index, item in enumerate(items):
        members = read_json(item)
        documents.append(make_document(index, members if isinstance(members, dict) else {}))
    return documents


def make_document(index: int, members: Mapping[str, Any]) -> Document:
    """One document from its members, however named."""
    inner = members.get("node")
    if isinstance(inner, dict):
        members = {**inner, **{k: v for k, v in members.items() if k != "node"}}
    members = {key.removeprefix("document."): value for key, value in members.items()}
    content = _first(members, _TEXTS)
    score_name = next((name for name in _SCORES if number_of(members.get(name)) is not None), "")
    document = Document(
        index,
        id=text_of(_first(members, _IDS)),
        content=content if isinstance(content, str) else None,
        score=number_of(members.get(score_name)),
        score_name=score_name,
        url=text_of(members.get("url")),
        title=text_of(members.get("name")) or text_of(members.get("title")),
    )
    _read_metadata(document, members.get("metadata"))
    if REDACTED in (document.id, document.content, document.metadata, document.url):
        document.is_redacted = True
        document.id = "" if document.id == REDACTED else document.id
        document.content = None if document.content == REDACTED else document.content
        document.metadata = "" if document.metadata == REDACTED else document.metadata
        document.url = "" if document.url == REDACTED else document.url
    return document


def _read_metadata(document: Document, value: Any) -> None:
    if value is None:
        return
    if value == REDACTED:
        document.metadata = REDACTED
        return
    facts = read_json(value)
    if not isinstance(facts, dict):
        document.metadata = value if isinstance(value, str) else ""
        document.unreadable = True
        return
    kept = {key: fact for key, fact in facts.items() if not _is_vector(key, fact)}
    document.facts = kept
    if isinstance(value, str) and len(kept) == len(facts):
        document.metadata = value
    elif kept:
        document.metadata = json.dumps(kept, ensure_ascii=False)


def _is_vector(key: str, value: Any) -> bool:
    return isinstance(value, list) and bool(value) and is_vector(key, value, len(value))


def _first(members: Mapping[str, Any], names: Iterable[str]) -> Any:
    return next((members[name] for name in names if members.get(name) not in (None, "")), None)


def gaps(documents: list[Document]) -> int:
    """How many places before the last document's have none.

    >>> gaps([Document(0), Document(2)])
    1
    """
    return documents[-1].index + 1 - len(documents) if documents else 0
