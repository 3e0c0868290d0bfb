"""What one span says of a retrieval, whatever its dialect: the part that all dialects share."""

from typing import Any

import msgspec

from lookup_audit.collector.otlp.documents import REDACTED, Document, read_json
from lookup_audit.collector.otlp.spans import Attributes, Span, text_of
from lookup_audit.schemas.names import SourceDegradation, SourceFormat


class Reading(msgspec.Struct):
    """One span's facts; everything unknown is ``None`` or empty.

    Args:
        span: The span.
        dialect: Whose words were read.
        query: What was searched for.
        query_redacted: The query was there and is hidden.
        documents: What was found; ``None`` if the span does not say, empty if nothing was found.
        inputs: What a reranker was given.
        top_k: How many were asked for.
        model: Embedding model of a retriever, model of a reranker.
        class_name: Name of the retriever, for a guess at its mode.
        data_source: What was searched.
        notes: What the span could not tell.
    """

    span: Span
    dialect: SourceFormat
    query: str | None = None
    query_redacted: bool = False
    documents: list[Document] | None = None
    inputs: list[Document] | None = None
    top_k: int | None = None
    model: str = ""
    class_name: str = ""
    data_source: str = ""
    notes: set[SourceDegradation] = set()

    def set_query(self, value: Any) -> None:
        """Take the query, or note that it is hidden; the first one told wins."""
        if value == REDACTED:
            self.query_redacted = True
        elif self.query is None and isinstance(value, str) and value:
            self.query = value

    @property
    def is_redacted(self) -> bool:
        """Whether some document is hidden."""
        return any(d.is_redacted for d in (self.documents or []) + (self.inputs or []))


def query_of_json(value: Any) -> str | None:
    """The query among a call's arguments, by the names the frameworks use."""
    arguments = read_json(value)
    if not isinstance(arguments, dict):
        return None
    for name in ("query", "str_or_query_bundle", "query_bundle", "query_str", "input", "text"):
        found = arguments.get(name)
        if isinstance(found, dict):
            found = found.get("query_str")
        if isinstance(found, str) and found:
            return found
    return None


def suspect_value_limit(attributes: Attributes) -> bool:
    """Whether texts were cut by a limit: the longest ones are equally long and some JSON broke.

    The SDK counts dropped attributes, but not cut ones.
    """
    texts = [value for value in attributes.values() if isinstance(value, str)]
    longest = max(map(len, texts), default=0)
    cut = [text for text in texts if len(text) == longest]
    return len(cut) > 1 and any(t[:1] in "{[" and read_json(t) is None for t in cut)


def facts_of(attributes: Attributes, name: str) -> dict[str, Any]:
    """A JSON object in an attribute, empty where there is none."""
    facts = read_json(attributes.get(name))
    return facts if isinstance(facts, dict) else {}


def first_text(attributes: Attributes, *names: str) -> str:
    """The first of several attributes that is told and not hidden."""
    for name in names:
        value = attributes.get(name)
        if value is not None and value != REDACTED:
            text = value if type(value) is str else text_of(value)
            if text:
                return text
    return ""
