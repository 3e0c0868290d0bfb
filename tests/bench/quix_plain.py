"""Peer: Quix Streams (librdkafka) without validation, checks and raw.

Its own JSON deserializer, then flat columns, then the insert; nothing is refused and nothing can
be proven.
"""

import threading
from collections.abc import Sequence
from itertools import accumulate, chain
from operator import itemgetter
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from quixstreams.sinks.base import BaseSink

from lookup_audit.deploy import wiring
from lookup_audit.processors.migrate import migrate
from lookup_audit.processors.store import Store, open_store
from tests.bench import flat
from tests.bench.measure import Start, report, task, wait_for_rows
from tests.bench.quix_app import ASSIGNED, make_app, results_topic

_CHUNK = 500
_TIME = pa.timestamp("us", tz="UTC")


class FlatSink(BaseSink):  # type: ignore[misc, unused-ignore]  # missing outside the bench group
    """Collects events and inserts their columns once a checkpoint."""

    def __init__(self, store: Store):
        super().__init__()
        self._store = store
        self._events: list[dict[str, Any]] = []
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
        """Take one event."""
        self._events.append(value)
        if len(self._events) >= _CHUNK:
            self._lay_out()

    def _lay_out(self) -> None:
        self._tables.append(columns(self._events))
        self._events = []

    def flush(self) -> None:
        """Insert what was collected; offsets are committed after it."""
        if self._events:
            self._lay_out()
        if self._tables:
            self._store.insert(flat.TABLE, pa.concat_tables(self._tables), token="")
            self._tables = []


def columns(events: Sequence[dict[str, Any]]) -> pa.Table:
    """Events as flat columns."""
    parts = {
        part: [event.get(part) or {} for event in events]
        for part in ("service", "versions", "query", "retrieval_trace", "context_budget")
    }

    def take(path: tuple[str, ...]) -> list[Any]:
        source = events if len(path) == 1 else parts[path[0]]
        return [one.get(path[-1]) for one in source]

    made = {name: _text(take(path)) for name, path in flat.TEXTS.items()}
    made |= {name: pa.array(take(path), pa.uint64()) for name, path in flat.COUNTS.items()}
    made |= {name: pa.array(take(path), pa.float64()) for name, path in flat.FLOATS.items()}
    made["occurred_at"] = pc.cast(pa.array(take(("occurred_at",)), pa.string()), _TIME)
    made["truncated"] = pa.array(take(("truncated",)), pa.bool_())
    made["selected_chunk_ids"] = pa.array(take(("selected_chunk_ids",)), pa.list_(pa.string()))
    lists = [event["candidates"] for event in events]
    offsets = pa.array(chain((0,), accumulate(map(len, lists))), pa.int32())
    candidates = list(chain.from_iterable(lists))
    for name, values in _candidate_columns(candidates).items():
        made[f"candidates.{name}"] = pa.ListArray.from_arrays(offsets, values)
    return pa.table(made)


def _candidate_columns(candidates: list[dict[str, Any]]) -> dict[str, Any]:
    def take(name: str) -> list[Any]:
        return list(map(itemgetter(name), candidates))

    made = {name: _text(take(name)) for name in flat.CANDIDATE_TEXTS}
    made |= {name: pa.array(take(name), pa.float64()) for name in flat.CANDIDATE_FLOATS}
    made |= {name: pa.array(take(name), pa.uint64()) for name in flat.CANDIDATE_COUNTS}
    made["kept"] = pa.array(take("kept"), pa.bool_())
    updated = pa.array(take("document_updated_at"), pa.string())
    made["document_updated_at"] = pc.cast(updated, _TIME)
    return made


def _text(values: list[Any]) -> Any:
    return pc.fill_null(pa.array(values, pa.string()), "")


def main() -> None:
    """Store what the topic holds."""
    given = task()
    store = open_store(f"embedded:{given.engine}")
    migrate(store)
    store.command(flat.ddl())
    start = Start(*ASSIGNED)
    app = make_app(given)
    app.dataframe(results_topic(app, "json")).sink(FlatSink(store))
    wiring.tune_garbage_collection()

    def watch() -> None:
        wait_for_rows(given.engine, flat.TABLE, given.events, lambda: True)
        report(start.stop())

    threading.Thread(target=watch, daemon=True).start()
    app.run()


if __name__ == "__main__":
    main()
