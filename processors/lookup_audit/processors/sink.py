"""One encoded batch into the store: each message exactly once, whatever happened before.

The order makes a kill at any point harmless: dead letters, repeats and rulesets are keyed by where
they came from, rows are checked against the store before they go in, and offsets are committed by
the caller only when all of it is stored. Doing the same batch again changes nothing.
"""

import hashlib
import logging
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import pyarrow as pa
import pyarrow.compute as pc

from lookup_audit.processors import exceptions_table as exceptions
from lookup_audit.processors import links
from lookup_audit.processors.batch import (
    KINDS,
    LOOKUP,
    OUTCOME,
    DeadLetter,
    EncodedBatch,
    Kind,
    Message,
)
from lookup_audit.processors.exceptions_table import Place, Repeat
from lookup_audit.processors.identity import (
    Identity,
    Origin,
    Stored,
    complete_ids,
    is_content,
    same_content,
    stored_raw,
    stored_rows,
    surplus_rows,
)
from lookup_audit.processors.kafka_dead_letters import DeadLetterPublisher
from lookup_audit.processors.store import Store
from lookup_audit.schemas.errors import Rejected, StoreRejectedError
from lookup_audit.schemas.names import Reason

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Written:
    """What became of one batch's messages."""

    stored: dict[str, int] = field(default_factory=dict)
    duplicates: int = 0
    conflicts: int = 0
    replays: int = 0
    dead_letters: list[DeadLetter] = field(default_factory=list)


