"""The body of a request into records to publish and reasons to give: no I/O, no clock of its own.

The decision on each event is that of :mod:`lookup_audit.schemas.decode` and
:mod:`lookup_audit.schemas.timeliness`, the same as on every other way in. Each event of the body
ends up in exactly one of the two lists.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import msgspec

from lookup_audit.collector.config import CollectorConfig
from lookup_audit.collector.envelope import ID_FIELDS, Arrival, wrap
from lookup_audit.collector.publishing import OutgoingRecord
from lookup_audit.collector.redaction import Withheld, redactor_of
from lookup_audit.collector.split import split
from lookup_audit.schemas.decode import CODECS, Decoded
from lookup_audit.schemas.errors import Rejected
from lookup_audit.schemas.fields import parse_instant
from lookup_audit.schemas.names import EventType, Reason
from lookup_audit.schemas.timeliness import untimely

_MEMBERS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_TEXT = msgspec.json.Decoder(str)


@dataclass(slots=True)
class Sorted:
    """What a body came to.

    Args:
        records: The accepted events.
        indices: The place of each in the body.
        rejected: The others, by their place in the body.
        sizes: Bytes of every event, accepted or not.
    """

    records: list[OutgoingRecord] = field(default_factory=list)
    indices: list[int] = field(default_factory=list)
    rejected: dict[int, Rejected] = field(default_factory=dict)
    sizes: list[int] = field(default_factory=list)

    def merge(self, answers: list[Rejected | None]) -> int:
        """Add what the broker said of the records; returns how many it has confirmed."""
        refused = {i: r for i, r in zip(self.indices, answers, strict=True) if r is not None}
        self.rejected |= refused
        return len(self.records) - len(refused)

    def describe_rejected(self) -> list[Mapping[str, str | int]]:
        """The ``rejected`` list of an answer, in the order of the body."""
        return [
            {
                "index": index,
                "event_id": _printable(why.event_id),
                "reason": str(why.reason),
                "field": _printable(why.field),
                "message": _printable(why.message),
            }
            for index, why in sorted(self.rejected.items())
        ]


def sort_events(
    body: bytes, event_type: EventType, *, config: CollectorConfig, arrival: Arrival
) -> Sorted:
    """Split a body and decide on each event.

    Raises:
        TooManyEventsError: The body holds more than ``max_events``.
    """
    parts = split(body, limit=config.max_events)
    result = Sorted(sizes=[len(raw) for raw in parts.events])
    for index, raw in enumerate(parts.events):
        verdict = decide(raw, event_type, config=config, arrival=arrival)
        if isinstance(verdict, Rejected):
            result.rejected[index] = verdict
        else:
            result.indices.append(index)
            result.records.append(wrap(verdict, event_type, arrival))
    if parts.fault:
        result.rejected[len(parts.events)] = Rejected(Reason.INVALID_JSON, "", parts.fault)
    return result


def decide(
    raw: bytes, event_type: EventType, *, config: CollectorConfig, arrival: Arrival
) -> Decoded[Any] | Withheld | Rejected:
    """Accept one event or say why not; never raises for any bytes.

    Where redaction is configured, what comes back is redacted, or withheld where that failed.
    """
    if len(raw) <= config.max_event_bytes and config.redaction is not None:
        redacted = redactor_of(config.redaction).redact(raw, event_type)
        if isinstance(redacted, Withheld):
            return redacted
        raw = redacted
    if len(raw) > config.max_event_bytes:
        message = (
            f"the event has {len(raw)} bytes, more than {config.max_event_bytes}; shorten its texts"
        )
        return Rejected(Reason.TOO_LARGE, "", message, read_event_id(raw, event_type))
    decoded = CODECS[event_type].decode(raw)
    if isinstance(decoded, Rejected):
        return decoded
    refusal = untimely(
        parse_instant(decoded.record.occurred_at),
        now=arrival.received_at,
        retention=timedelta(days=config.retention_days),
        event_id=getattr(decoded.record, ID_FIELDS[event_type]),
    )
    return refusal or decoded


def read_event_id(raw: bytes, event_type: EventType) -> str:
    """The event's id without reading the rest of it, or ``""``."""
    name = ID_FIELDS[event_type]
    first, rest = name.split("_")
    try:
        members = _MEMBERS.decode(raw)
        value = members.get(name) or members.get(first + rest.title())
        return _TEXT.decode(value)[:128] if value else ""
    except (msgspec.MsgspecError, RecursionError):
        return ""


def _printable(text: str) -> str:
    # A member name with half a surrogate pair may be quoted here, and cannot be encoded.
    return text.encode("utf-8", "replace").decode()
