"""Dead letters out to Kafka: original bytes, key and headers, with where they came from and why.

The table keeps every dead letter; the topic is for whoever wants to hear of them at once.
"""

import time
from collections.abc import Sequence
from typing import Protocol

from kafka.errors import KafkaError, MessageSizeTooLargeError

from lookup_audit.processors.batch import DeadLetter, Message
from lookup_audit.processors.kafka_producer import LazyProducer
from lookup_audit.processors.kafka_source import KafkaConfig
from lookup_audit.schemas.errors import UnavailableError
from lookup_audit.schemas.names import Header, Topic

# Names that only exist for the hop and must not appear twice on a dead letter.
_DLQ_HEADERS = frozenset(h.value for h in Header if h.value.startswith("dlq."))


class DeadLetterPublisher(Protocol):
    """Where dead letters go besides the table."""

    def publish(self, letters: Sequence[DeadLetter]) -> None:
        """Hand over and wait until all are acknowledged; raises UnavailableError."""

    def close(self) -> None:
        """Release the connection."""


class KafkaDeadLetters:
    """Publishes original bytes, key and headers to the dead-letter topic, with the origin."""

    def __init__(self, config: KafkaConfig, *, timeout_seconds: float = 30.0):
        self._timeout = timeout_seconds
        self._producer = LazyProducer(
            config,
            timeout_seconds,
            compression_type="lz4",
            linger_ms=5,
            # A record that came in must go out again, with headers on top.
            max_request_size=32 * 2**20,
        )

    def publish(self, letters: Sequence[DeadLetter]) -> None:
        """See :meth:`DeadLetterPublisher.publish`."""
        if not letters:
            return
        try:
            too_large = self._send(letters, with_value=True)
            if too_large and self._send(too_large, with_value=False):
                raise MessageSizeTooLargeError("even without their values")
        except KafkaError as error:
            self.close()
            raise UnavailableError(f"dead letters were not acknowledged: {error}") from error

    def _send(self, letters: Sequence[DeadLetter], *, with_value: bool) -> list[DeadLetter]:
        """Send and wait; returns what is too large with the headers on top.

        Those go without their value, which the dead-letter table keeps in any case.
        """
        deadline = time.monotonic() + self._timeout
        producer = self._producer.connected()
        too_large = []
        futures = []
        for letter in letters:
            headers = dead_letter_headers(letter)
            if not with_value:
                headers.append(
                    (Header.DLQ_VALUE_BYTES.value, b"%d" % len(letter.message.value or b""))
                )
            try:
                future = producer.send(
                    Topic.DEAD_LETTERS.value,
                    key=letter.message.key,
                    value=_sendable(letter.message) if with_value else b"",
                    headers=headers,
                )
            except MessageSizeTooLargeError:
                too_large.append(letter)
            else:
                futures.append((letter, future))
        producer.flush(timeout=self._timeout)
        for letter, future in futures:
            try:
                future.get(timeout=max(0.1, deadline - time.monotonic()))
            except MessageSizeTooLargeError:
                too_large.append(letter)
        return too_large

    def close(self) -> None:
        """See :meth:`DeadLetterPublisher.close`."""
        self._producer.close()


def _sendable(message: Message) -> bytes | None:
    """The value; an empty one for a record without key and value, which no client can send."""
    return b"" if message.key is None and message.value is None else message.value


def dead_letter_headers(letter: DeadLetter) -> list[tuple[str, bytes]]:
    """The original headers, then where the message came from and why it is here."""
    message, rejected = letter.message, letter.rejected
    kept = [(name, value) for name, value in message.headers if name not in _DLQ_HEADERS]
    attempt = next((v for n, v in message.headers if n == Header.DLQ_ATTEMPT), b"0")
    origin: list[tuple[str, object]] = [
        (Header.DLQ_REASON, rejected.reason.value),
        (Header.DLQ_FIELD, rejected.field),
        (Header.DLQ_MESSAGE, rejected.message),
        (Header.DLQ_TOPIC, message.topic),
        (Header.DLQ_PARTITION, message.partition),
        (Header.DLQ_OFFSET, message.offset),
        (Header.DLQ_TIMESTAMP, message.timestamp_ms),
        (Header.DLQ_ATTEMPT, int(attempt) + 1 if attempt.isdigit() else 1),
    ]
    return kept + [
        (str(name), str(value).encode("utf-8", "surrogatepass")) for name, value in origin
    ]
