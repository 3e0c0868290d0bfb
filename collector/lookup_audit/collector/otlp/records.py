"""Mapped events into Kafka records: the same decision and envelope as for native events."""

from typing import Any, Final

import msgspec

from lookup_audit.collector.config import CollectorConfig
from lookup_audit.collector.envelope import ID_FIELDS, TOPICS, Arrival, wrap
from lookup_audit.collector.ingest import decide
from lookup_audit.collector.publishing import OutgoingRecord
from lookup_audit.schemas.errors import Rejected
from lookup_audit.schemas.names import EventType, Header, Reason, SourceDegradation

# Lengths to which texts are cut, one after the other, until the event fits.
_CUTS: Final = (8_000, 2_000, 500, 100, 0)


def make_record(
    kind: EventType, event: dict[str, Any], *, config: CollectorConfig, arrival: Arrival
) -> OutgoingRecord | Rejected:
    """Encode, cut to size where needed, and decide on one event."""
    try:
        raw = msgspec.json.encode(event)
    except UnicodeEncodeError:
        message = "a text of the span holds half of a surrogate pair; cut text at whole characters"
        return Rejected(Reason.INVALID_TEXT, "", message, str(event[ID_FIELDS[kind]]))
    for length in _CUTS:
        if len(raw) <= config.max_event_bytes or kind is not EventType.LOOKUP:
            break
        raw = msgspec.json.encode(_cut(event, length))
    verdict = decide(raw, kind, config=config, arrival=arrival)
    return verdict if isinstance(verdict, Rejected) else wrap(verdict, kind, arrival)


def make_last_resort(kind: EventType, event: dict[str, Any]) -> OutgoingRecord:
    """The record of an event that is refused although its spans were acknowledged.

    The processor refuses it by the same rules and keeps it as a dead letter, where it is seen.
    """
    event_id = str(event[ID_FIELDS[kind]])
    raw = msgspec.json.encode(_printable(event))
    return OutgoingRecord(
        topic=TOPICS[kind],
        key=event_id.encode(),
        value=raw,
        headers=(
            (str(Header.CONTENT_TYPE), b"application/json"),
            (str(Header.ID), event_id.encode()),
            (str(Header.TYPE), str(kind).encode()),
        ),
        event_id=event_id,
    )


def _cut(event: dict[str, Any], length: int) -> dict[str, Any]:
    """The event with its texts cut, and saying so; ids, ranks and scores stay."""
    candidates = [
        {key: _cut_text(key, value, length) for key, value in candidate.items()}
        for candidate in event["candidates"]
    ]
    notes = {*event["degradations"], str(SourceDegradation.CONTENT_CUT)}
    cut = {**event, "candidates": candidates, "truncated": True, "degradations": sorted(notes)}
    if "query" in event:
        # A question is kept longer than any excerpt.
        cut["query"] = {"text": event["query"]["text"][: max(length, 2_000)]}
    return cut


def _cut_text(key: str, value: Any, length: int) -> Any:
    if key in ("excerpt", "metadata", "title", "source", "source_url") and isinstance(value, str):
        return value[:length]
    return value


def _printable(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {_printable(key): _printable(member) for key, member in value.items()}
    return list(map(_printable, value)) if isinstance(value, list) else value
