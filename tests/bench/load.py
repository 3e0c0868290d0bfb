"""The load of every row: 8 kB lookups with 8 candidates, put into a broker as the collector would.

Texts are random words, so that no codec gains by the repetition; ids, times and sequence numbers
are an event's own.
"""

import random
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import islice
from typing import Any

from kafka import KafkaProducer

from lookup_audit.collector.envelope import Arrival, wrap
from lookup_audit.schemas.decode import LOOKUPS, Decoded
from lookup_audit.schemas.fields import format_instant
from lookup_audit.schemas.names import EventType
from tests.support.events import Event, encode, make_candidate, make_lookup

CANDIDATES = 8
_TEMPLATES = 500
_EXCERPT_CHARACTERS = 290


def events(count: int, *, first: int = 0) -> Iterator[bytes]:
    """Lookups as their JSON bytes; all pass every check.

    Args:
        count: How many.
        first: Sequence number of the first.
    """
    templates = _templates()
    for sequence in range(first, first + count):
        yield (
            templates[sequence % _TEMPLATES]
            .replace(b"EVENT-ID", str(uuid.uuid4()).encode())
            .replace(b"TRACE-ID", uuid.uuid4().hex.encode())
            .replace(b"OCCURRED-AT", format_instant(datetime.now(UTC)).encode())
            .replace(b'"sequence":0', b'"sequence":%d' % sequence)
        )


def _templates() -> list[bytes]:
    chance = random.Random(7)
    words = [
        "".join(chance.choices("etaoinshrdlucm", k=chance.randint(2, 11))) for _ in range(4000)
    ]
    return [encode(_lookup(chance, words)) for _ in range(_TEMPLATES)]


def _lookup(chance: random.Random, words: list[str]) -> Event:
    def text(characters: int) -> str:
        return " ".join(chance.choices(words, k=characters // 6))[:characters]

    distances = sorted(chance.uniform(0.2, 1.4) for _ in range(CANDIDATES))
    candidates = [
        make_candidate(
            original_rank=rank,
            dense_distance=distance,
            chunk_id=f"{text(12)}#chunk-{rank}",
            title=text(24),
            breadcrumb=text(40),
            excerpt=text(_EXCERPT_CHARACTERS),
            source_url=f"https://kb.example.com/{text(20).replace(' ', '/')}",
            tokens=chance.randint(60, 400),
        )
        for rank, distance in enumerate(distances, start=1)
    ]
    query = text(60)
    event = make_lookup(
        event_id="evt-EVENT-ID",
        trace_id="TRACE-ID",
        run_id="run-EVENT-ID",
        occurred_at="OCCURRED-AT",
        service={
            "name": "kb-retrieval",
            "version": "2.3.1",
            "instance_id": "pod-7/boot-41",
            "sequence": 0,
        },
        mode=chance.choice(("dense", "hybrid")),
        model_version=chance.choice(("minilm-l6@2", "minilm-l6@3")),
        query={"text": query, "language": "en"},
        candidates=candidates,
        top_k=CANDIDATES,
        latency_ms=chance.uniform(20, 200),
    )
    event["projection"]["query"] = query
    return event


def publish(bootstrap: str, values: Iterator[bytes]) -> int:
    """Send lookups with CloudEvents headers, lz4 and the collector's batches; returns the bytes."""
    producer: Any = KafkaProducer(
        bootstrap_servers=bootstrap,
        acks="all",
        compression_type="lz4",
        linger_ms=20,
        batch_size=256 * 1024,
    )
    arrival = Arrival(datetime.now(UTC))
    size = 0
    try:
        while chunk := list(islice(values, 2_000)):
            for raw in chunk:
                send(producer, raw, arrival)
                size += len(raw)
            producer.flush()
    finally:
        producer.close()
    return size


def send(producer: Any, raw: bytes, arrival: Arrival) -> None:
    """Hand one lookup to a producer as the collector's record."""
    decoded = LOOKUPS.decode(raw)
    assert isinstance(decoded, Decoded), "the load is valid"
    record = wrap(decoded, EventType.LOOKUP, arrival)
    producer.send(
        str(record.topic), key=record.key, value=record.value, headers=list(record.headers)
    )
