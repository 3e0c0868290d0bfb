"""Peer: the same job in Quix Streams (librdkafka): same decoder, checks, columns and raw.

As fast as its model allows: an event is decoded and audited in the dataframe, a sink lays 500 at a
time out in columns with our own column builder and inserts one block a checkpoint. It stores at
least once: it asks nobody which ids are known, and its table feeds no ledger of ids.
"""

import threading
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
from quixstreams.sinks.base import BaseSink

from lookup_audit.deploy import wiring
from lookup_audit.processors.batch import Message
from lookup_audit.processors.columns import Row, lookup_table
from lookup_audit.processors.migrate import migrate
from lookup_audit.processors.store import Store, open_store
from lookup_audit.schemas.decode import LOOKUPS, Decoded
from lookup_audit.schemas.ruleset import Registry
from lookup_audit.schemas.timeliness import is_late
from lookup_audit.schemas.verdict import AuditedLookup, audit
from tests.bench.measure import Start, report, task, wait_for_rows
from tests.bench.quix_app import ASSIGNED, make_app, results_topic

_CHUNK = 500


class AuditSink(BaseSink):  # type: ignore[misc, unused-ignore]  # missing outside the bench group
    """Collects audited lookups and inserts them once a checkpoint."""

    def __init__(self, store: Store):
        super().__init__()
        self._store = store
        self._rows: list[Row[AuditedLookup]] = []
        self._tables: list[pa.Table] = []

    def add(
        self,
        value: Any,
        key: Any,
        timestamp: int,
        headers: Any,
        topic: str,
        partition: int,
        offset: int,
    ) -> None:
        """Take one audited lookup."""
        message = Message(topic, partition, offset, timestamp, None, None)
        occurred = datetime.fromisoformat(value.decoded.record.occurred_at)
        self._rows.append(Row(value, message, is_late(occurred, now=datetime.now(UTC))))
        if len(self._rows) >= _CHUNK:
            self._lay_out()

    def _lay_out(self) -> None:
        self._tables.append(lookup_table(self._rows))
        self._rows = []

    def flush(self) -> None:
        """Insert what was collected; offsets are committed after it."""
        if self._rows:
            self._lay_out()
        if not self._tables:
            return
        rows = pa.concat_tables(self._tables)
        self._tables = []
        now = pa.scalar(datetime.now(UTC), pa.timestamp("us", tz="UTC"))
        rows = (
            rows.append_column("kafka_cluster", pa.repeat("bench", rows.num_rows))
            .append_column("ingested_at", pa.repeat(now, rows.num_rows))
            .append_column("insert_id", pa.repeat(pa.scalar(1, pa.uint64()), rows.num_rows))
        )
        self._store.insert("audit_store.lookups", rows, token="")


def audited(value: bytes) -> AuditedLookup:
    """Decode, validate and audit one lookup."""
    decoded = LOOKUPS.decode(value)
    assert isinstance(decoded, Decoded), "the load is valid"
    return audit(decoded, _REGISTRY)


_REGISTRY = Registry()


def main() -> None:
    """Store what the topic holds."""
    given = task()
    store = open_store(f"embedded:{given.engine}")
    migrate(store)
    for view in ("lookup_ids", "outcome_ids", "judgement_ids"):
        store.command(f"DROP TABLE audit_store.{view}")
    start = Start(*ASSIGNED)
    app = make_app(given)
    app.dataframe(results_topic(app, "bytes")).apply(audited).sink(AuditSink(store))
    wiring.tune_garbage_collection()

    def watch() -> None:
        wait_for_rows(given.engine, "audit_store.lookups", given.events, lambda: True)
        report(start.stop())

    threading.Thread(target=watch, daemon=True).start()
    app.run()


if __name__ == "__main__":
    main()
