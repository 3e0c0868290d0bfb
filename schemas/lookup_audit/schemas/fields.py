"""The strict building blocks of every event model.

Here are the rules that hold for all events: both spellings of a field name, numbers that must be
numbers, ids as text, times with an offset. What fails here is rejected with the path of the
field; nothing is repaired in silence.
"""

import json
import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, timezone
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    AliasChoices,
    AliasGenerator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    PlainSerializer,
    ValidationInfo,
    WithJsonSchema,
    model_validator,
)
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

from lookup_audit.schemas.names import Degradation

MAX_ID_LENGTH = 128
MAX_NAME_LENGTH = 256

RFC3339_PATTERN = r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d+)?(?:Z|[+-]\d{2}:\d{2})$"
_RFC3339 = re.compile(
    r"(\d{4})-(\d{2})-(\d{2})T(\d{2}):(\d{2}):(\d{2})(?:\.(\d+))?(Z|[+-]\d{2}:\d{2})", re.ASCII
)


def parse_instant(value: object) -> datetime:
    """Read an RFC 3339 time; digits below the microsecond are cut, never rounded.

    Raises:
        PydanticCustomError: For numbers, naive times and anything else that is not RFC 3339
            with an offset.

    >>> parse_instant("2026-11-30T12:00:59.999999999Z").second
    59
    """
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise PydanticCustomError("time_format", "the datetime needs a time zone")
        return value.astimezone(UTC)
    match = _RFC3339.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise PydanticCustomError(
            "time_format",
            "must be an RFC 3339 string with an offset, such as 2026-11-30T12:00:00.123Z; "
            "numbers and times without an offset are not taken",
        )
    *parts, fraction, offset = match.groups()
    micros = int(((fraction or "") + "000000")[:6])
    try:
        zone = UTC if offset == "Z" else timezone(_offset(offset))
        year, month, day, hour, minute, second = map(int, parts)
        return datetime(year, month, day, hour, minute, second, micros, zone).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise PydanticCustomError(
            "time_format", "is not a real time: {why}", {"why": str(error)}
        ) from error


def _offset(text: str) -> timedelta:
    sign = -1 if text[0] == "-" else 1
    return sign * timedelta(hours=int(text[1:3]), minutes=int(text[4:6]))


def format_instant(value: datetime) -> str:
    """Write an aware time as RFC 3339 in UTC with microseconds."""
    return value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _exact_text(value: object) -> object:
    # An integer id keeps its exact decimal text: through a float it would lose digits.
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return value


def _overshoot(value: object, info: ValidationInfo) -> object:
    # An exact match computed in float32 comes out a hair above one (1.0000001192092896).
    if isinstance(value, float) and 1.0 < abs(value) <= 1.0 + 1e-6:
        if isinstance(info.context, set):
            info.context.add(Degradation.SIMILARITY_CLAMPED)
        return math.copysign(1.0, value)
    return value


def _finite_json(value: object) -> object:
    if not _is_finite(value):
        raise PydanticCustomError("finite_number", "holds NaN or an infinity")
    return value


Instant = Annotated[
    datetime,
    BeforeValidator(parse_instant),
    PlainSerializer(format_instant, return_type=str),
    WithJsonSchema({"type": "string", "format": "date-time", "pattern": RFC3339_PATTERN}),
]
Id = Annotated[
    str,
    Field(min_length=1, max_length=MAX_ID_LENGTH),
    BeforeValidator(_exact_text, json_schema_input_type=str | int),
]
ChunkId = Annotated[
    str,
    Field(min_length=1, max_length=1024),
    BeforeValidator(_exact_text, json_schema_input_type=str | int),
]
Name = Annotated[str, Field(max_length=MAX_NAME_LENGTH)]
Finite = Annotated[float, Field(allow_inf_nan=False)]
NonNegative = Annotated[float, Field(allow_inf_nan=False, ge=0)]
Unit = Annotated[float, Field(allow_inf_nan=False, ge=0, le=1)]
Similarity = Annotated[
    float,
    Field(
        allow_inf_nan=False,
        ge=-1,
        le=1,
        description="cosine, -1..1; an overshoot of at most 1e-6 is taken as 1",
    ),
    BeforeValidator(_overshoot),
]
Opaque = Annotated[Any, AfterValidator(_finite_json)]
Count = Annotated[int, Field(ge=0, le=2**53)]
Rank = Annotated[int, Field(ge=1, le=2**31)]


def spellings(name: str) -> AliasChoices:
    """Both accepted spellings of a field: snake_case (canonical) and camelCase."""
    return AliasChoices(name, to_camel(name))


class Record(BaseModel):
    """Base of every event part: strict, frozen, both spellings, unknown fields kept.

    Unknown fields stay readable in ``model_extra`` and in the raw JSON; they are counted and never
    a reason to reject.
    """

    model_config = ConfigDict(
        strict=True,
        frozen=True,
        extra="allow",
        allow_inf_nan=False,
        validate_by_name=True,
        validate_by_alias=True,
        alias_generator=AliasGenerator(validation_alias=spellings),
        protected_namespaces=(),
    )

    @model_validator(mode="after")
    def _refuse_what_extras_hide(self) -> "Record":
        for key, value in (self.model_extra or {}).items():
            name = _CANONICAL.get(type(self), {}).get(key)
            if name is not None and not _same(value, getattr(self, name)):
                raise PydanticCustomError(
                    "conflicting_spellings",
                    "{first} and {second} are one field and differ; send only {first}",
                    {"first": name, "second": key, "field": name},
                )
            if not _is_finite(value):
                raise PydanticCustomError(
                    "finite_number", "{key} holds NaN or an infinity", {"field": key, "key": key}
                )
        return self

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        super().__pydantic_init_subclass__(**kwargs)
        names: dict[str, str] = {}
        for name, field in cls.model_fields.items():
            alias = field.validation_alias
            choices = alias.choices if isinstance(alias, AliasChoices) else []
            names |= {choice: name for choice in choices if isinstance(choice, str)}
            names[name] = name
        _CANONICAL[cls] = names


_CANONICAL: dict[type, dict[str, str]] = {}


def known_spellings(model: type[BaseModel]) -> Mapping[str, str]:
    """Every accepted spelling of the model's fields, with the canonical name of each."""
    return _CANONICAL[model]


def _same(raw: JsonValue, parsed: object) -> bool:
    """Whether the other spelling's JSON value says the same as the parsed one."""
    if isinstance(parsed, datetime):
        try:
            return parse_instant(raw) == parsed
        except PydanticCustomError:
            return False
    if isinstance(parsed, BaseModel):
        return isinstance(raw, dict) and _same_dump(raw, parsed)
    if isinstance(parsed, tuple):
        return (
            isinstance(raw, list)
            and len(raw) == len(parsed)
            and all(_same(one, other) for one, other in zip(raw, parsed, strict=True))
        )
    if isinstance(raw, bool) or isinstance(parsed, bool):
        return raw is parsed
    return raw == parsed or (
        isinstance(parsed, str) and isinstance(raw, int) and str(raw) == parsed
    )


def _same_dump(raw: dict[str, JsonValue], parsed: BaseModel) -> bool:
    try:
        return type(parsed).model_validate_json(json.dumps(raw)) == parsed
    except ValueError:
        return False


def _is_finite(value: object) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, dict):
        return all(map(_is_finite, value.values()))
    if isinstance(value, (list, tuple)):
        return all(map(_is_finite, value))
    return True
