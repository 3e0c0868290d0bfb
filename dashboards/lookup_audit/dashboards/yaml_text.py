"""YAML out, small: block style, texts quoted as JSON does, long statements as literal blocks.

Only what JSON can hold is written, so nothing of YAML's guessing (``no``, ``1e3``, dates) can
happen to a value.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

# Words that YAML takes for something else (no, on, y, null …) are quoted.
_PLAIN_KEY = re.compile(r"(?!(?:y|n|yes|no|on|off|true|false|null)$)[A-Za-z_][A-Za-z0-9_]*", re.I)
# What a literal block holds without any escape: lines that do not begin or end with a space.
_BLOCK = re.compile(r"[!-~](?:[ -~\n]*[!-~])?")


def yaml_text(value: Any, *, heading: str = "") -> str:
    """A document.

    Args:
        value: Mappings, sequences, texts, numbers, booleans and ``None``.
        heading: Lines put on top as a comment.
    """
    comment = "".join(f"# {line}\n" for line in heading.splitlines())
    return comment + "\n".join(_lines(value)) + "\n"


def _lines(value: Any) -> list[str]:
    if isinstance(value, Mapping) and value:
        return [line for key, inner in value.items() for line in _entry(f"{_key(key)}:", inner)]
    if isinstance(value, Sequence) and not isinstance(value, str) and value:
        return [line for inner in value for line in _item(inner)]
    return [_scalar(value)]


def _entry(key: str, value: Any) -> list[str]:
    if isinstance(value, (Mapping, list, tuple)) and value:
        return [key, *_indented(_lines(value))]
    if isinstance(value, str) and _is_block(value):
        return [f"{key} |-", *_indented(value.split("\n"))]
    return [f"{key} {_scalar(value)}"]


def _item(value: Any) -> list[str]:
    if isinstance(value, str) and _is_block(value):
        return ["- |-", *_indented(value.split("\n"))]
    first, *rest = _lines(value)
    return [f"- {first}", *_indented(rest)]


def _indented(lines: list[str]) -> list[str]:
    return [f"  {line}" if line else line for line in lines]


def _is_block(text: str) -> bool:
    return "\n" in text and _BLOCK.fullmatch(text) is not None


def _key(key: str) -> str:
    return key if _PLAIN_KEY.fullmatch(key) else _scalar(key)


def _scalar(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{}"
    if isinstance(value, (list, tuple)):
        return "[]"
    # JSON is a part of YAML but for what it leaves unescaped: DEL, the C1 controls (NEL among
    # them), line separators and non-characters.
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    return re.sub(
        "[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff\ud800-\udfff]",
        lambda m: f"\\u{ord(m[0]):04x}",
        text,
    )
