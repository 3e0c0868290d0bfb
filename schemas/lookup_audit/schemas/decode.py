"""Bytes of one event in, a record or a reason out: the same decision on every way in.

A clean event (canonical names or camelCase throughout, nothing unknown) is decoded by a compiled
decoder in one pass, one with unknown fields in two. Everything else goes through the pydantic
models, whose word is final: they name the field that is wrong, or accept the event as it is meant.
"""

import json
import math
import re
from collections.abc import Callable
from datetime import datetime
from functools import lru_cache
from typing import Any, Generic, Literal, TypeVar, get_args, get_origin

import msgspec
from pydantic import BaseModel, ValidationError

from lookup_audit.schemas import lookup, outcome, records
from lookup_audit.schemas.errors import Rejected
from lookup_audit.schemas.lookup import SCHEMA_VERSION, is_supported, requires_rank
from lookup_audit.schemas.names import Degradation, EventType, Reason
from lookup_audit.schemas.unknown import Unclear, is_plain, unknown_fields, unknown_in_json

R = TypeVar("R", bound=records.Struct)


class Decoded(msgspec.Struct, Generic[R], frozen=True, gc=False):
    """One accepted event.

    Args:
        record: The event.
        raw: The bytes it came in, unchanged.
        unknown_fields: Paths of fields this version does not know, sorted.
        notes: What was odd while reading it.
    """

    record: R
    raw: bytes
    unknown_fields: tuple[str, ...] = ()
    notes: frozenset[Degradation] = frozenset()


class EventCodec(Generic[R]):
    """Decodes the events of one type; create once, use from any thread."""

    def __init__(
        self,
        model: type[BaseModel],
        struct: type[R],
        id_field: str,
        is_sound: Callable[[R], bool],
    ):
        self.model = model
        self.id_field = id_field
        self._is_sound = is_sound
        self._fast: tuple[msgspec.json.Decoder[R], ...] = (
            msgspec.json.Decoder(struct),
            msgspec.json.Decoder(twin(struct, rename="camel", forbid_unknown_fields=True)),
        )
        # Leaves unknown fields out, where they have been found otherwise.
        self._loose: msgspec.json.Decoder[R] = msgspec.json.Decoder(
            twin(struct, rename=None, forbid_unknown_fields=False)
        )

    def decode(self, raw: bytes) -> Decoded[R] | Rejected:
        """Read one event; never raises for any bytes."""
        for decoder in self._fast:
            try:
                record = decoder.decode(raw)
            except (msgspec.MsgspecError, RecursionError):
                continue
            if self._is_sound(record):
                return Decoded(record, raw)
            return self._decode_by_model(raw)
        return self._decode_with_unknown(raw) or self._decode_by_model(raw)

    def _decode_with_unknown(self, raw: bytes) -> Decoded[R] | None:
        """An event that is clean but for fields unknown to this version, else ``None``."""
        try:
            unknown = sorted(unknown_in_json(self.model, msgspec.json.decode(raw)))
            record = self._loose.decode(raw) if unknown else None
        except (msgspec.MsgspecError, RecursionError, Unclear):
            return None
        if record is None or not self._is_sound(record):
            return None
        return Decoded(record, raw, tuple(unknown), _UNKNOWN_NOTED)

    def _decode_by_model(self, raw: bytes) -> Decoded[R] | Rejected:
        notes: set[Degradation] = set()
        try:
            event = self.model.model_validate_json(raw, context=notes)
        except ValidationError as error:
            return self._rejected(raw, error)
        unknown = tuple(sorted(unknown_fields(event)))
        if unknown:
            notes.add(Degradation.UNKNOWN_FIELDS)
        record = self._loose.decode(event.model_dump_json(exclude_none=True))
        return Decoded(record, raw, unknown, frozenset(notes))

    def _rejected(self, raw: bytes, error: ValidationError) -> Rejected:
        value = _loads(raw)
        event_id = _event_id(value, self.id_field)
        first = min(error.errors(include_url=False), key=lambda e: e["type"] == "json_invalid")
        kind = str(first["type"])
        if kind == "json_invalid":
            return _not_json(raw, value, str(first["ctx"].get("error", "")), event_id)
        if value is not _UNREADABLE and not isinstance(value, dict):
            return Rejected(Reason.NOT_AN_OBJECT, "", "an event is a JSON object", event_id)
        context = first.get("ctx", {})
        path = format_path(first["loc"])
        inner = context.get("field")
        if isinstance(inner, str):
            path = f"{path}.{inner}" if path else inner
        given = first["input"]
        if isinstance(given, float) and not math.isfinite(given):
            kind = "finite_number"
        path = path[:_MAX_PATH]
        message = _message(path, first["msg"])[:_MAX_MESSAGE]
        return Rejected(_reason(kind), path, message, event_id)


