"""What travels through the emitter: one event, packed on the caller's thread, JSON from then on.

Packing takes a copy, so that a caller may go on using its event, and costs a third of writing
JSON. MessagePack keeps what JSON has no word for (NaN), so that nothing is repaired in silence.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec
from pydantic import BaseModel

from lookup_audit.schemas.names import EventType


@dataclass(frozen=True, slots=True)
class Entry:
    """One event on its way.

    Args:
        kind: What it is.
        value: Packed in the queue; the event's JSON in backlog, spool and transport.
    """

    kind: EventType
    value: bytes


def _plain(value: Any) -> Any:
    """Numbers and arrays of numeric libraries as Python's own; models as their members."""
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", exclude_none=True)
    for name in ("tolist", "item"):
        convert = getattr(value, name, None)
        if callable(convert):
            return convert()
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")


_PACK: Final = msgspec.msgpack.Encoder(enc_hook=_plain)
_UNPACK: Final = msgspec.msgpack.Decoder(strict=False)
_JSON: Final = msgspec.json.Encoder()


def pack(event: Mapping[str, Any]) -> bytes:
    """A copy of the event in few bytes.

    Raises:
        TypeError: It holds something that is no data.
        ValueError: Its numbers or texts cannot be written (half a surrogate pair, 65 bits), or it
            is nested without end.
    """
    try:
        return _PACK.encode(event)
    except (UnicodeEncodeError, OverflowError):
        # The other writer has words for these; the receiver then refuses them by their path.
        text = json.dumps(event, default=_plain).encode()
        return _PACK.encode(text)
    except RecursionError as error:
        raise ValueError("the event is nested without end") from error


def to_json(packed: bytes) -> bytes:
    """The packed event as JSON; NaN and infinities are written as such, to be refused by path.

    >>> to_json(pack({"a": [1, float("nan")]}))
    b'{"a":[1,NaN]}'
    """
    value = _UNPACK.decode(packed)
    if isinstance(value, bytes):
        return value
    if _is_finite(value):
        return _JSON.encode(value)
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str).encode()


def _is_finite(value: object) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, dict):
        return all(map(_is_finite, value.values()))
    return all(map(_is_finite, value)) if isinstance(value, list) else True