class Sink:
    """Writes encoded batches.

    Args:
        store: Where rows go.
        dead_letters: Where dead letters go besides the table.
        cluster_id: The Kafka cluster the offsets belong to.
        clock: Gives the time now.
    """

    def __init__(
        self,
        store: Store,
        dead_letters: DeadLetterPublisher,
        *,
        cluster_id: str,
        clock: Callable[[], datetime],
    ):
        self._store = store
        self._dead_letters = dead_letters
        self._cluster = cluster_id
        self._clock = clock
        self._known_rulesets: set[str] = set()
        # Per topic and partition, where the next batch begins if nothing happened in between.
        self._next: dict[tuple[str, int], int] = {}

    def write(self, batch: EncodedBatch) -> Written:
        """Store a batch; safe to repeat after any failure.

        Raises:
            UnavailableError: The store or the broker does not answer; repeat later.
        """
        with self._store.sole_writer() as alone:
            return self._write(batch, alone)

    def _write(self, batch: EncodedBatch, alone: bool) -> Written:
        written = Written()
        excused = exceptions.settled_places(self._store, self._cluster, batch)
        excused |= self._resume(batch)
        fresh: dict[Kind, pa.Table] = {}
        repeats: list[Repeat] = []
        doubled: dict[Kind, list[Identity]] = {}
        asked: dict[Kind, list[Identity]] = {}
        for kind in KINDS:
            if (rows := batch.rows.get(kind.name)) is not None:
                asked[kind] = identities = _identities(kind, rows)
                known = stored_rows(self._store, kind, list(dict.fromkeys(identities)))
                # Of two processors at once, the one that should have settled it was killed.
                doubled[kind] = [identity for identity, found in known.items() if found[1:]]
                fresh[kind] = self._new_rows(
                    kind, rows, identities, excused, known, repeats, written
                )
        letters = [d for d in batch.dead_letters if Place.of(d.message) not in excused]
        written.replays += len(batch.dead_letters) - len(letters)
        self._write_dead_letters(letters, written)
        self._write_rulesets(batch)
        for kind, rows in fresh.items():
            rejected = self._insert(kind, rows, written) if rows.num_rows else []
            self._write_dead_letters(rejected, written)
            # Another writer may have stored the same ids since they were asked for.
            raced = [] if alone else _identities(kind, rows)
            self._settle_races(kind, [*raced, *doubled[kind]], written)
        links.link(self._store, [*asked.get(LOOKUP, ()), *_named_lookups(batch)])
        # After the rows: no reader sees a repeat of something that is not there yet.
        self._write_repeats(repeats, written)
        self._next |= batch.next_offsets
        return written

    def _resume(self, batch: EncodedBatch) -> set[Place]:
        """Offsets of dead letters that are stored as rows, where reading did not just go on.

        A newer version may refuse what an older one stored; a replay does not change its fate.
        """
        unsure = {
            place: first
            for place, first in batch.first_offsets.items()
            if self._next.pop(place, None) != first
        }
        complete_ids(self._store, KINDS, self._cluster, unsure)
        links.complete(self._store, self._cluster, unsure)
        places = [Place.of(d.message) for d in batch.dead_letters]
        return exceptions.stored_places(
            self._store, self._cluster, [p for p in places if p[:2] in unsure]
        )

    def close(self) -> None:
        """Release the dead letters' connection; the store belongs to the caller."""
        self._dead_letters.close()

    def _new_rows(
        self,
        kind: Kind,
        rows: pa.Table,
        identities: Sequence[Identity],
        excused: set[Place],
        known: Mapping[Identity, list[Stored]],
        repeats: list[Repeat],
        written: Written,
    ) -> pa.Table:
        """The rows to store; fills in the repeats among the others."""
        places = _places(rows)
        first_here: dict[Identity, int] = {}
        keep = []
        for index, identity in enumerate(identities):
            origin = Origin(self._cluster, *places[index][:3])
            if places[index] in excused:
                written.replays += 1
            elif identity in known:
                self._sort_out_known(kind, rows, index, origin, known[identity], repeats, written)
            elif identity in first_here:
                first = first_here[identity]
                conflict = not same_content(_raw(rows, index), _raw(rows, first))
                counted = Origin(self._cluster, *places[first][:3])
                repeats.append(_repeat(kind, rows, index, identity, conflict, counted))
            else:
                first_here[identity] = index
                keep.append(index)
        if len(keep) < rows.num_rows:
            rows = rows.take(pa.array(keep, pa.int64()))
        return self._stamped(rows)

    def _sort_out_known(
        self,
        kind: Kind,
        rows: pa.Table,
        index: int,
        origin: Origin,
        stored: list[Stored],
        repeats: list[Repeat],
        written: Written,
    ) -> None:
        identity = _identities(kind, rows.slice(index, 1))[0]
        raw = _raw(rows, index)
        same = is_content(raw, stored[0], self._store, kind, identity)
        if same and any(origin == row.origin for row in stored):
            written.replays += 1
            return
        repeats.append(_repeat(kind, rows, index, identity, not same, stored[0].origin))

    def _stamped(self, rows: pa.Table) -> pa.Table:
        count = rows.num_rows
        now = pa.scalar(self._clock(), pa.timestamp("us", tz="UTC"))
        # Tells two rows of one offset apart, should two processors ever store it at once.
        insert_id = pa.scalar(secrets.randbits(63), pa.uint64())
        return (
            rows.append_column("kafka_cluster", pa.repeat(self._cluster, count))
            .append_column("ingested_at", pa.repeat(now, count))
            .append_column("insert_id", pa.repeat(insert_id, count))
        )

    def _token(self, name: str, places: Iterable[Place]) -> str:
        """Names an insert by exactly the messages in it, so that only its own repeat is dropped.

        Offsets begin anew in another cluster, and what is left of a batch after a failure is
        another insert.
        """
        return f"{name};{self._cluster};{hashlib.sha256(repr(list(places)).encode()).hexdigest()}"

    def _insert(self, kind: Kind, rows: pa.Table, written: Written) -> list[DeadLetter]:
        """Insert rows; what the store refuses comes back alone, its neighbours are stored."""
        try:
            self._store.insert(kind.table, rows, token=self._token(kind.name, _places(rows)))
        except StoreRejectedError as error:
            # A refusal that no row causes (a missing table) must not empty the topic into the
            # dead letters: a row-free insert fails the same way.
            self._store.insert(kind.table, rows.slice(0, 0), token=f"{kind.name};no rows")
            if rows.num_rows == 1:
                return [_refused_row(kind, rows, error)]
            half = rows.num_rows // 2
            return [
                *self._insert(kind, rows.slice(0, half), written),
                *self._insert(kind, rows.slice(half), written),
            ]
        written.stored[kind.name] = written.stored.get(kind.name, 0) + rows.num_rows
        return []

    def _settle_races(self, kind: Kind, identities: Sequence[Identity], written: Written) -> None:
        """Move rows of ids that another processor stored in the same instant to the repeats."""
        surplus = surplus_rows(stored_rows(self._store, kind, identities))
        for identity, row, counted in surplus:
            raw = stored_raw(self._store, kind, identity, row.insert_id)
            # A row that is gone was moved by a processor that was killed before it took the id.
            if raw is not None and row.origin != counted.origin:
                repeat = Repeat(
                    kind=kind.name,
                    identity=identity,
                    origin=row.origin,
                    timestamp_ms=row.timestamp_ms,
                    conflict=row.sha256 != counted.sha256,
                    first=counted.origin,
                    raw=raw,
                )
                self._write_repeats([repeat], written)
            for table, column in ((kind.table, kind.id_column), ("audit_store.event_ids", "id")):
                self._store.command(
                    f"DELETE FROM {table} WHERE {column} = {{id:String}} "
                    "AND tenant = {tenant:String} AND insert_id = {insert_id:UInt64}",
                    {"id": identity[1], "tenant": identity[0], "insert_id": row.insert_id},
                )
            links.unlink(self._store, kind, identity, row.insert_id)

    def _write_dead_letters(self, letters: list[DeadLetter], written: Written) -> None:
        if letters:
            self._dead_letters.publish(letters)
            rows = exceptions.dead_letter_rows(letters, self._cluster, self._clock())
            token = self._token("dead", (Place.of(letter.message) for letter in letters))
            self._store.insert("audit_store.dead_letters", rows, token=token)
            written.dead_letters.extend(letters)

    def _write_repeats(self, repeats: list[Repeat], written: Written) -> None:
        if repeats:
            rows = exceptions.repeat_rows(repeats, self._clock())
            token = self._token(
                "repeat", (Place(*repeat.origin[1:], repeat.timestamp_ms) for repeat in repeats)
            )
            self._store.insert("audit_store.repeats", rows, token=token)
            written.conflicts += sum(repeat.conflict for repeat in repeats)
            written.duplicates += sum(not repeat.conflict for repeat in repeats)

    def _write_rulesets(self, batch: EncodedBatch) -> None:
        unknown = {i: c for i, c in batch.rulesets.items() if i not in self._known_rulesets}
        if unknown:
            rows = exceptions.ruleset_rows(unknown, self._clock())
            self._store.insert("audit_store.rulesets", rows, token=f"rulesets;{sorted(unknown)}")
            self._known_rulesets |= unknown.keys()


