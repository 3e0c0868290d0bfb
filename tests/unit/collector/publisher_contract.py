"""What every publisher promises; run on the twin in memory and on the one for Kafka alike."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from lookup_audit.collector.publishing import OutgoingRecord, Publisher
from lookup_audit.schemas.errors import Rejected
from lookup_audit.schemas.names import Reason, Topic

Use = Callable[[Publisher], Coroutine[Any, Any, Any]]


def record(event_id: str, size: int = 20, topic: Topic = Topic.RESULTS) -> OutgoingRecord:
    """A record of some size."""
    return OutgoingRecord(topic, b"k", b"x" * size, (("ce_id", event_id.encode()),), event_id)


async def use(publisher: Publisher, action: Use) -> Any:
    """Start a publisher, wait until it can be used, act, close."""
    await publisher.start()
    try:
        async with asyncio.timeout(10):
            while not publisher.health().ok:
                await asyncio.sleep(0.01)
        return await action(publisher)
    finally:
        await publisher.close()


class PublisherContract:
    """Subclass with a fixture ``publisher`` and a way to look at what is in the log."""

    def stored(self, publisher: Any) -> Sequence[tuple[str, bytes]]:
        raise NotImplementedError

    def test_a_confirmed_record_is_in_the_log(self, publisher: Publisher) -> None:
        async def act(p: Publisher) -> list[Rejected | None]:
            return await p.publish([record("c-1"), record("c-2", topic=Topic.OUTCOMES)])

        assert asyncio.run(use(publisher, act)) == [None, None]
        stored = self.stored(publisher)
        assert ("c-1", b"x" * 20) in stored
        assert ("c-2", b"x" * 20) in stored

    def test_publishing_nothing_is_nothing(self, publisher: Publisher) -> None:
        assert asyncio.run(use(publisher, lambda p: p.publish([]))) == []

    def test_a_record_that_is_too_large_harms_no_other(self, publisher: Publisher) -> None:
        records = [record("l-1"), record("l-2", 1_200_000), record("l-3")]
        answers = asyncio.run(use(publisher, lambda p: p.publish(records)))
        assert (answers[0], answers[2]) == (None, None)
        assert isinstance(answers[1], Rejected)
        assert (answers[1].reason, answers[1].event_id) == (Reason.TOO_LARGE, "l-2")
        assert {i for i, _ in self.stored(publisher) if i.startswith("l-")} == {"l-1", "l-3"}

    def test_nothing_is_pending_after_many_have_published_at_once(
        self, publisher: Publisher
    ) -> None:
        async def act(p: Publisher) -> int:
            await asyncio.gather(*(p.publish([record(f"m-{i}")]) for i in range(200)))
            return p.pending

        assert asyncio.run(use(publisher, act)) == 0
        assert len({i for i, _ in self.stored(publisher) if i.startswith("m-")}) == 200

    def test_closing_twice_does_no_harm(self, publisher: Publisher) -> None:
        async def act(p: Publisher) -> None:
            await p.close()

        asyncio.run(use(publisher, act))
        assert publisher.pending == 0

    def test_a_publisher_that_was_never_started_can_be_closed(self, publisher: Publisher) -> None:
        asyncio.run(_close(publisher))


async def _close(publisher: Publisher) -> None:
    await publisher.close()
