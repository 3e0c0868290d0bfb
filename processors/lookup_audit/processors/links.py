"""Joins each outcome with its lookups once, when the later of the two is stored.

The cells are read far more often than written, and a join of every outcome with every lookup at
each reading takes seconds. Both sides are stored before the join is looked for, so whichever
processor comes second finds the other's row. Joining again changes nothing.
"""

from collections.abc import Mapping, Sequence

from lookup_audit.processors.batch import LOOKUP, OUTCOME, Kind
from lookup_audit.processors.identity import Identity, as_json, offsets_from
from lookup_audit.processors.store import Store

_PENDING = """
SELECT DISTINCT toString(id_hash)
FROM audit_store.outcome_links
WHERE id_hash IN (
    SELECT cityHash64('lookup', pair.1, pair.2)
    FROM (SELECT arrayJoin(JSONExtract({pairs:String}, 'Array(Tuple(String, String))')) AS pair)
)
"""

# An id is spread over all partitions; where it was stored narrows the wide table to a few hours.
_JOIN = """
INSERT INTO audit_store.answered_lookups
    (tenant, event_id, occurred_at, service, run_id, mode, model_version, level, quality_basis,
     layer, outcome_id, outcome_at, action, stance, refusal_reason, lookup_insert_id,
     outcome_insert_id)
WITH hashes AS (SELECT arrayJoin(JSONExtract({hashes:String}, 'Array(UInt64)')) AS id_hash)
SELECT
    l.tenant, l.event_id, l.occurred_at, l.service, l.run_id, l.mode, l.model_version, l.level,
    l.quality_basis, l.layer, o.outcome_id, o.outcome_at, o.action, o.stance, o.refusal_reason,
    l.insert_id, o.insert_id
FROM (SELECT * FROM audit_store.outcome_links FINAL WHERE id_hash IN hashes) AS o
INNER JOIN (
    SELECT *
    FROM audit_store.lookup_facts
    WHERE id_hash IN hashes AND (tenant, toStartOfHour(occurred_at)) IN (
        SELECT tenant, toStartOfHour(occurred_at)
        FROM audit_store.event_ids
        WHERE kind = 'lookup' AND id_hash IN hashes
    )
    ORDER BY kafka_timestamp, kafka_topic, kafka_partition, kafka_offset, insert_id
    LIMIT 1 BY tenant, event_id
) AS l ON l.tenant = o.tenant AND l.event_id = o.event_id
"""

_OUTCOME_LINKS = """
INSERT INTO audit_store.outcome_links
    (id_hash, tenant, event_id, outcome_id, outcome_at, action, stance, refusal_reason, insert_id)
SELECT
    cityHash64('lookup', tenant, event_id), tenant,
    arrayJoin(arrayDistinct(lookup_event_ids)) AS event_id, outcome_id, occurred_at, action, stance,
    refusal_reason, insert_id
FROM audit_store.outcomes
WHERE {range}
"""

_COUNTING_JUDGEMENTS = """
INSERT INTO audit_store.counting_judgements
    (tenant, outcome_id, judgement_id, judged_at, verdict, source, insert_id)
SELECT tenant, outcome_id, judgement_id, occurred_at, verdict, source, insert_id
FROM audit_store.judgements
WHERE {range}
"""
_DERIVED = {
    "audit_store.outcome_links": _OUTCOME_LINKS,
    "audit_store.counting_judgements": _COUNTING_JUDGEMENTS,
}

