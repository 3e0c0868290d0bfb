"""What did not become a row of its own: dead letters, repeats, and the rulesets seen.

All of it is keyed by topic, partition and offset (rulesets by content), so that writing it again
changes no figure.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

import pyarrow as pa

from lookup_audit.processors.batch import DeadLetter, EncodedBatch, Message, storable_ms
from lookup_audit.processors.identity import Identity, Origin
from lookup_audit.processors.store import Store

_TIME, _MILLIS = pa.timestamp("us", tz="UTC"), pa.timestamp("ms", tz="UTC")
_HEADERS = pa.map_(pa.string(), pa.binary())


class Place(NamedTuple):
    """One record of a topic, told from a later one at the same offset by its time."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int

    @classmethod
    def of(cls, message: Message) -> "Place":
        """Where a message is."""
        time = storable_ms(message.timestamp_ms)
        return cls(message.topic, message.partition, message.offset, time)


@dataclass(frozen=True, slots=True)
class Repeat:
    """An id that came again.

    Args:
        conflict: Its content differs from the first one's.
        first: Where the one that counts came from.
    """

    kind: str
    identity: Identity
    origin: Origin
    timestamp_ms: int
    conflict: bool
    first: Origin
    raw: bytes


def settled_places(store: Store, cluster: str, batch: EncodedBatch) -> set[Place]:
    """Places of the batch that are dead letters or repeats already.

    What was dead-lettered once stays so when its offset is read again, even if the clock or a
    newer version would now accept it: only ``dlq replay`` gives it another try, at a new offset.
    A topic that was deleted and made anew has the same offsets, but at other times.
    """
    if not batch.first_offsets:
        return set()
    parts = []
    parameters: dict[str, object] = {"c": cluster}
    for index, ((topic, partition), first) in enumerate(batch.first_offsets.items()):
        parts.append(
            f"(kafka_topic = {{t{index}:String}} AND kafka_partition = {{p{index}:UInt32}} "
            f"AND kafka_offset BETWEEN {{a{index}:UInt64}} AND {{b{index}:UInt64}})"
        )
        last = batch.next_offsets[topic, partition] - 1
        parameters |= {f"t{index}": topic, f"p{index}": partition}
        parameters |= {f"a{index}": first, f"b{index}": last}
    where = f"kafka_cluster = {{c:String}} AND ({' OR '.join(parts)})"
    place = (
        "kafka_topic, kafka_partition, kafka_offset, toUnixTimestamp64Milli(kafka_timestamp) AS ms"
    )
    rows = store.query(
        f"SELECT {place} FROM audit_store.dead_letters WHERE {where} UNION ALL "
        f"SELECT {place} FROM audit_store.repeats WHERE {where}",
        parameters,
    )
    return {Place(*row) for row in rows}


def stored_places(store: Store, cluster: str, places: Sequence[Place]) -> set[Place]:
    """Which of these places are stored as rows."""
    if not places:
        return set()
    rows = store.query(
        "SELECT kafka_topic, kafka_partition, kafka_offset, "
        "toUnixTimestamp64Milli(kafka_timestamp) FROM audit_store.event_ids "
        "WHERE kafka_cluster = {cluster:String} AND kafka_offset IN {offsets:Array(UInt64)}",
        {"cluster": cluster, "offsets": [place.offset for place in places]},
    )
    return {Place(*row) for row in rows}.intersection(places)


def dead_letter_rows(letters: Sequence[DeadLetter], cluster: str, now: datetime) -> pa.Table:
    """Columns of ``audit_store.dead_letters``."""
    messages = [letter.message for letter in letters]
    rejected = [letter.rejected for letter in letters]
    types = [letter.event_type for letter in letters]
    return pa.table(
        {
            "kafka_cluster": pa.array([cluster] * len(letters), pa.string()),
            "kafka_topic": pa.array([m.topic for m in messages], pa.string()),
            "kafka_partition": pa.array([m.partition for m in messages], pa.uint32()),
            "kafka_offset": pa.array([m.offset for m in messages], pa.uint64()),
            "kafka_timestamp": pa.array([storable_ms(m.timestamp_ms) for m in messages], _MILLIS),
            "dead_lettered_at": pa.array([now] * len(letters), _TIME),
            "reason": pa.array([r.reason.value for r in rejected], pa.string()),
            "field": pa.array([_text(r.field) for r in rejected], pa.string()),
            "message": pa.array([_text(r.message) for r in rejected], pa.string()),
            "event_id": pa.array([_text(r.event_id) for r in rejected], pa.string()),
            "event_type": pa.array([t.value if t else "" for t in types], pa.string()),
            "key": pa.array([m.key for m in messages], pa.binary()),
            # A header may have no value at all, which the column cannot say.
            "headers": pa.array(
                [[(k, v or b"") for k, v in m.headers] for m in messages], _HEADERS
            ),
            "value": pa.array([m.value or b"" for m in messages], pa.binary()),
        }
    )


def _text(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


def repeat_rows(repeats: Sequence[Repeat], now: datetime) -> pa.Table:
    """Columns of ``audit_store.repeats``; the bytes are kept where they differ."""
    origins, firsts = [r.origin for r in repeats], [r.first for r in repeats]
    return pa.table(
        {
            "kafka_cluster": pa.array([o.cluster for o in origins], pa.string()),
            "kafka_topic": pa.array([o.topic for o in origins], pa.string()),
            "kafka_partition": pa.array([o.partition for o in origins], pa.uint32()),
            "kafka_offset": pa.array([o.offset for o in origins], pa.uint64()),
            "kafka_timestamp": pa.array([storable_ms(r.timestamp_ms) for r in repeats], _MILLIS),
            "seen_at": pa.array([now] * len(repeats), _TIME),
            "kind": pa.array([r.kind for r in repeats], pa.string()),
            "tenant": pa.array([r.identity[0] for r in repeats], pa.string()),
            "id": pa.array([r.identity[1] for r in repeats], pa.string()),
            "conflict": pa.array([r.conflict for r in repeats], pa.bool_()),
            "first_topic": pa.array([f.topic for f in firsts], pa.string()),
            "first_partition": pa.array([f.partition for f in firsts], pa.uint32()),
            "first_offset": pa.array([f.offset for f in firsts], pa.uint64()),
            "raw": pa.array([r.raw if r.conflict else b"" for r in repeats], pa.binary()),
        }
    )


def ruleset_rows(rulesets: Mapping[str, str], now: datetime) -> pa.Table:
    """Columns of ``audit_store.rulesets`` for rulesets that verdicts name."""
    count = len(rulesets)
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    return pa.table(
        {
            "ruleset_id": pa.array(list(rulesets), pa.string()),
            "content": pa.array(list(rulesets.values()), pa.string()),
            "service": pa.array([""] * count, pa.string()),
            "mode": pa.array([""] * count, pa.string()),
            "effective_from": pa.array([epoch] * count, _TIME),
            "registered": pa.array([False] * count, pa.bool_()),
            "added_at": pa.array([now] * count, _TIME),
            "added_by": pa.array(["stated by events"] * count, pa.string()),
        }
    )
