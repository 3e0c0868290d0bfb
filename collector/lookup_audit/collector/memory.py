"""The publisher's in-memory twin, for tests and trials: same promises, no broker.

It keeps to the same contract as the real one (one test suite runs on both) and can be told to be
down, slow or picky.
"""

import asyncio
from collections.abc import Collection, Sequence

from lookup_audit.collector.pressure import Budget
from lookup_audit.collector.publishing import Health, OutgoingRecord, too_large
from lookup_audit.schemas.errors import Rejected, UnavailableError
from lookup_audit.schemas.names import Reason


class MemoryPublisher:
    """Keeps confirmed records in ``records``.

    Args:
        max_event_bytes: Larger values are refused as ``too_large``.
        max_in_flight_events: More unconfirmed records are refused with ``OverloadedError``.
        ack_seconds: How long a confirmation takes.
        refused_ids: Event ids that the broker refuses.
    """

    def __init__(
        self,
        *,
        max_event_bytes: int = 1_000_000,
        max_in_flight_events: int = 50_000,
        ack_seconds: float = 0.0,
        refused_ids: Collection[str] = (),
    ):
        self.records: list[OutgoingRecord] = []
        self.available = True
        self.started = False
        self.closed = False
        self._max_event_bytes = max_event_bytes
        self._ack_seconds = ack_seconds
        self._refused_ids = frozenset(refused_ids)
        self._budget = Budget(max_bytes=2**62, max_events=max_in_flight_events)

    async def start(self) -> None:
        """Nothing to connect to."""
        self.started = True

    async def publish(self, records: Sequence[OutgoingRecord]) -> list[Rejected | None]:
        """Keep the records; see :class:`lookup_audit.collector.publishing.Publisher`."""
        with self._budget.lease() as lease:
            lease.take(sum(len(record.value) for record in records), len(records))
            if self._ack_seconds:
                await asyncio.sleep(self._ack_seconds)
            if not self.available:
                raise UnavailableError("the broker is down")
            answers = [self._refusal(record) for record in records]
            self.records += [r for r, no in zip(records, answers, strict=True) if no is None]
            return answers

    def _refusal(self, record: OutgoingRecord) -> Rejected | None:
        if len(record.value) > self._max_event_bytes:
            return too_large(record)
        if record.event_id in self._refused_ids:
            message = "the broker refuses the record"
            return Rejected(Reason.REJECTED_BY_STORE, "", message, record.event_id)
        return None

    async def close(self) -> None:
        """Nothing to flush."""
        self.closed = True

    def health(self) -> Health:
        """As told by ``available``."""
        return Health(self.available, "in memory" if self.available else "the broker is down")

    @property
    def pending(self) -> int:
        """Records not yet confirmed."""
        return self._budget.events