_APART = """
SELECT DISTINCT toString(id_hash)
FROM audit_store.outcome_links
WHERE (tenant, event_id) NOT IN (SELECT tenant, event_id FROM audit_store.answered_lookups)
    AND id_hash IN (
        SELECT id_hash FROM audit_store.lookups
        WHERE id_hash IN (SELECT id_hash FROM audit_store.outcome_links)
    )
"""
_FORGET_LOOKUP = """
DELETE FROM audit_store.answered_lookups
WHERE tenant = {tenant:String} AND event_id = {id:String} AND lookup_insert_id = {insert_id:UInt64}
"""
_NAMED_LOOKUPS = """
SELECT tenant, event_id FROM audit_store.outcome_links
WHERE tenant = {tenant:String} AND outcome_id = {id:String} AND insert_id = {insert_id:UInt64}
"""
_FORGET_LINKS = """
DELETE FROM audit_store.outcome_links
WHERE tenant = {tenant:String} AND outcome_id = {id:String} AND insert_id = {insert_id:UInt64}
"""
_FORGET_OUTCOME = """
DELETE FROM audit_store.answered_lookups
WHERE tenant = {tenant:String} AND outcome_id = {id:String}
    AND outcome_insert_id = {insert_id:UInt64}
"""
_JUDGED_OUTCOME = """
SELECT DISTINCT outcome_id FROM audit_store.counting_judgements
WHERE tenant = {tenant:String} AND judgement_id = {id:String} AND insert_id = {insert_id:UInt64}
"""
_FORGET_JUDGEMENT = """
DELETE FROM audit_store.counting_judgements
WHERE tenant = {tenant:String} AND judgement_id = {id:String} AND insert_id = {insert_id:UInt64}
"""
_HASHES_AT_ONCE = 2_000


def link(store: Store, lookups: Sequence[Identity]) -> None:
    """Join these lookups with their outcomes, as far as both are stored.

    Args:
        store: Where both are.
        lookups: Ids of lookups that were stored, or that a stored outcome names.

    Raises:
        UnavailableError: The store does not answer; do it again.
    """
    for pairs in as_json(list(dict.fromkeys(lookups)), store.parameter_bytes):
        _join(store, store.query(_PENDING, {"pairs": pairs}))


def _join(store: Store, hashes: Sequence[Sequence[str]]) -> None:
    """Join what is found under these hashes, given as one-column rows."""
    for first in range(0, len(hashes), _HASHES_AT_ONCE):
        some = ",".join(row[0] for row in hashes[first : first + _HASHES_AT_ONCE])
        store.command(_JOIN, {"hashes": f"[{some}]"})


def complete(store: Store, cluster: str, first_offsets: Mapping[tuple[str, int], int]) -> None:
    """Derive again what a kill left out between a row and what the store derives from it.

    Args:
        store: Where rows are.
        cluster: The Kafka cluster of the offsets.
        first_offsets: Per topic and partition, from where on.
    """
    if first_offsets:
        where, parameters = offsets_from(cluster, first_offsets)
        for sql in _DERIVED.values():
            store.command(sql.format(range=where), parameters)


def catch_up(store: Store) -> None:
    """Join what a kill left apart for good: an embedded broker does not give its messages again.

    Args:
        store: Where lookups and outcomes are; asked once, at a start.
    """
    for table, sql in _DERIVED.items():
        # Only what has no derived row at all: the rest was derived with its insert.
        missing = f"(tenant, outcome_id) NOT IN (SELECT tenant, outcome_id FROM {table})"
        store.command(sql.format(range=missing))
    _join(store, store.query(_APART))


def unlink(store: Store, kind: Kind, identity: Identity, insert_id: int) -> None:
    """Forget what was derived from a surplus row, and derive it from the rows that are left.

    Args:
        store: Where rows are; the surplus row itself is gone.
        kind: Of the row.
        identity: Of the row.
        insert_id: Of the row's insert.
    """
    row = {"tenant": identity[0], "id": identity[1], "insert_id": insert_id}
    if kind is LOOKUP:
        store.command(_FORGET_LOOKUP, row)
        link(store, [identity])
    elif kind is OUTCOME:
        named = [(tenant, event_id) for tenant, event_id in store.query(_NAMED_LOOKUPS, row)]
        store.command(_FORGET_LINKS, row)
        store.command(_FORGET_OUTCOME, row)
        link(store, named)
    else:
        judged = store.query(_JUDGED_OUTCOME, row)
        store.command(_FORGET_JUDGEMENT, row)
        for (outcome_id,) in judged:
            where = "tenant = {tenant:String} AND outcome_id = {outcome_id:String}"
            again = {"tenant": identity[0], "outcome_id": outcome_id}
            store.command(_COUNTING_JUDGEMENTS.format(range=where), again)
