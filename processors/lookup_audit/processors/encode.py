"""Messages in, one encoded batch out: decode, validate, audit, lay out in columns.

Pure apart from the clock it is given. Each message ends as exactly one of: a row, or a dead letter
with its reason. One bad message never touches its neighbours.
"""

import json
import logging
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from lookup_audit.processors import columns
from lookup_audit.processors.batch import (
    JUDGEMENT,
    LOOKUP,
    OUTCOME,
    DeadLetter,
    EncodedBatch,
    Message,
    storable_ms,
)
from lookup_audit.processors.columns import Row
from lookup_audit.processors.merge import merge
from lookup_audit.schemas.decode import CODECS, Decoded, guess_outcome_type
from lookup_audit.schemas.errors import Rejected
from lookup_audit.schemas.names import REDACTION_FAILED, EventType, Header, Reason, Topic
from lookup_audit.schemas.ruleset import Registry, stated_ruleset
from lookup_audit.schemas.timeliness import is_late, untimely
from lookup_audit.schemas.verdict import AuditedLookup, audit

logger = logging.getLogger(__name__)

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Encoder:
    """Encodes batches of messages.

    Args:
        clock: Gives the time now.
        retention: Older events are dead-lettered as ``expired``.
        registry: The rulesets that should be in force; replace the attribute to refresh.
    """

    def __init__(
        self,
        *,
        clock: Callable[[], datetime],
        retention: timedelta,
        registry: Registry | None = None,
    ):
        self._clock = clock
        self._retention = retention
        self.registry = registry or Registry()

    def encode(self, messages: Sequence[Message]) -> EncodedBatch:
        """Encode messages in the order given; never raises for any content."""
        try:
            return self._encode(messages)
        except Exception as error:
            # A fault of ours must not stop the partition: the message that shows it is set aside
            # and its neighbours go on.
            if len(messages) == 1:
                logger.exception("A message could not be audited and is dead-lettered.")
                return _failed(messages[0], error)
            half = len(messages) // 2
            return merge([self.encode(messages[:half]), self.encode(messages[half:])])

    def _encode(self, messages: Sequence[Message]) -> EncodedBatch:
        batch = EncodedBatch(messages=len(messages))
        lookups: list[Row[AuditedLookup]] = []
        others: dict[EventType, list[Row[Decoded[Any]]]] = {
            EventType.OUTCOME: [],
            EventType.JUDGEMENT: [],
        }
        now = self._clock()
        for message in messages:
            batch.account_for(message)
            event_type = event_type_of(message)
            received = received_at(message, now)
            decoded = self._decode(message, event_type)
            if not isinstance(decoded, Rejected):
                occurred_at = datetime.fromisoformat(decoded.record.occurred_at)
                decoded = self._timely(decoded, event_type, occurred_at, received)
            if isinstance(decoded, Rejected):
                batch.dead_letters.append(DeadLetter(message, decoded, event_type))
                continue
            late = is_late(occurred_at, now=received)
            if event_type is EventType.LOOKUP:
                lookups.append(Row(audit(decoded, self.registry), message, late))
            else:
                assert event_type is not None, "an accepted event has a type"
                others[event_type].append(Row(decoded, message, late))
        if lookups:
            batch.rows[LOOKUP.name] = columns.lookup_table(lookups)
            batch.rulesets = _rulesets(lookups, self.registry)
        if outcomes := others[EventType.OUTCOME]:
            batch.rows[OUTCOME.name] = columns.outcome_table(outcomes)
        if judgements := others[EventType.JUDGEMENT]:
            batch.rows[JUDGEMENT.name] = columns.judgement_table(judgements)
        return batch

    def _decode(self, message: Message, event_type: EventType | None) -> Decoded[Any] | Rejected:
        if message.value is None:
            return Rejected(Reason.TOMBSTONE, "", "the record has no value (a tombstone)")
        if (Header.REDACTION, REDACTION_FAILED.encode()) in message.headers:
            return Rejected(
                Reason.REDACTION_FAILED,
                "",
                "the event could not be redacted and its content was removed at the door; the "
                "collector's log tells when, and the sender has the event",
            )
        if event_type is None:
            return Rejected(
                Reason.UNKNOWN_TYPE,
                Header.TYPE,
                f"the record's {Header.TYPE} is not one of topic {message.topic}",
            )
        return CODECS[event_type].decode(message.value)

    def _timely(
        self,
        decoded: Decoded[Any],
        event_type: EventType | None,
        occurred_at: datetime,
        received: datetime,
    ) -> Decoded[Any] | Rejected:
        assert event_type is not None, "a decoded event has a type"
        refused = untimely(
            occurred_at,
            now=received,
            retention=self._retention,
            event_id=getattr(decoded.record, CODECS[event_type].id_field),
        )
        return refused or decoded


def _failed(message: Message, error: Exception) -> EncodedBatch:
    batch = EncodedBatch(messages=1)
    batch.account_for(message)
    text = f"the processor failed on this message ({type(error).__name__}); its log tells where"
    rejected = Rejected(Reason.INTERNAL_ERROR, "", text)
    batch.dead_letters.append(DeadLetter(message, rejected, event_type_of(message)))
    return batch


def received_at(message: Message, now: datetime) -> datetime:
    """When the message came in: its own timestamp, so that a replay judges time alike.

    A timestamp ahead of our clock, or none, is not believed.
    """
    if message.timestamp_ms <= 0:
        return now
    return min(_EPOCH + timedelta(milliseconds=storable_ms(message.timestamp_ms)), now)


_TYPE_HEADER = Header.TYPE.value
_RESULT_TYPES = {EventType.LOOKUP.value.encode(): EventType.LOOKUP}
_OUTCOME_TYPES = {t.value.encode(): t for t in (EventType.OUTCOME, EventType.JUDGEMENT)}


def event_type_of(message: Message) -> EventType | None:
    """The type by topic and header; a record without headers is told by its topic and shape."""
    is_result = message.topic == Topic.RESULTS
    for name, value in message.headers:
        if name == _TYPE_HEADER:
            if value is None:
                break
            return (_RESULT_TYPES if is_result else _OUTCOME_TYPES).get(value)
    return EventType.LOOKUP if is_result else guess_outcome_type(message.value or b"")


def _rulesets(lookups: Sequence[Row[AuditedLookup]], registry: Registry) -> dict[str, str]:
    """Content of every ruleset that a verdict of the batch names."""
    known = {ruleset.ruleset_id: ruleset for ruleset in registry.rulesets}
    for thresholds in {row.event.decoded.record.thresholds for row in lookups}:
        stated = stated_ruleset(thresholds) if thresholds is not None else None
        if stated is not None:
            known[stated.ruleset_id] = stated
    named = {row.event.ruleset_id for row in lookups} | {
        row.event.stated_ruleset_id for row in lookups
    }
    return {
        ruleset_id: json.dumps(ruleset.model_dump(), sort_keys=True)
        for ruleset_id, ruleset in known.items()
        if ruleset_id in named
    }