_UNKNOWN_NOTED = frozenset({Degradation.UNKNOWN_FIELDS})


def twin(
    struct: type[R], *, rename: Literal["camel"] | None, forbid_unknown_fields: bool
) -> type[R]:
    """A subclass of the struct, down to its last member, with other key names or less strict."""
    made: dict[Any, Any] = {}

    def copy(source: Any) -> Any:
        if source not in made:
            made[source] = msgspec.defstruct(
                source.__name__,
                [
                    (f.encode_name, adapt(f.type))
                    if f.default is msgspec.NODEFAULT
                    else (f.encode_name, adapt(f.type), f.default)
                    for f in msgspec.structs.fields(source)
                ],
                rename=rename,
                kw_only=True,
                bases=(source,),
                forbid_unknown_fields=forbid_unknown_fields,
                gc=False,
                frozen=source.__struct_config__.frozen,
            )
        return made[source]

    def adapt(annotation: Any) -> Any:
        if isinstance(annotation, type) and issubclass(annotation, msgspec.Struct):
            return copy(annotation)
        origin, args = get_origin(annotation), get_args(annotation)
        if origin is list:
            return list[adapt(args[0])]  # type: ignore[misc]  # a type built at run time
        if type(None) in args:
            return adapt(next(a for a in args if a is not type(None))) | None
        return annotation

    made_struct: type[R] = copy(struct)
    return made_struct


# At most six digits of fraction: more go through the models, which cut them.
_IS_INSTANT = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}"
    r"(\.[0-9]{1,6})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])"
).fullmatch


def is_real_time(text: str) -> bool:
    """Whether text is surely RFC 3339 and a moment (no month 13, no hour 24, no second 60).

    The first and last year are left to the models: an offset may move them off the calendar.
    """
    if _IS_INSTANT(text) is None:
        return False
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return False
    return 1 < moment.year < 9999 and text[11:13] != "24"


# Documents are few and come again and again.
_is_document_time = lru_cache(maxsize=8192)(is_real_time)


def _known_version(version: str | None) -> bool:
    return version is None or version == SCHEMA_VERSION or is_supported(version)


def _lookup_is_sound(record: records.LookupResult) -> bool:
    if not (_known_version(record.schema_version) and is_real_time(record.occurred_at)):
        return False
    if record.context_pack is not None and not is_plain(record.context_pack):
        return False
    strict = requires_rank(record.schema_version)
    for candidate in record.candidates:
        if strict and candidate.original_rank is None:
            return False
        updated = candidate.document_updated_at
        if updated is not None and not _is_document_time(updated):
            return False
    return True


def _is_sound(record: records.AnswerOutcome | records.Judgement) -> bool:
    return _known_version(record.schema_version) and is_real_time(record.occurred_at)


LOOKUPS = EventCodec(lookup.LookupResult, records.LookupResult, "event_id", _lookup_is_sound)
OUTCOMES = EventCodec(outcome.AnswerOutcome, records.AnswerOutcome, "outcome_id", _is_sound)
JUDGEMENTS = EventCodec(outcome.Judgement, records.Judgement, "judgement_id", _is_sound)

CODECS: dict[EventType, EventCodec[Any]] = {
    EventType.LOOKUP: LOOKUPS,
    EventType.OUTCOME: OUTCOMES,
    EventType.JUDGEMENT: JUDGEMENTS,
}


