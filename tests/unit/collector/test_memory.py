import asyncio
from collections.abc import Sequence

import pytest

from lookup_audit.collector.memory import MemoryPublisher
from lookup_audit.collector.pressure import OverloadedError
from lookup_audit.schemas.errors import UnavailableError
from tests.unit.collector.publisher_contract import PublisherContract, record, use


class TestMemoryPublisher(PublisherContract):
    @pytest.fixture
    def publisher(self) -> MemoryPublisher:
        return MemoryPublisher()

    def stored(self, publisher: MemoryPublisher) -> Sequence[tuple[str, bytes]]:
        return [(kept.event_id, kept.value) for kept in publisher.records]


def test_the_twin_can_be_down() -> None:
    publisher = MemoryPublisher()
    publisher.available = False
    assert not publisher.health().ok
    with pytest.raises(UnavailableError):
        asyncio.run(publisher.publish([record("e")]))
    assert (publisher.records, publisher.pending) == ([], 0)


def test_the_twin_can_be_overloaded() -> None:
    publisher = MemoryPublisher(max_in_flight_events=1)
    with pytest.raises(OverloadedError):
        asyncio.run(use(publisher, lambda p: p.publish([record("a"), record("b")])))
