"""Which events are new: asked of the store before and after every insert.

An id (within its tenant) counts once. Seen again from the same offset it is a replay and leaves no
trace; with the same content from elsewhere it is a duplicate; with other content a conflict, and
the first one counts. Two processors that store one id in the same instant are found by asking
again after the insert.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import msgspec

from lookup_audit.processors.batch import Kind
from lookup_audit.processors.store import Store

Identity = tuple[str, str]

_KNOWN = """
SELECT tenant, id, payload_sha256, kafka_cluster, kafka_topic, kafka_partition, kafka_offset,
       insert_id, toUnixTimestamp64Milli(kafka_timestamp)
FROM audit_store.event_ids
WHERE kind = {kind:String} AND id_hash IN (
    SELECT cityHash64({kind:String}, pair.1, pair.2)
    FROM (SELECT arrayJoin(JSONExtract({pairs:String}, 'Array(Tuple(String, String))')) AS pair)
)
ORDER BY kafka_timestamp, kafka_topic, kafka_partition, kafka_offset, insert_id
"""


# A kill can come between a row and its id, which the store derives from it in a second step.
_COMPLETE = """
INSERT INTO audit_store.event_ids
(id_hash, kind, tenant, id, occurred_at, payload_sha256, kafka_cluster, kafka_topic,
 kafka_partition, kafka_offset, kafka_timestamp, insert_id)
SELECT cityHash64('{kind}', tenant, {id}), '{kind}', tenant, {id}, occurred_at, payload_sha256,
       kafka_cluster, kafka_topic, kafka_partition, kafka_offset, kafka_timestamp, insert_id
FROM {table}
WHERE {range} AND (kafka_topic, kafka_partition, kafka_offset, insert_id) NOT IN (
    SELECT kafka_topic, kafka_partition, kafka_offset, insert_id
    FROM audit_store.event_ids WHERE kind = '{kind}' AND {range}
)
"""


class Origin(NamedTuple):
    """Where a stored event came from."""

    cluster: str
    topic: str
    partition: int
    offset: int


@dataclass(frozen=True, slots=True)
class Stored:
    """One stored row of an id."""

    sha256: bytes
    origin: Origin
    insert_id: int
    timestamp_ms: int


def stored_rows(
    store: Store, kind: Kind, identities: Sequence[Identity]
) -> dict[Identity, list[Stored]]:
    """What the store holds of these ids, the one that counts first."""
    asked = set(identities)
    found: dict[Identity, list[Stored]] = {}
    for pairs in as_json(identities, store.parameter_bytes):
        rows = store.query(_KNOWN, {"kind": kind.name, "pairs": pairs})
        for tenant, event_id, sha256, *origin, insert_id, timestamp_ms in rows:
            if (tenant, event_id) in asked:
                stored = Stored(sha256, Origin(*origin), insert_id, timestamp_ms)
                found.setdefault((tenant, event_id), []).append(stored)
    return found


def as_json(identities: Sequence[Identity], most: int) -> Iterator[str]:
    """Ids as JSON texts: thousands bound one by one cost more than looking them up."""
    text = msgspec.json.encode(identities)
    if len(text) <= most or len(identities) == 1:
        if identities:
            yield text.decode()
        return
    half = len(identities) // 2
    yield from as_json(identities[:half], most)
    yield from as_json(identities[half:], most)


def complete_ids(
    store: Store, kinds: Sequence[Kind], cluster: str, first_offsets: Mapping[tuple[str, int], int]
) -> None:
    """Add the ids of rows that were stored without, from these offsets on.

    Asked once wherever reading does not go on where this process stopped: after a start, a
    rebalance or a failure. Without it such a row is unknown and would be stored again.
    """
    if not first_offsets:
        return
    where, parameters = offsets_from(cluster, first_offsets)
    for kind in kinds:
        sql = _COMPLETE.format(kind=kind.name, id=kind.id_column, table=kind.table, range=where)
        store.command(sql, parameters)


def offsets_from(
    cluster: str, first_offsets: Mapping[tuple[str, int], int]
) -> tuple[str, dict[str, object]]:
    """A condition on rows of a cluster from these offsets on, with its parameters."""
    places = []
    parameters: dict[str, object] = {"cluster": cluster}
    for index, ((topic, partition), offset) in enumerate(first_offsets.items()):
        places.append(
            f"(kafka_topic = {{t{index}:String}} AND kafka_partition = {{p{index}:UInt32}} "
            f"AND kafka_offset >= {{o{index}:UInt64}})"
        )
        parameters |= {f"t{index}": topic, f"p{index}": partition, f"o{index}": offset}
    return f"kafka_cluster = {{cluster:String}} AND ({' OR '.join(places)})", parameters


def same_content(raw: bytes, other: bytes) -> bool:
    """Whether two values say the same: equal bytes, or equal JSON in another spelling of it."""
    if raw == other:
        return True
    try:
        return _same(json.loads(raw), json.loads(other))
    except (ValueError, RecursionError):
        return False


def _same(one: object, other: object) -> bool:
    """Equality of JSON: 4 and 4.0 are one number, but 1 is not ``true``."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    return isinstance(one, bool) == isinstance(other, bool) and one == other


def is_content(raw: bytes, stored: Stored, store: Store, kind: Kind, identity: Identity) -> bool:
    """Whether a value says the same as a stored event.

    The stored bytes are fetched only where the hashes differ: the same event sent again by
    another JSON writer is a duplicate and not a conflict.
    """
    if hashlib.sha256(raw).digest() == stored.sha256:
        return True
    first = stored_raw(store, kind, identity, stored.insert_id)
    return first is not None and same_content(raw, first)


def stored_raw(store: Store, kind: Kind, identity: Identity, insert_id: int) -> bytes | None:
    """The stored bytes of one row."""
    rows = store.query(
        f"SELECT hex(raw) FROM {kind.table} WHERE tenant = {{tenant:String}} "
        f"AND {kind.id_column} = {{id:String}} AND insert_id = {{insert_id:UInt64}}",
        {"tenant": identity[0], "id": identity[1], "insert_id": insert_id},
    )
    return bytes.fromhex(rows.scalar()) if rows else None


def surplus_rows(
    found: Mapping[Identity, Sequence[Stored]],
) -> list[tuple[Identity, Stored, Stored]]:
    """Rows of ids stored more than once: (identity, the surplus row, the one that counts)."""
    return [
        (identity, surplus, rows[0]) for identity, rows in found.items() for surplus in rows[1:]
    ]
