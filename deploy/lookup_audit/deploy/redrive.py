"""Gives dead letters another try: the original bytes, key and headers, to the original topic."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kafka import KafkaProducer
from kafka.errors import KafkaError

from lookup_audit.schemas.errors import UnavailableError
from lookup_audit.schemas.names import Header


@dataclass(frozen=True, slots=True)
class DeadLetterRow:
    """One dead letter as the table holds it."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...]


def redrive(
    letters: Sequence[DeadLetterRow], bootstrap_servers: str, options: Mapping[str, str]
) -> None:
    """Publish and wait for every acknowledgement.

    A replayed letter carries its attempt, so that one that fails again counts on.

    Raises:
        UnavailableError: Not all were acknowledged; those that were are judged anew, and sending
            them once more only makes duplicates.
    """
    try:
        producer = KafkaProducer(
            bootstrap_servers=bootstrap_servers.split(","),
            acks="all",
            enable_idempotence=True,
            compression_type="lz4",
            max_request_size=32 * 2**20,
            max_block_ms=15_000,
            **options,
        )
        try:
            futures = [
                producer.send(
                    letter.topic, key=letter.key, value=letter.value, headers=_headers(letter)
                )
                for letter in letters
            ]
            for future in futures:
                future.get(timeout=30)
        finally:
            producer.close(timeout=10)
    except KafkaError as error:
        raise UnavailableError(f"dead letters were not sent again: {error}") from error


def _headers(letter: DeadLetterRow) -> list[tuple[str, bytes]]:
    kept = [(name, value) for name, value in letter.headers if name != Header.DLQ_ATTEMPT]
    attempt = dict(letter.headers).get(Header.DLQ_ATTEMPT.value, b"0")
    number = int(attempt) + 1 if attempt.isdigit() else 1
    return [*kept, (Header.DLQ_ATTEMPT.value, str(number).encode())]
