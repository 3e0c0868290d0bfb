"""Row "replay": stored history judged again under another ruleset, in a full store.

What ``lookup-audit replay`` asks for (levels, flips, examples, cells), from the first statement to
the last answer; then the grid of ``--sweep``. Rows are made inside the engine with eight candidates
each, half dense and half hybrid, a tenth of the hybrid ones without a dense neighbour. Text that a
replay does not read is short, so that ten million lookups fit a small disk.
"""

import time
from collections.abc import Callable

from lookup_audit.processors.migrate import migrate
from lookup_audit.processors.replay.cells import read_cells
from lookup_audit.processors.replay.levels import read_examples, read_moves
from lookup_audit.processors.replay.scope import Scope
from lookup_audit.processors.replay.sweep import grid, read_sweep
from lookup_audit.processors.store import Store, open_store
from lookup_audit.schemas.ruleset import Ruleset
from tests.bench.measure import report, task
from tests.bench.queries import DAYS, JUDGEMENTS, OUTCOMES, link_answers

_CHUNK = 500_000
_ASKED = 4
_SETTLE_SECONDS = 600

_LOOKUPS = """
INSERT INTO audit_store.lookups (
    event_id, occurred_at, ingested_at, tenant, service, service_sequence, mode, model_version,
    index_version, reported_level, recomputed_level, quality_score, quality_basis, ruleset_id,
    level_check, evidence_status, source_format, `candidates.chunk_id`,
    `candidates.original_rank`, `candidates.dense_distance`, `candidates.similarity_score`,
    `candidates.l0_hit`, `candidates.kept`, kafka_cluster, kafka_topic, kafka_partition,
    kafka_offset, kafka_timestamp, insert_id, raw)
WITH
    cityHash64(number) AS h,
    toDateTime64('2026-10-01 00:00:00', 6, 'UTC')
        + toIntervalMicrosecond(toUInt64(number * {step:Float64})) AS at,
    h % 20 = 1 AS has_no_neighbour,
    if(has_no_neighbour, 1, (h % 100003) / 100003) AS quality,
    multiIf(quality >= 0.75, 'PRECISE', quality >= 0.5, 'REFERENCE', 'NONE') AS level,
    range(8) AS ranks
SELECT
    concat('evt-', lower(hex(sipHash128(number)))), at, at,
    ['acme', 'globex', 'initech'][h % 3 + 1], concat('kb-', toString(h % 4)), number,
    ['dense', 'hybrid'][h % 2 + 1], concat('minilm-l6@', toString(h % 3)), 'kb-2026-11-01',
    level, level, quality, if(h % 2 = 0, 'dense_l2', 'hybrid_l2'), 'rs-0123456789abcdef', 'pass',
    'EVIDENCE_FOUND', 'native',
    arrayMap(r -> concat('doc-', toString((h + r) % 5000), '#', toString(r)), ranks),
    arrayMap(r -> r + 1, ranks),
    arrayMap(r -> if(has_no_neighbour, NULL, 2 * (1 - quality) + r * 0.05), ranks),
    arrayMap(r -> 1 - (h % 1000 + r * 50) / 3000, ranks), arrayMap(r -> r % 2 = 0, ranks),
    arrayMap(r -> true, ranks),
    'bench', 'lookup.results.v1', h % 4, number, at, 1, hex(h)
FROM numbers({first:UInt64}, {count:UInt64})
"""


def main() -> None:
    """Fill a store and replay."""
    given = task()
    store = open_store(f"embedded:{given.engine}")
    migrate(store)
    step = DAYS * 86_400e6 / given.events
    for first in range(0, given.events, _CHUNK):
        count = min(_CHUNK, given.events - first)
        store.command(_LOOKUPS, {"first": first, "count": count, "step": step})
    store.command(OUTCOMES)
    store.command(JUDGEMENTS)
    link_answers(store)
    _wait_for_merges(store)
    ruleset, scope = Ruleset(highly_relevant_threshold=0.8), Scope()

    def replay() -> None:
        moves = read_moves(store, ruleset, scope)
        assert sum(move.lookups for move in moves) == given.events
        read_examples(store, ruleset, scope, moves)
        read_cells(store, ruleset, scope)

    def sweep() -> None:
        read_sweep(store, ruleset, scope, grid(0.5, 1.0, 0.05))

    report({"replay": _measured(replay), "sweep": _measured(sweep)})


def _measured(ask: Callable[[], object]) -> dict[str, list[float]]:
    """Wall and CPU seconds of each asking: on a busy machine only the second says much."""
    found: dict[str, list[float]] = {"seconds": [], "cpu_seconds": []}
    for _ in range(_ASKED):
        started, cpu_started = time.perf_counter(), time.process_time()
        ask()
        found["seconds"].append(time.perf_counter() - started)
        found["cpu_seconds"].append(time.process_time() - cpu_started)
    return found


def _wait_for_merges(store: Store) -> None:
    """Let the engine finish what the filling left behind: a store at rest is what is asked."""
    until = time.monotonic() + _SETTLE_SECONDS
    while store.query("SELECT count() FROM system.merges").scalar() and time.monotonic() < until:
        time.sleep(1.0)


if __name__ == "__main__":
    main()
