"""Row "queries": one lookup by its id, and the headline query, in a full store.

Rows are made inside the engine with the cardinalities of real ones; every tenth has a raw event of
about 8 kB, the others a short one, so that millions fit a small disk. Two of a hundred lookups have
an outcome, half of the answers a judgement.
"""

import statistics
import time
from collections.abc import Callable

from lookup_audit.deploy.cli.lookup import LOOKUP_SQL
from lookup_audit.deploy.embedded.read_only import ReadOnlyEngine
from lookup_audit.processors.migrate import migrate, shipped_migrations
from lookup_audit.processors.store import Store, open_store
from tests.bench.measure import report, task

_CHUNK = 250_000
_ASKED = 15
DAYS = 30

# occurred_at runs over 30 days with the number, as events come; ids say nothing of their time.
_LOOKUPS = """
INSERT INTO audit_store.lookups (
    event_id, occurred_at, ingested_at, tenant, service, service_version, service_instance,
    service_sequence, run_id, tool_call_id, trace_id, span_id, mode, model_version, index_version,
    top_k, query_text, query_language, reported_level, recomputed_level, reported_quality,
    quality_score, quality_basis, ruleset_id, stated_ruleset_id, level_check, evidence_status,
    returned_count, selected_chunk_ids, latency_ms, source_format,
    `candidates.chunk_id`, `candidates.document_id`, `candidates.document_version`,
    `candidates.document_updated_at`, `candidates.source_url`, `candidates.original_rank`,
    `candidates.dense_distance`, `candidates.rrf_score`, `candidates.rerank_score`,
    `candidates.similarity_score`, `candidates.reported_quality`, `candidates.quality_score`,
    `candidates.l0_hit`, `candidates.tokens`, `candidates.reported_layer`, `candidates.layer`,
    `candidates.kept`, `candidates.drop_reason`, `candidates.duplicate`,
    kafka_cluster, kafka_topic, kafka_partition, kafka_offset, kafka_timestamp, insert_id, raw)
WITH
    cityHash64(number) AS h,
    toDateTime64('2026-10-01 00:00:00', 6, 'UTC')
        + toIntervalMicrosecond(toUInt64(number * {step:Float64})) AS at,
    (h % 1000) / 1000 AS quality,
    multiIf(quality >= 0.75, 'PRECISE', quality >= 0.5, 'REFERENCE', 'NONE') AS level,
    range(8) AS ranks
SELECT
    concat('evt-', lower(hex(sipHash128(number)))), at, at,
    ['acme', 'globex', 'initech'][h % 3 + 1], concat('kb-', toString(h % 4)), '2.3.1',
    concat('pod-', toString(h % 12)),
    number, concat('run-', lower(hex(sipHash128(number, 1)))), 'call-1',
    lower(hex(sipHash128(number, 2))), lower(hex(sipHash64(number))),
    ['dense', 'hybrid'][h % 2 + 1],
    concat('minilm-l6@', toString(h % 3)), 'kb-2026-11-01', 8,
    concat('what is the default timeout of client ', toString(h)), 'en', level, level, quality,
    quality, 'dense_l2', 'rs-0123456789abcdef', 'rs-0123456789abcdef', 'pass', 'EVIDENCE_FOUND', 1,
    [concat('doc-', toString(h % 5000), '#0')], 40 + h % 100, 'native',
    arrayMap(r -> concat('doc-', toString((h + r) % 5000), '#', toString(r)), ranks),
    arrayMap(r -> concat('doc-', toString((h + r) % 5000)), ranks),
    arrayMap(r -> 'v3.2', ranks), arrayMap(r -> at, ranks),
    arrayMap(r -> concat('https://kb.example.com/p/', toString((h + r) % 5000)), ranks),
    arrayMap(r -> r + 1, ranks), arrayMap(r -> (h % 1000 + r * 50) / 1000, ranks),
    arrayMap(r -> NULL, ranks), arrayMap(r -> NULL, ranks),
    arrayMap(r -> 1 - (h % 1000 + r * 50) / 3000, ranks),
    arrayMap(r -> (h % 1000 + r) / 1100, ranks), arrayMap(r -> (h % 1000 + r) / 1100, ranks),
    arrayMap(r -> false, ranks), arrayMap(r -> 100 + r, ranks), arrayMap(r -> 'middle', ranks),
    arrayMap(r -> 'middle', ranks), arrayMap(r -> true, ranks), arrayMap(r -> '', ranks),
    arrayMap(r -> false, ranks),
    'bench', 'lookup.results.v1', h % 4, number, at, 1,
    if(number % 10 = 0,
       arrayStringConcat(arrayMap(i -> hex(cityHash64(number, i % 250)), range(500))), hex(h))
FROM numbers({first:UInt64}, {count:UInt64})
"""

