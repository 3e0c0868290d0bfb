"""Row "ours": the product's own processor, wired as the product wires it, on the embedded engine.

Validated, all checks, each id asked of the store before and after, raw kept, exactly once.
"""

import os
import signal
import threading
from collections.abc import Callable

from opentelemetry.metrics import NoOpMeterProvider

from lookup_audit.deploy import wiring
from lookup_audit.deploy.workers import Workers, WorkerTask
from lookup_audit.processors.kafka_source import KafkaConfig
from lookup_audit.processors.migrate import migrate
from lookup_audit.processors.processor import ProcessorConfig
from lookup_audit.processors.store import Store, open_store
from tests.bench.measure import Start, Task, report, task, wait_for_rows

# The embedded broker lets a first group member wait for half of it.
SESSION_TIMEOUT_MS = 6_000


def kafka_of(given: Task) -> KafkaConfig:
    """How ours reaches the broker."""
    return KafkaConfig(
        bootstrap_servers=given.bootstrap,
        group_id=given.group,
        session_timeout_ms=SESSION_TIMEOUT_MS,
    )


def make(given: Task, store: Store) -> Callable[[], None]:
    """The loop to run, in this process alone."""
    wiring.tune_garbage_collection()
    kafka = kafka_of(given)
    return wiring.make_processor(kafka, store, ProcessorConfig(), NoOpMeterProvider()).run


def workers_of(given: Task, count: int) -> Workers:
    """As many worker processes, and this one that owns the engine."""
    config = ProcessorConfig(workers=count)
    store = f"embedded:{given.engine}"
    return Workers(WorkerTask(kafka=kafka_of(given), processor=config, store=store))


def main() -> None:
    """Store what the topic holds; with the option ``workers``, in so many processes more."""
    given = task()
    store = open_store(f"embedded:{given.engine}")
    migrate(store)
    start = Start("lookup_audit.processors.kafka_source", "Reading lookup.")
    count = int(given.options.get("workers", 0))
    if count:
        workers = workers_of(given, count)
        start.listen_to(lambda: workers.pids)
        thread = threading.Thread(target=workers.run, daemon=True)
    else:
        thread = threading.Thread(target=make(given, store), daemon=True)
    thread.start()
    wait_for_rows(given.engine, "audit_store.lookups", given.events, thread.is_alive)
    result = start.stop()
    if count:
        for pid in workers.pids:
            os.kill(pid, signal.SIGKILL)
    report(result)


if __name__ == "__main__":
    main()