def guess_outcome_type(raw: bytes) -> EventType:
    """Tell a headerless value of the outcomes topic by its id field."""
    value = _loads(raw)
    if isinstance(value, dict) and ("judgement_id" in value or "judgementId" in value):
        return EventType.JUDGEMENT
    return EventType.OUTCOME


_REASONS = {
    "missing": Reason.MISSING_FIELD,
    "finite_number": Reason.NON_FINITE,
    "literal_error": Reason.INVALID_VALUE,
    "time_format": Reason.INVALID_VALUE,
    "unsupported_version": Reason.UNSUPPORTED_VERSION,
    "conflicting_spellings": Reason.CONFLICTING_SPELLINGS,
    "string_unicode": Reason.INVALID_TEXT,
    "recursion_loop": Reason.INVALID_JSON,
}
# Both travel in headers, and an unknown field's name can be as long as the event.
_MAX_PATH = 512
_MAX_MESSAGE = 2048
_RANGE = re.compile(r"greater_than|less_than|too_long|too_short")


def _reason(kind: str) -> Reason:
    if kind in _REASONS:
        return _REASONS[kind]
    return Reason.OUT_OF_RANGE if _RANGE.search(kind) else Reason.WRONG_TYPE


def _message(path: str, text: str) -> str:
    return f"{path}: {text[0].lower()}{text[1:]}" if path else text


def format_path(location: tuple[int | str, ...]) -> str:
    """A pydantic location as a JSON path.

    >>> format_path(("candidates", 0, "dense_distance"))
    'candidates[0].dense_distance'
    """
    path = ""
    for part in location:
        if isinstance(part, int):
            path += f"[{part}]"
        else:
            path += f".{part}" if path else part
    return path


_UNREADABLE: Any = object()


def _loads(raw: bytes) -> Any:
    try:
        return json.loads(raw)
    except (ValueError, RecursionError):
        return _UNREADABLE


def _event_id(value: Any, id_field: str) -> str:
    if not isinstance(value, dict):
        return ""
    head, *rest = id_field.split("_")
    found = value.get(id_field, value.get(head + "".join(map(str.title, rest))))
    if isinstance(found, (str, int)) and not isinstance(found, bool):
        return str(found)[:128].encode("utf-8", "replace").decode()
    return ""


def _not_json(raw: bytes, value: Any, detail: str, event_id: str) -> Rejected:
    if not raw.strip():
        return Rejected(Reason.EMPTY_VALUE, "", "the value is empty; send a JSON object")
    path = _lone_surrogate(value)
    if path is not None:
        return Rejected(
            Reason.INVALID_TEXT,
            path,
            f"{path}: holds half of a surrogate pair; cut text at whole characters",
            event_id,
        )
    try:
        raw.decode()
    except UnicodeDecodeError as error:
        message = f"the value is not UTF-8 (byte {error.start}); encode JSON as UTF-8"
        return Rejected(Reason.INVALID_TEXT, "", message, event_id)
    return Rejected(Reason.INVALID_JSON, "", f"the value is not JSON: {detail}", event_id)


def _lone_surrogate(value: Any) -> str | None:
    """Path of a text or key with half a surrogate pair; walks without recursion, any depth."""
    pending: list[tuple[str, Any]] = [("", value)]
    while pending:
        path, member = pending.pop()
        if isinstance(member, str):
            if _has_half(member):
                return path
        elif isinstance(member, dict):
            for key in member:
                if _has_half(key):
                    return f"{path}.{key}".lstrip(".").encode("utf-8", "replace").decode()
            path = f"{path}." if path else ""
            pending += [(f"{path}{key}"[:_MAX_PATH], m) for key, m in reversed(member.items())]
        elif isinstance(member, list):
            pending += [(f"{path}[{i}]"[:_MAX_PATH], m) for i, m in enumerate(member)][::-1]
    return None


def _has_half(text: str) -> bool:
    return any("\ud800" <= character <= "\udfff" for character in text)
