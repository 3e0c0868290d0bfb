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
from functools import lru_cache
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
    TypeAdapter,
    ValidationInfo,
    WithJsonSchema,
    model_validator,
)
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

from lookup_audit.schemas.names import Degradation

MAX_ID_LENGTH = 128
MAX_NAME_LENGTH = 256

RFC3339_PATTERN = (
    r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}"
    r"(\.[0-9]+)?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$"
)
_RFC3339 = re.compile(
    r"(\d{4})-(\d{2})-(\d{2})T(\d{2}):(\d{2}):(\d{2})(?:\.(\d+))?"
    r"(Z|[+-](?:[01]\d|2[0-3]):[0-5]\d)",
    re.ASCII,
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
    text = value.astimezone(UTC).isoformat(timespec="microseconds")
    return text.removesuffix("+00:00") + "Z"


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


def _whole(value: object) -> object:
    # JSON has one kind of number: 4.0 is the integer 4, as it is for JSON Schema.
    return int(value) if isinstance(value, float) and value.is_integer() else value


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
_IdText = Annotated[str, Field(min_length=1, max_length=MAX_ID_LENGTH)]
_ChunkIdText = Annotated[str, Field(min_length=1, max_length=1024)]
Id = Annotated[_IdText, BeforeValidator(_exact_text, json_schema_input_type=_IdText | int)]
ChunkId = Annotated[
    _ChunkIdText, BeforeValidator(_exact_text, json_schema_input_type=_ChunkIdText | int)
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
_INT64: dict[str, JsonValue] = {"format": "int64"}
Count = Annotated[int, Field(ge=0, le=2**53, json_schema_extra=_INT64), BeforeValidator(_whole)]
Rank = Annotated[int, Field(ge=1, le=2**31, json_schema_extra=_INT64), BeforeValidator(_whole)]


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
    def _refuse_what_extras_hide(self, info: ValidationInfo) -> "Record":
        for key, value in (self.model_extra or {}).items():
            name = _CANONICAL[type(self)].get(key)
            if name is not None and value is not None:
                self._merge_spelling(name, key, value, info)
            if not _is_finite(value):
                raise PydanticCustomError(
                    "finite_number", "{key} holds NaN or an infinity", {"field": key, "key": key}
                )
        return self

    def _merge_spelling(self, name: str, key: str, value: JsonValue, info: ValidationInfo) -> None:
        # Null says the same as absent, so that it never contradicts the other spelling.
        mine = getattr(self, name)
        try:
            other = _field_adapter(type(self), name).validate_json(
                json.dumps(value), context=info.context
            )
        except ValueError:
            other = _DIFFERENT
        if mine is None and other is not _DIFFERENT:
            self.__dict__[name] = other
        elif other != mine:
            raise PydanticCustomError(
                "conflicting_spellings",
                "{first} and {second} are one field and differ; send only {first}",
                {"first": name, "second": key, "field": name},
            )

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
_DIFFERENT: Any = object()


def known_spellings(model: type[BaseModel]) -> Mapping[str, str]:
    """Every accepted spelling of the model's fields, with the canonical name of each."""
    return _CANONICAL[model]


@lru_cache(maxsize=256)
def _field_adapter(model: type[BaseModel], name: str) -> TypeAdapter[Any]:
    field = model.model_fields[name]
    config = ConfigDict(strict=True, allow_inf_nan=False)
    is_model = isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel)
    annotation: Any = field.annotation
    if field.metadata:
        annotation = Annotated[(annotation, *field.metadata)]
    return TypeAdapter(annotation, config=None if is_model else config)


def _is_finite(value: object) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, dict):
        return all(map(_is_finite, value.values()))
    if isinstance(value, (list, tuple)):
        return all(map(_is_finite, value))
    return True
