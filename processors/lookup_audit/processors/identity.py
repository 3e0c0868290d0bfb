"""Which events are new: asked of the store before and after every insert.

An id (within its tenant) counts once. Seen again from the same offset it is a replay and leaves no
trace; with the same content from elsewhere it is a duplicate; with other content a conflict, and
the first one counts. Two processors that store one id in the same instant are found by asking
again after the insert.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import msgspec

from lookup_audit.processors.batch import Kind
from lookup_audit.processors.store import Store

Identity = tuple[str, str]

_KNOWN = """
SELECT tenant, id, payload_sha256, kafka_cluster, kafka_topic, kafka_partition, kafka_offset,
       insert_id
FROM audit_store.event_ids
WHERE kind = {kind:String} AND id_hash IN (
    SELECT cityHash64({kind:String}, pair.1, pair.2)
    FROM (SELECT arrayJoin(JSONExtract({pairs:String}, 'Array(Tuple(String, String))')) AS pair)
)
ORDER BY kafka_timestamp, kafka_topic, kafka_partition, kafka_offset, insert_id
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


def stored_rows(
    store: Store, kind: Kind, identities: Sequence[Identity]
) -> dict[Identity, list[Stored]]:
    """What the store holds of these ids, the one that counts first."""
    if not identities:
        return {}
    rows = store.query(
        _KNOWN,
        # One JSON text: thousands of ids bound one by one cost more than looking them up.
        {"kind": kind.name, "pairs": msgspec.json.encode(identities).decode()},
    )
    asked = set(identities)
    found: dict[Identity, list[Stored]] = {}
    for tenant, event_id, sha256, cluster, topic, partition, offset, insert_id in rows:
        if (tenant, event_id) in asked:
            origin = Origin(cluster, topic, partition, offset)
            found.setdefault((tenant, event_id), []).append(Stored(sha256, origin, insert_id))
    return found


def same_content(raw: bytes, other: bytes) -> bool:
    """Whether two values say the same: equal bytes, or equal JSON in another spelling of it."""
    if raw == other:
        return True
    try:
        return bool(json.loads(raw) == json.loads(other))
    except (ValueError, RecursionError):
        return False


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
