"""Where events go to: the seam, and the answers a transport gives. No transport ever raises."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from lookup_audit.schemas.names import EventType


@dataclass(frozen=True, slots=True)
class Delivered:
    """Every event has its answer; the ``rejected`` ones are counted by reason code."""

    rejected: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class TryAgain:
    """Nothing is known to have arrived; the same batch may work later.

    Args:
        why: For the log and the statistics; without any content of events.
        after_seconds: When the receiver wants to be asked again, or ``None``.
    """

    why: str
    after_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class TryInParts:
    """The batch as a whole is refused: its halves may pass, and a single event is rejected.

    Args:
        reason: Reason code of a single event's rejection.
    """

    reason: str


Answer = Delivered | TryAgain | TryInParts


class Transport(Protocol):
    """Takes batches somewhere; used by one thread at a time."""

    def send(self, kind: EventType, values: Sequence[bytes]) -> Answer:
        """Deliver the JSON of events of one kind, in order, and say what became of them."""
        ...

    def close(self) -> None:
        """Let go of connections."""
        ...

    def forget(self) -> None:
        """After a fork, in the child: drop connections that belong to the parent, in silence."""
        ...


MakeTransport = Callable[[], Transport]
