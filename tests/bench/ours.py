"""Row "ours": the product's own processor, wired as the product wires it, on the embedded engine.

Validated, all checks, each id asked of the store before and after, raw kept, exactly once.
"""

import threading
from collections.abc import Callable

from opentelemetry.metrics import NoOpMeterProvider

from lookup_audit.deploy import wiring
from lookup_audit.processors.kafka_source import KafkaConfig
from lookup_audit.processors.migrate import migrate
from lookup_audit.processors.processor import ProcessorConfig
from lookup_audit.processors.store import Store, open_store
from tests.bench.measure import Start, Task, report, task, wait_for_rows

# The embedded broker lets a first group member wait for half of it.
SESSION_TIMEOUT_MS = 6_000


def make(given: Task, store: Store) -> Callable[[], None]:
    """The loop to run; ``workers`` is how many processes decode and audit, 1 for this one alone."""
    workers = int(given.options.get("workers", 1))
    if workers != 1:
        raise RuntimeError("the product has no worker processes yet; use --workers 1")
    kafka = KafkaConfig(
        bootstrap_servers=given.bootstrap,
        group_id=given.group,
        session_timeout_ms=SESSION_TIMEOUT_MS,
    )
    wiring.tune_garbage_collection()
    return wiring.make_processor(kafka, store, ProcessorConfig(), NoOpMeterProvider()).run


def main() -> None:
    """Store what the topic holds."""
    given = task()
    store = open_store(f"embedded:{given.engine}")
    migrate(store)
    start = Start("lookup_audit.processors.kafka_source", "Reading lookup.")
    thread = threading.Thread(target=make(given, store), daemon=True)
    thread.start()
    wait_for_rows(given.engine, "audit_store.lookups", given.events, thread.is_alive)
    report(start.stop())


if __name__ == "__main__":
    main()
