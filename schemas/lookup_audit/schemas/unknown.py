"""Fields that this version does not know: named by their path, never a reason to reject.

They are found in an event the models have read, or, sooner, in its plain JSON: there the answer is
only given where the models could have nothing to add.
"""

import math
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, get_args

from pydantic import BaseModel

from lookup_audit.schemas.fields import known_spellings


def unknown_fields(value: Any, path: str = "") -> Iterator[str]:
    """Paths of unknown fields of an event that was read into its model."""
    if isinstance(value, BaseModel):
        known = known_spellings(type(value))
        for key, member in (value.model_extra or {}).items():
            if key not in known:
                yield from _unknown(key, member, path)
        for name in type(value).model_fields:
            yield from unknown_fields(getattr(value, name), f"{path}.{name}" if path else name)
    elif isinstance(value, tuple):
        for index, member in enumerate(value):
            yield from unknown_fields(member, f"{path}[{index}]")


class Unclear(Exception):
    """Only the models can tell what this JSON means."""


def unknown_in_json(model: type[BaseModel], value: Any, path: str = "") -> Iterator[str]:
    """Paths of unknown fields of an event in plain JSON, in its canonical spelling.

    Raises:
        Unclear: A field is spelled otherwise, or an unknown value is one the models may refuse.
    """
    if not isinstance(value, dict):
        return
    inner_models, known = _inner_models(model), known_spellings(model)
    for key, member in value.items():
        if key in inner_models:
            inner = inner_models[key]
            if inner is None or not member:
                continue
            where = f"{path}.{key}" if path else key
            if isinstance(member, list):
                for index, one in enumerate(member):
                    yield from unknown_in_json(inner, one, f"{where}[{index}]")
            else:
                yield from unknown_in_json(inner, member, where)
        elif key in known or not is_plain(member):
            raise Unclear
        else:
            yield from _unknown(key, member, path)


def is_plain(value: object, depth: int = 100) -> bool:
    """Whether an opaque value is finite and nests no deeper than both decoders read.

    The models read 200 levels.
    """
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, dict):
        return depth > 0 and all(is_plain(member, depth - 1) for member in value.values())
    if isinstance(value, list):
        return depth > 0 and all(is_plain(member, depth - 1) for member in value)
    return True


@lru_cache(maxsize=64)
def _inner_models(model: type[BaseModel]) -> dict[str, type[BaseModel] | None]:
    """Canonical names of a model's fields, with the model of those that have members."""
    return {name: _model_in(field.annotation) for name, field in model.model_fields.items()}


def _model_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next(filter(None, map(_model_in, get_args(annotation))), None)


def _unknown(key: str, member: Any, path: str) -> Iterator[str]:
    inner = f"{path}.{key}" if path else key
    yield inner
    if inner.startswith("projection."):
        yield from _members(member, inner)


def _members(value: Any, path: str) -> Iterator[str]:
    """Paths of everything inside an unknown value: a leak may sit at any depth of a projection."""
    if isinstance(value, dict):
        for key, member in value.items():
            yield f"{path}.{key}"
            yield from _members(member, f"{path}.{key}")
    elif isinstance(value, list):
        for index, member in enumerate(value):
            yield from _members(member, f"{path}[{index}]")
