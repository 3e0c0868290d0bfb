"""What travels between the processor's steps: messages in, one encoded batch out.

An :class:`EncodedBatch` holds nothing but bytes, numbers and Arrow columns, so that it can be made
in one process and stored by another.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec
import pyarrow as pa

from lookup_audit.schemas.errors import Rejected
from lookup_audit.schemas.names import EventType


class Message(msgspec.Struct, frozen=True, gc=False):
    """One Kafka record as it came.

    Args:
        timestamp_ms: Broker or producer time in milliseconds since 1970.
    """

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...] = ()


def storable_ms(timestamp_ms: int) -> int:
    """A record's timestamp within the years a table's partition key can hold (1970 to 2099).

    A producer may stamp anything, and -1 stands for none.
    """
    return min(max(timestamp_ms, 0), 4_102_444_799_999)


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A message that cannot become a row, with the reason."""

    message: Message
    rejected: Rejected
    event_type: EventType | None = None


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of event in the store.

    Args:
        name: Kind as ``event_ids`` names it.
        table: Qualified table name.
        id_column: Column of the producer's id.
    """

    name: str
    table: str
    id_column: str


LOOKUP = Kind("lookup", "audit_store.lookups", "event_id")
OUTCOME = Kind("outcome", "audit_store.outcomes", "outcome_id")
JUDGEMENT = Kind("judgement", "audit_store.judgements", "judgement_id")
KINDS = (LOOKUP, OUTCOME, JUDGEMENT)


@dataclass(slots=True)
class EncodedBatch:
    """Everything one flush stores, and the offsets it settles.

    Args:
        rows: Per kind name, the columns of its accepted events.
        dead_letters: Messages to dead-letter.
        rulesets: Content of each ruleset used, by id.
        next_offsets: Per topic and partition, the offset after the last message of this batch.
        first_offsets: Per topic and partition, the first offset of this batch.
        messages: Messages this batch accounts for.
    """

    rows: dict[str, pa.Table] = field(default_factory=dict)
    dead_letters: list[DeadLetter] = field(default_factory=list)
    rulesets: Mapping[str, str] = field(default_factory=dict)
    next_offsets: dict[tuple[str, int], int] = field(default_factory=dict)
    first_offsets: dict[tuple[str, int], int] = field(default_factory=dict)
    messages: int = 0

    def account_for(self, message: Message) -> None:
        """Widen the offsets this batch settles by one message, given in order."""
        place = (message.topic, message.partition)
        self.first_offsets.setdefault(place, message.offset)
        self.next_offsets[place] = message.offset + 1

    @property
    def token(self) -> str:
        """Names the batch by its offsets: the same messages give the same token."""
        return ",".join(
            f"{topic}/{partition}:{self.first_offsets[topic, partition]}-{offset}"
            for (topic, partition), offset in sorted(self.next_offsets.items())
        )
