"""Where text is in an event: every canonical path of the models, with ``*`` for any list member.

Redaction is configured by these paths, and an event says by them what was changed in it.
"""

from collections.abc import Mapping
from datetime import datetime
from functools import cache
from typing import Any, Final, Literal, get_args, get_origin

from pydantic import BaseModel

from lookup_audit.schemas.lookup import LookupResult
from lookup_audit.schemas.outcome import AnswerOutcome, Judgement

Kind = Literal["text", "word", "time", "number", "flag", "opaque", "object", "list"]

# Words of a fixed form, although their type is text.
_WORDS: Final = frozenset({"schema_version"})
REDACTED_PREFIX: Final = "redacted:"
UNKNOWN_FIELD: Final = "unknown_field"


@cache
def event_paths(model: type[BaseModel]) -> Mapping[str, Kind]:
    """Every path below a model, objects and lists themselves included.

    >>> event_paths(Judgement)["judge.id"], event_paths(LookupResult)["candidates.*.excerpt"]
    ('text', 'text')
    """
    found: dict[str, Kind] = {}
    for name, field in model.model_fields.items():
        _add(found, name, field.annotation)
    return found


def _add(found: dict[str, Kind], path: str, annotation: Any) -> None:
    kind, inner = _kind_of(annotation)
    found[path] = "word" if path in _WORDS else kind
    if kind == "object":
        for name, field in inner.model_fields.items():
            _add(found, f"{path}.{name}", field.annotation)
    elif kind == "list":
        _add(found, f"{path}.*", inner)


def _kind_of(annotation: Any) -> tuple[Kind, Any]:
    if isinstance(annotation, type):
        if issubclass(annotation, BaseModel):
            return "object", annotation
        for of, kind in _KINDS.items():
            if issubclass(annotation, of):
                return kind, None
    origin = get_origin(annotation)
    if origin is Literal:
        return "word", None
    if origin is tuple:
        return "list", get_args(annotation)[0]
    for argument in get_args(annotation):
        # Of Annotated the first is the type, of a union with None the only other.
        if argument is not type(None):
            return _kind_of(argument)
    return "opaque", None


# A bool is an int, so that the order matters.
_KINDS: Final[Mapping[type, Kind]] = {
    str: "text",
    bool: "flag",
    int: "number",
    float: "number",
    datetime: "time",
}

# What an event may say was redacted in it: a bounded set, safe as a column's words.
REDACTION_WORDS: Final = frozenset(
    REDACTED_PREFIX + path
    for model in (LookupResult, AnswerOutcome, Judgement)
    for path in (*event_paths(model), UNKNOWN_FIELD)
)
