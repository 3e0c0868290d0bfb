"""A JSON Schema check just large enough for the published documents."""

import re
from collections.abc import Iterator
from typing import Any

_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "number": (int, float),
    "integer": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}
ANNOTATIONS = {"$schema", "$id", "$defs", "title", "description", "default", "format"}
KEYWORDS = ANNOTATIONS | {
    "$ref",
    "additionalProperties",
    "anyOf",
    "const",
    "enum",
    "exclusiveMinimum",
    "if",
    "items",
    "maxLength",
    "maximum",
    "minItems",
    "minLength",
    "minimum",
    "pattern",
    "properties",
    "required",
    "then",
    "type",
}


def violations(value: Any, schema: Any, root: Any, path: str = "$") -> Iterator[str]:
    """Yield what of a JSON value a schema forbids, with the place."""
    if "$ref" in schema:
        target = root["$defs"][schema["$ref"].removeprefix("#/$defs/")]
        yield from violations(value, target, root, path)
    if "anyOf" in schema and all(any(violations(value, s, root)) for s in schema["anyOf"]):
        yield f"{path}: fits none of the alternatives"
    if "type" in schema and not _is_type(value, schema["type"]):
        yield f"{path}: is not of type {schema['type']}"
        return
    if "enum" in schema and value not in schema["enum"]:
        yield f"{path}: is not one of {schema['enum']}"
    if "if" in schema and not any(violations(value, schema["if"], root)):
        yield from violations(value, schema["then"], root, path)
    if isinstance(value, str):
        yield from _text_violations(value, schema, path)
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield from _number_violations(value, schema, path)
    elif isinstance(value, list):
        if len(value) < schema.get("minItems", 0):
            yield f"{path}: has too few items"
        for index, item in enumerate(value):
            yield from violations(item, schema.get("items", {}), root, f"{path}[{index}]")
    elif isinstance(value, dict):
        known = schema.get("properties", {})
        yield from (
            f"{path}: lacks {name}" for name in schema.get("required", ()) if name not in value
        )
        for name, member in value.items():
            if name in known:
                yield from violations(member, known[name], root, f"{path}.{name}")
            elif schema.get("additionalProperties") is False:
                yield f"{path}: may not have {name}"


def keywords(schema: Any) -> Iterator[str]:
    """Every keyword a schema uses, at any depth."""
    for keyword, inner in schema.items():
        yield keyword
        if keyword in ("properties", "$defs"):
            for member in inner.values():
                yield from keywords(member)
        elif keyword in ("items", "if", "then"):
            yield from keywords(inner)
        elif keyword == "anyOf":
            for member in inner:
                yield from keywords(member)


def _is_type(value: Any, name: str) -> bool:
    if isinstance(value, bool):
        return name == "boolean"
    if name == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, _TYPES[name])


def _text_violations(value: str, schema: Any, path: str) -> Iterator[str]:
    if not schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", len(value)):
        yield f"{path}: is too short or too long"
    if "pattern" in schema and not re.search(schema["pattern"], value):
        yield f"{path}: does not match {schema['pattern']}"


def _number_violations(value: float, schema: Any, path: str) -> Iterator[str]:
    if not schema.get("minimum", value) <= value <= schema.get("maximum", value):
        yield f"{path}: is out of range"
    if "exclusiveMinimum" in schema and value <= schema["exclusiveMinimum"]:
        yield f"{path}: is not above {schema['exclusiveMinimum']}"