def _identities(kind: Kind, rows: pa.Table) -> list[Identity]:
    tenants, ids = rows.column("tenant").to_pylist(), rows.column(kind.id_column).to_pylist()
    return list(zip(tenants, ids, strict=True))


def _named_lookups(batch: EncodedBatch) -> list[Identity]:
    """The lookups that a batch's outcomes name."""
    rows = batch.rows.get(OUTCOME.name)
    if rows is None:
        return []
    tenants, named = (rows.column(n).to_pylist() for n in ("tenant", "lookup_event_ids"))
    return [(t, event_id) for t, ids in zip(tenants, named, strict=True) for event_id in ids]


def _places(rows: pa.Table) -> list[Place]:
    names = ("kafka_topic", "kafka_partition", "kafka_offset")
    parts = [rows.column(name).to_pylist() for name in names]
    times = pc.cast(rows.column("kafka_timestamp"), pa.int64()).to_pylist()
    return list(map(Place, *parts, times))


def _raw(rows: pa.Table, index: int) -> bytes:
    raw: bytes = rows.column("raw")[index].as_py()
    return raw


def _repeat(
    kind: Kind,
    rows: pa.Table,
    index: int,
    identity: Identity,
    conflict: bool,
    first: Origin,
) -> Repeat:
    topic, partition, offset, timestamp_ms = _places(rows.slice(index, 1))[0]
    return Repeat(
        kind=kind.name,
        identity=identity,
        origin=Origin(first.cluster, topic, partition, offset),
        timestamp_ms=timestamp_ms,
        conflict=conflict,
        first=first,
        raw=_raw(rows, index),
    )


def _refused_row(kind: Kind, rows: pa.Table, error: Exception) -> DeadLetter:
    place, (_, event_id) = _places(rows)[0], _identities(kind, rows)[0]
    message = Message(*place, None, _raw(rows, 0))
    text = f"the store refuses this event: {str(error)[:300]}"
    return DeadLetter(message, Rejected(Reason.REJECTED_BY_STORE, "", text, event_id))