OUTCOMES = """
INSERT INTO audit_store.outcomes (
    outcome_id, occurred_at, ingested_at, tenant, run_id, lookup_event_ids, action, stance,
    refusal_reason, answer_model, kafka_cluster, kafka_topic, kafka_partition, kafka_offset,
    kafka_timestamp, insert_id, raw)
SELECT
    concat('out-', event_id), occurred_at, occurred_at, tenant, run_id, [event_id],
    if(service_sequence % 150 = 0, 'refused', 'answered'), 'firm',
    if(service_sequence % 150 = 0, 'low_quality', ''), 'answerer@5', 'bench', 'lookup.outcomes.v1',
    0, service_sequence, occurred_at, 1, event_id
FROM audit_store.lookups WHERE service_sequence % 50 = 0
"""

JUDGEMENTS = """
INSERT INTO audit_store.judgements (
    judgement_id, occurred_at, ingested_at, tenant, outcome_id, verdict, source, judge_id,
    kafka_cluster, kafka_topic, kafka_partition, kafka_offset, kafka_timestamp, insert_id, raw)
SELECT
    concat('jdg-', outcome_id), occurred_at, occurred_at, tenant, outcome_id,
    ['correct', 'incorrect', 'partly'][cityHash64(outcome_id) % 3 + 1], 'human', 'reviewer-3',
    'bench', 'lookup.outcomes.v1', 1, kafka_offset, occurred_at, 1, outcome_id
FROM audit_store.outcomes WHERE action = 'answered' AND cityHash64(outcome_id) % 2 = 0
"""

HEADLINE = "SELECT * FROM audit.ratio_daily ORDER BY day, tenant, model_version, mode"
_IDS = """
SELECT event_id FROM audit_store.lookups WHERE service_sequence % {every:UInt64} = 7
ORDER BY cityHash64(event_id) LIMIT {limit:UInt64}
"""


def main() -> None:
    """Fill a store and ask."""
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
    every = max(8, given.events // 1_000)
    ids = [row[0] for row in store.query(_IDS, {"every": every, "limit": _ASKED})]
    reader = ReadOnlyEngine(given.engine, connections=1)

    def by_id(event_id: str) -> Callable[[], object]:
        return lambda: reader.query(
            LOOKUP_SQL, default_format="JSONEachRow", parameters={"id": event_id}
        )

    result: dict[str, object] = {
        "by_id": [_milliseconds(by_id(event_id)) for event_id in ids],
        "headline": [_milliseconds(lambda: reader.query(HEADLINE)) for _ in range(_ASKED)],
        "outcomes": store.query("SELECT count() FROM audit_store.outcomes").scalar(),
    }
    report(result)


def link_answers(store: Store) -> None:
    """Join outcomes with lookups as a migration does with what was stored before it."""
    for migration in shipped_migrations():
        for statement in migration.statements():
            if statement.startswith("INSERT INTO audit_store.answered_lookups"):
                store.command(statement)


def _milliseconds(ask: Callable[[], object]) -> float:
    started = time.perf_counter()
    ask()
    return (time.perf_counter() - started) * 1000


def median(times: list[float]) -> float:
    """Of the asked, without the first, which finds nothing cached."""
    return statistics.median(times[1:])


if __name__ == "__main__":
    main()
