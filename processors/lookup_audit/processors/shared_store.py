"""One embedded engine for several processes: its owner serves, worker processes ask.

An embedded engine belongs to one process. A worker's store sends each call over a socket that only
the two of them hold; a batch travels as an open file in memory, so that its bytes are written once
and read by the engine itself. Linux only, for the sake of those files.
"""

import logging
import os
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from multiprocessing.connection import Connection
from multiprocessing.reduction import recv_handle, send_handle
from typing import Any

import pyarrow as pa

from lookup_audit.processors.store import EmbeddedStore, Rows, memory_file, write_stream
from lookup_audit.schemas.errors import ConfigError, StoreRejectedError, UnavailableError

logger = logging.getLogger(__name__)


def make_pair() -> tuple[Connection, socket.socket]:
    """Both ends of a private connection: one to serve, one for a worker to inherit.

    Raises:
        ConfigError: The system has no files in memory.
    """
    if not hasattr(os, "memfd_create"):
        raise ConfigError(
            "worker processes on the embedded engine need Linux; use --workers 0 here"
        )
    mine, theirs = socket.socketpair()
    return Connection(mine.detach()), theirs


def serve(store: EmbeddedStore, connection: Connection) -> None:
    """Answer one worker until it is gone; what it held is released."""
    with ExitStack() as held, connection:
        while True:
            try:
                verb, arguments = connection.recv()
                descriptor = recv_handle(connection) if verb == "insert" else None
            except (EOFError, OSError, RuntimeError):
                return  # RuntimeError: killed between a batch's name and its file
            answer = _answer(store, held, verb, arguments, descriptor)
            try:
                connection.send(answer)
            except OSError:
                return


def _answer(
    store: EmbeddedStore, held: ExitStack, verb: str, arguments: Any, descriptor: int | None
) -> tuple[str, Any]:
    try:
        return "done", _do(store, held, verb, arguments, descriptor)
    except StoreRejectedError as error:
        return "refused", str(error)
    except UnavailableError as error:
        return "unavailable", (str(error), error.retry_after_seconds)
    except Exception as error:
        # The worker must hear of it: without an answer it would take the engine for gone.
        logger.exception("A worker's call failed, for a reason unforeseen.")
        return "unavailable", (f"{type(error).__name__}: {error}", 1.0)
    finally:
        if descriptor is not None:
            os.close(descriptor)


def _do(
    store: EmbeddedStore, held: ExitStack, verb: str, arguments: Any, descriptor: int | None
) -> Any:
    if descriptor is not None:
        table, columns, token = arguments
        store.insert_stream(table, columns, descriptor, token=token)
    elif verb == "query":
        rows = store.query(*arguments)
        return rows.columns, list(rows)
    elif verb == "command":
        store.command(*arguments)
    elif verb == "raw":
        sql, output_format, parameters = arguments
        return store.raw(sql, output_format=output_format, parameters=parameters)
    elif verb == "enter":
        return held.enter_context(store.sole_writer())
    else:
        held.close()
    return None


class RemoteStore:
    """A store whose engine is in another process; calls from several threads queue up.

    Args:
        connection: The worker's end of :func:`make_pair`.
    """

    parameter_bytes = EmbeddedStore.parameter_bytes

    def __init__(self, connection: Connection):
        self._connection = connection
        self._lock = threading.Lock()

    def insert(self, table: str, batch: pa.Table, *, token: str) -> None:
        """See :meth:`Store.insert`."""
        with memory_file() as file:
            write_stream(batch, file)
            self._ask("insert", (table, batch.schema.names, token), file.fileno())

    def query(self, sql: str, parameters: Mapping[str, Any] | None = None) -> Rows:
        """See :meth:`Store.query`."""
        return Rows(*self._ask("query", (sql, parameters)))

    def command(self, sql: str, parameters: Mapping[str, Any] | None = None) -> None:
        """See :meth:`Store.command`."""
        self._ask("command", (sql, parameters))

    def raw(
        self, sql: str, *, output_format: str, parameters: Mapping[str, Any] | None = None
    ) -> bytes:
        """See :meth:`Store.raw`."""
        answer: bytes = self._ask("raw", (sql, output_format, parameters))
        return answer

    @contextmanager
    def sole_writer(self) -> Iterator[bool]:
        """See :meth:`Store.sole_writer`; the owner lets one worker in at a time."""
        alone = self._ask("enter", ())
        try:
            yield alone
        finally:
            self._ask("leave", ())

    def _ask(self, verb: str, arguments: Any, descriptor: int | None = None) -> Any:
        with self._lock:
            try:
                self._connection.send((verb, arguments))
                if descriptor is not None:
                    send_handle(self._connection, descriptor, None)
                word, answer = self._connection.recv()
            except (EOFError, OSError) as error:
                raise UnavailableError(
                    "the process that owns the engine is gone", retry_after_seconds=1.0
                ) from error
        if word == "unavailable":
            message, seconds = answer
            raise UnavailableError(message, retry_after_seconds=seconds)
        if word == "refused":
            raise StoreRejectedError(answer)
        return answer

    def close(self) -> None:
        """See :meth:`Store.close`."""
        self._connection.close()
