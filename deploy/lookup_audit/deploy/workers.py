"""Processors in worker processes, and the process that looks after them.

Each worker is a whole processor: a member of the group that polls, audits and stores its own
partitions, so that one which is killed is no other case than a killed replica, whose messages are
read again. Against a server each has its own connection; the embedded engine stays in the process
that owns it, and workers reach it through ``shared_store``.
"""

import logging
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection

from pydantic import BaseModel, ConfigDict

from lookup_audit.processors.kafka_source import KafkaConfig
from lookup_audit.processors.processor import ProcessorConfig
from lookup_audit.processors.shared_store import make_pair, serve
from lookup_audit.processors.store import EmbeddedStore, open_store
from lookup_audit.schemas.errors import UnavailableError

logger = logging.getLogger(__name__)

EMBEDDED = "embedded:"
_LOOK_SECONDS = 0.2
# A worker stores what it has read before it ends; its own limit is 30 seconds.
_DRAIN_SECONDS = 40.0
# One that ends sooner has not worked at all.
_STILLBORN_SECONDS = 5.0
_STILLBORN_LIMIT = 3


class WorkerTask(BaseModel):
    """What a worker is told on its standard input: addresses may hold passwords.

    Args:
        kafka: The brokers and the group.
        processor: When batches are stored.
        store: Address of the store; that of an embedded engine is opened by the owner alone.
        metrics_port: Loopback port of this worker's own metrics.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    kafka: KafkaConfig
    processor: ProcessorConfig
    store: str
    metrics_port: int | None = None

    @property
    def is_embedded(self) -> bool:
        """Whether the engine is the owner's."""
        return self.store.startswith(EMBEDDED)


@dataclass(slots=True)
class _Worker:
    process: subprocess.Popen[bytes]
    started: float
    stillborn: int
    server: threading.Thread | None


class Workers:
    """Runs as many processors as asked for, each in a process of its own.

    Args:
        task: What each of them does; worker ``n`` serves metrics at the port given plus ``n``.
    """

    def __init__(self, task: WorkerTask):
        self._task = task
        self._workers: dict[int, _Worker] = {}
        self._stopping = threading.Event()

    @property
    def pids(self) -> list[int]:
        """Process ids of the workers now."""
        return [worker.process.pid for worker in self._workers.values()]

    def run(self) -> None:
        """Start the workers and keep them running until :meth:`stop`; then let them drain.

        Raises:
            UnavailableError: One ends again and again before it has done anything.
            ConfigError: The embedded engine cannot be shared on this system.
        """
        try:
            for number in range(self._task.processor.workers):
                self._workers[number] = self._start(number)
            while not self._stopping.wait(_LOOK_SECONDS):
                for number, worker in list(self._workers.items()):
                    if worker.process.poll() is not None:
                        self._workers[number] = self._start_again(number, worker)
        finally:
            self._end()

    def stop(self) -> None:
        """Ask :meth:`run` to drain and return; safe from any thread or signal handler."""
        self._stopping.set()

    def _start(self, number: int, stillborn: int = 0) -> _Worker:
        task, descriptor, server = self._task, -1, None
        if task.metrics_port is not None:
            task = task.model_copy(update={"metrics_port": task.metrics_port + number})
        theirs = None
        if task.is_embedded:
            mine, theirs = make_pair()
            descriptor = theirs.fileno()
            # A connection of its own, so that no worker waits for another one's questions.
            store = open_store(task.store)
            assert isinstance(store, EmbeddedStore), "the address says so"
            server = threading.Thread(
                target=_serve, args=(store, mine), name=f"worker-{number}", daemon=True
            )
            server.start()
        try:
            process = subprocess.Popen(
                [sys.executable, "-m", "lookup_audit.deploy.worker", str(descriptor)],
                stdin=subprocess.PIPE,
                pass_fds=(descriptor,) if theirs is not None else (),
                # A terminal's Ctrl-C reaches this process alone, which then lets them drain.
                start_new_session=True,
            )
        finally:
            if theirs is not None:
                theirs.close()
        assert process.stdin is not None, "it was asked for"
        with suppress(BrokenPipeError):  # it has ended already, which is seen soon
            process.stdin.write(task.model_dump_json().encode() + b"\n")
            process.stdin.flush()
        return _Worker(process, time.monotonic(), stillborn, server)

    def _start_again(self, number: int, worker: _Worker) -> _Worker:
        _close(worker)
        code = worker.process.returncode
        lived = time.monotonic() - worker.started
        stillborn = worker.stillborn + 1 if lived < _STILLBORN_SECONDS else 0
        if stillborn >= _STILLBORN_LIMIT:
            raise UnavailableError(
                f"worker {number} ended {stillborn} times right after its start (last with code "
                f"{code}); its output above tells why"
            )
        logger.warning(
            "Worker %d ended with code %d and is started again; what it had not stored is read "
            "again.",
            number,
            code,
        )
        return self._start(number, stillborn)

    def _end(self) -> None:
        for worker in self._workers.values():
            with suppress(OSError):
                worker.process.terminate()
        deadline = time.monotonic() + _DRAIN_SECONDS
        for number, worker in self._workers.items():
            try:
                worker.process.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                logger.warning("Worker %d did not drain in time and was killed.", number)
                worker.process.kill()
                worker.process.wait()
            _close(worker)
        self._workers = {}


def _serve(store: EmbeddedStore, connection: Connection) -> None:
    try:
        serve(store, connection)
    finally:
        store.close()


def _close(worker: _Worker) -> None:
    if worker.process.stdin is not None:
        with suppress(OSError):
            worker.process.stdin.close()
    if worker.server is not None:
        worker.server.join(_DRAIN_SECONDS)
