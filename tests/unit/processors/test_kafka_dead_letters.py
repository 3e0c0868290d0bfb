"""What the publisher does with a broker's refusals, told by a producer in memory."""

from collections.abc import Sequence
from typing import Any

import pytest
from kafka.errors import KafkaTimeoutError, MessageSizeTooLargeError, OutOfOrderSequenceNumberError

from lookup_audit.processors.batch import DeadLetter
from lookup_audit.processors.kafka_dead_letters import KafkaDeadLetters
from lookup_audit.processors.kafka_producer import LazyProducer
from lookup_audit.processors.kafka_source import KafkaConfig
from lookup_audit.schemas.errors import Rejected, UnavailableError
from lookup_audit.schemas.names import Header, Reason
from tests.support.twins import make_message

LIMIT = 1000


class Acknowledgement:
    def __init__(self, error: Exception | None):
        self._error = error

    def get(self, timeout: float) -> None:
        if self._error is not None:
            raise self._error


class ProducerInMemory:
    """Takes values up to a limit, as a broker does; can be broken for good."""

    def __init__(self, *, refuses_itself: bool = False, error: Exception | None = None):
        self.sent: list[tuple[bytes, dict[str, bytes]]] = []
        self.error = error
        self.refuses_itself = refuses_itself
        self.is_closed = False

    def send(self, topic: str, *, key: Any, value: bytes, headers: Any) -> Acknowledgement:
        if self.error is not None:
            return Acknowledgement(self.error)
        if len(value) > LIMIT:
            refusal = MessageSizeTooLargeError("too large")
            if self.refuses_itself:
                raise refusal
            return Acknowledgement(refusal)
        self.sent.append((value, dict(headers)))
        return Acknowledgement(None)

    def flush(self, timeout: float) -> None:
        pass

    def close(self, timeout: float) -> None:
        self.is_closed = True


class ListedProducers(LazyProducer):
    """Gets its producers from a list."""

    def __init__(self, producers: Sequence[ProducerInMemory]):
        super().__init__(KafkaConfig(), 1.0)
        self._listed = list(producers)

    def _make(self) -> Any:
        return self._listed.pop(0)


class Publisher(KafkaDeadLetters):
    """Sends by producers in memory."""

    def __init__(self, *producers: ProducerInMemory):
        super().__init__(KafkaConfig())
        self._producer = ListedProducers(producers)


def letter(value: bytes | None, offset: int = 0) -> DeadLetter:
    rejected = Rejected(Reason.INVALID_JSON, "", "not JSON", "")
    return DeadLetter(make_message(value, offset), rejected)


@pytest.mark.parametrize("refuses_itself", [False, True], ids=["broker", "client"])
def test_what_is_too_large_with_its_headers_goes_without_its_value(refuses_itself: bool) -> None:
    producer = ProducerInMemory(refuses_itself=refuses_itself)
    Publisher(producer).publish([letter(b"a", 1), letter(b"x" * 1001, 2), letter(b"c", 3)])
    found = {headers[Header.DLQ_OFFSET]: (value, headers) for value, headers in producer.sent}
    assert [found[offset][0] for offset in (b"1", b"2", b"3")] == [b"a", b"", b"c"]
    assert found[b"2"][1][Header.DLQ_VALUE_BYTES] == b"1001"
    assert Header.DLQ_VALUE_BYTES not in found[b"1"][1]


@pytest.mark.parametrize(
    "error",
    [KafkaTimeoutError("no ack"), OutOfOrderSequenceNumberError("the broker began anew")],
    ids=["timeout", "beyond-repair"],
)
def test_after_a_failure_another_producer_is_made(error: Exception) -> None:
    broken, working = ProducerInMemory(error=error), ProducerInMemory()
    publisher = Publisher(broken, working)
    with pytest.raises(UnavailableError, match="were not acknowledged"):
        publisher.publish([letter(b"a")])
    assert broken.is_closed
    publisher.publish([letter(b"a")])
    assert [value for value, _ in working.sent] == [b"a"]


def test_a_tombstone_without_a_key_can_be_sent() -> None:
    producer = ProducerInMemory()
    Publisher(producer).publish([letter(None)])
    assert producer.sent[0][0] == b""


def test_nothing_to_send_needs_no_broker() -> None:
    Publisher().publish([])
