"""One worker process: ``python -m lookup_audit.deploy.worker DESCRIPTOR``, run by ``workers``.

Its task comes on standard input, which then stays open: it ends when the process that started this
one is gone, and so does the worker. What it had not stored is read again by the next.
"""

import logging
import os
import signal
import sys
import threading
import time
from multiprocessing.connection import Connection
from types import FrameType

from prometheus_client import start_http_server

from lookup_audit.collector.telemetry import make_telemetry
from lookup_audit.deploy import wiring
from lookup_audit.deploy.workers import WorkerTask
from lookup_audit.processors.shared_store import RemoteStore
from lookup_audit.processors.store import Store, open_store
from lookup_audit.schemas.errors import UnavailableError

logger = logging.getLogger(__name__)


def main() -> None:
    """Process until SIGTERM, or until the owner is gone."""
    logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    logging.getLogger("kafka").setLevel(logging.ERROR)
    logging.getLogger("lookup_audit").setLevel(os.environ.get("LOOKUP_AUDIT_LOG_LEVEL", "INFO"))
    task = WorkerTask.model_validate_json(sys.stdin.readline())
    threading.Thread(target=_end_with_owner, daemon=True).start()
    telemetry = make_telemetry("lookup-audit-processor")
    if task.metrics_port is not None:
        start_http_server(task.metrics_port, addr="127.0.0.1", registry=telemetry.registry)
    store = _store_of(task, int(sys.argv[1]))
    processor = wiring.make_processor(task.kafka, store, task.processor, telemetry.meter_provider)

    def stop(number: int, frame: FrameType | None) -> None:
        processor.stop()

    signal.signal(signal.SIGTERM, stop)
    wiring.tune_garbage_collection()
    processor.run()


def _store_of(task: WorkerTask, descriptor: int) -> Store:
    """The owner's engine, or the server as soon as it answers."""
    if task.is_embedded:
        return RemoteStore(Connection(descriptor))
    while True:
        try:
            return open_store(task.store)
        except UnavailableError as error:
            logger.warning("Waiting: %s", error)
            time.sleep(error.retry_after_seconds)


def _end_with_owner() -> None:
    sys.stdin.read()
    os._exit(1)


if __name__ == "__main__":
    main()
