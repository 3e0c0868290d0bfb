"""The seam between those who accept events and whoever takes them to Kafka.

Everything that receives events (HTTP, OTLP) speaks to a :class:`Publisher`. There are two: the real
one in :mod:`lookup_audit.collector.publisher` and its in-memory twin in
:mod:`lookup_audit.collector.memory`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from lookup_audit.schemas.errors import Rejected
from lookup_audit.schemas.names import Reason, Topic


@dataclass(frozen=True, slots=True)
class OutgoingRecord:
    """One event as it goes to Kafka.

    Args:
        topic: Where to.
        key: Decides the partition: the trace id, else the event id.
        value: The event's own bytes.
        headers: CloudEvents binary mode; every name once.
        event_id: For answers and dead letters.
    """

    topic: Topic
    key: bytes
    value: bytes
    headers: tuple[tuple[str, bytes], ...]
    event_id: str


@dataclass(frozen=True, slots=True)
class Health:
    """Whether a dependency can be used now, and what to look at if not."""

    ok: bool
    detail: str


class Publisher(Protocol):
    """Takes records to the broker and says what became of each."""

    async def start(self) -> None:
        """Begin to connect; returns at once, whether or not the broker answers."""
        ...

    async def publish(self, records: Sequence[OutgoingRecord]) -> list[Rejected | None]:
        """Send records and wait until the broker has confirmed every one.

        Returns:
            For each record ``None`` where it is safe in the log, else why the broker refuses it.

        Raises:
            OverloadedError: Too many records are unconfirmed already.
            UnavailableError: The broker did not confirm in time. Some records may be in the log
                nevertheless; sending all again is right, since equal events count once.
        """
        ...

    async def close(self) -> None:
        """Wait for what is unconfirmed, then let go of the broker; safe to call twice."""
        ...

    def health(self) -> Health:
        """Whether ``publish`` can be expected to work now."""
        ...

    @property
    def pending(self) -> int:
        """Records sent and not yet confirmed."""
        ...


def too_large(record: OutgoingRecord) -> Rejected:
    """The refusal of a record that the broker would not take for its size."""
    return Rejected(
        Reason.TOO_LARGE,
        "",
        f"the event has {len(record.value)} bytes, more than the broker takes; shorten its texts",
        record.event_id,
    )
