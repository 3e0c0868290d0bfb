"""The door to ClickHouse: one client for a server and for the embedded engine.

Only this module knows clickhouse-connect. It sends whole Arrow batches, waits until they are
stored, and turns every failure into one of two kinds: the store does not answer now, or it
refuses this data.
"""

import hashlib
import logging
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, BinaryIO, Protocol
from urllib.parse import unquote, urlsplit

import clickhouse_connect
import pyarrow as pa
from clickhouse_connect.driver.binding import must_escape, quote_identifier
from clickhouse_connect.driver.client import Client
from clickhouse_connect.driver.exceptions import ClickHouseError, ProgrammingError

from lookup_audit.schemas.errors import ConfigError, StoreRejectedError, UnavailableError

logger = logging.getLogger(__name__)

# Server error codes after which the same statement may work later: timeouts, network, too many
# parts or queries, memory, read-only replicas, missing Keeper, shutting down.
_TRANSIENT_CODES = frozenset(
    {3, 159, 160, 164, 202, 203, 209, 210, 225, 236, 241, 242, 243, 252, 279, 285, 319, 425, 999}
)

_INSERT_SETTINGS: dict[str, Any] = {
    # A row that cannot be stored must be an error of this insert, before any offset is committed.
    "async_insert": 0,
    "wait_for_async_insert": 1,
    "insert_deduplicate": 1,
    "deduplicate_blocks_in_dependent_materialized_views": 1,
    # One Arrow batch is one block, so that one token covers it.
    "max_insert_block_size": 1_048_576,
    # A backfill spreads one batch over all the weeks of the retention; the default of 100 would
    # refuse it for ever.
    "max_partitions_per_insert_block": 0,
    "input_format_null_as_default": 0,
    "input_format_arrow_allow_missing_columns": 0,
}


class Store(Protocol):
    """What the processors need of a database."""

    @property
    def parameter_bytes(self) -> int:
        """The longest text that can be bound to one statement."""

    def insert(self, table: str, batch: pa.Table, *, token: str) -> None:
        """Store one batch, all or nothing per partition; returns when it is stored.

        Args:
            table: Qualified table name.
            batch: Columns named as the table's.
            token: The same batch with the same token is stored once.

        Raises:
            UnavailableError: The store does not answer; the same insert may work later.
            StoreRejectedError: The store refuses this data.
        """

    def query(self, sql: str, parameters: Mapping[str, Any] | None = None) -> "Rows":
        """Run one statement that returns rows; parameters are bound by the engine."""

    def command(self, sql: str, parameters: Mapping[str, Any] | None = None) -> None:
        """Run one statement that returns nothing."""

    def raw(
        self, sql: str, *, output_format: str, parameters: Mapping[str, Any] | None = None
    ) -> bytes:
        """Run one query and return it in a ClickHouse output format."""

    def sole_writer(self) -> AbstractContextManager[bool]:
        """Keep other writers of events out; whether that could be done.

        Where it could, what was asked before an insert still holds after it.
        """

    def close(self) -> None:
        """Release the connection."""


class Rows(list[tuple[Any, ...]]):
    """Rows of one answer with their column names."""

    def __init__(self, columns: Sequence[str], rows: Sequence[Sequence[Any]]):
        super().__init__(map(tuple, rows))
        self.columns = tuple(columns)

    def dicts(self) -> Iterator[dict[str, Any]]:
        """The rows as mappings."""
        for row in self:
            yield dict(zip(self.columns, row, strict=True))

    def scalar(self) -> Any:
        """The only value of a one-value answer."""
        return self[0][0]


class ClickHouseStore:
    """A store over one clickhouse-connect client; calls from several threads queue up."""

    # A server takes form fields of 128 KiB at most, escaped ones.
    parameter_bytes = 60_000

    def __init__(self, client: Client, *, settings: Mapping[str, Any] | None = None):
        self._client = client
        self._settings = dict(settings or {})
        self._lock = threading.Lock()

    def insert(self, table: str, batch: pa.Table, *, token: str) -> None:
        """See :meth:`Store.insert`."""
        sink = pa.BufferOutputStream()
        write_stream(batch, sink)
        with self._lock, _translated(f"insert into {table}"):
            self._client.raw_insert(
                table,
                column_names=batch.schema.names,
                insert_block=sink.getvalue().to_pybytes(),
                settings={**_INSERT_SETTINGS, "insert_deduplication_token": token},
                fmt="ArrowStream",
            )

    def query(self, sql: str, parameters: Mapping[str, Any] | None = None) -> Rows:
        """See :meth:`Store.query`."""
        with self._lock, _translated("query"):
            result = self._client.query(sql, parameters=_bound(parameters), settings=self._settings)
            return Rows(result.column_names, result.result_rows)

    def command(self, sql: str, parameters: Mapping[str, Any] | None = None) -> None:
        """See :meth:`Store.command`."""
        with self._lock, _translated("command"):
            self._client.command(sql, parameters=_bound(parameters))

    def raw(
        self, sql: str, *, output_format: str, parameters: Mapping[str, Any] | None = None
    ) -> bytes:
        """See :meth:`Store.raw`."""
        with self._lock, _translated("query"):
            return self._client.raw_query(
                sql, parameters=_bound(parameters), fmt=output_format, settings=self._settings
            )

    def sole_writer(self) -> AbstractContextManager[bool]:
        """See :meth:`Store.sole_writer`; a server has other writers."""
        return nullcontext(False)

    def close(self) -> None:
        """See :meth:`Store.close`."""
        self._client.close()


class EmbeddedStore(ClickHouseStore):
    """A store over the engine in this process.

    Batches reach the engine through anonymous memory: the client's own way writes each of them to
    a file on disk and copies it twice before that, which took a quarter of an insert.
    """

    # One question to the engine costs more than ten thousand ids in it.
    parameter_bytes = 16 * 2**20

    def insert(self, table: str, batch: pa.Table, *, token: str) -> None:
        """See :meth:`Store.insert`."""
        if not hasattr(os, "memfd_create"):  # anything but Linux
            super().insert(table, batch, token=token)
            return
        with memory_file() as file:
            write_stream(batch, file)
            self.insert_stream(table, batch.schema.names, file.fileno(), token=token)

    def insert_stream(
        self, table: str, columns: Sequence[str], descriptor: int, *, token: str
    ) -> None:
        """Store one batch that lies in an open file as an Arrow stream."""
        # Hashed, since it stands in the statement; without one the engine makes its own.
        hashed = hashlib.sha256(token.encode()).hexdigest() if token else ""
        settings = {**_INSERT_SETTINGS, "insert_deduplication_token": f"'{hashed}'"}
        sql = (
            f"INSERT INTO {table} ({', '.join(map(quote_identifier, columns))}) "
            f"FROM INFILE '/proc/self/fd/{descriptor:d}' "
            f"SETTINGS {', '.join(f'{name} = {value}' for name, value in settings.items())} "
            "FORMAT ArrowStream"
        )
        with self._lock, _translated(f"insert into {table}"):
            self._client.command(sql)

    @contextmanager
    def sole_writer(self) -> Iterator[bool]:
        """See :meth:`Store.sole_writer`; all writers of an embedded engine are in its process."""
        with _EMBEDDED_WRITER:
            yield True


# However many stores are open: a process has one engine.
_EMBEDDED_WRITER = threading.Lock()


def memory_file() -> BinaryIO:
    """A file without a name in memory, gone when it is closed (Linux)."""
    return open(os.memfd_create("lookup-audit-batch"), "w+b", buffering=0)


def write_stream(batch: pa.Table, sink: Any) -> None:
    """Write a batch as an Arrow stream."""
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_table(batch)


def _bound(parameters: Mapping[str, Any] | None) -> dict[str, Any]:
    return {
        name: _Text(value) if type(value) is str else value
        for name, value in (parameters or {}).items()
    }


_ESCAPES = str.maketrans({character: "\\" + character for character in must_escape})


class _Text(str):
    """Text that the client escapes at once: it walks over a text's characters one by one.

    Ten thousand ids are half a million characters, and that walk took longer than the engine's
    answer.
    """

    __slots__ = ()

    def __iter__(self) -> Iterator[str]:
        return iter((self.translate(_ESCAPES),))


@contextmanager
def _translated(what: str) -> Iterator[None]:
    try:
        yield
    except ClickHouseError as error:
        code = getattr(error, "code", None)
        if code is None or code in _TRANSIENT_CODES:
            raise UnavailableError(f"{what}: {error}", retry_after_seconds=1.0) from error
        raise StoreRejectedError(f"{what}: {error}") from error
    except (OSError, RuntimeError) as error:
        raise UnavailableError(f"{what}: {error}", retry_after_seconds=1.0) from error


def open_store(url: str) -> ClickHouseStore:
    """Connect to a server (``http://user:password@host:8123``) or the embedded engine.

    Args:
        url: ``http(s)://…`` or ``embedded:/path/to/directory``. One process can open the embedded
            engine on one directory only, any number of times.

    Raises:
        ConfigError: The URL is not one of these, or the process has another directory open.
        UnavailableError: The server does not answer.
    """
    if url.startswith("embedded:"):
        return _open_embedded(url.removeprefix("embedded:"))
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigError(
            f"the store's address {_without_password(url)!r} must look like "
            "http://user:password@host:8123 or embedded:/path/to/directory"
        )
    secure = parts.scheme == "https"
    with _translated(f"connect to {parts.hostname}"):
        client = clickhouse_connect.get_client(
            host=parts.hostname,
            port=parts.port or (8443 if secure else 8123),
            username=unquote(parts.username or "default"),
            password=unquote(parts.password or ""),
            secure=secure,
            # Two threads of one process must not share a session.
            autogenerate_session_id=False,
        )
    return ClickHouseStore(client)


# The directory this process has open: the engine's own words for a second one are no help.
_embedded_path: list[str] = []


def _open_embedded(path: str) -> EmbeddedStore:
    resolved = path if path == ":memory:" else os.path.realpath(path)
    if _embedded_path and _embedded_path[0] != resolved and _engine_is_open():
        raise ConfigError(
            f"this process has the embedded engine open on {_embedded_path[0]} and cannot open "
            f"{resolved} as well; use one directory, or a second process"
        )
    try:
        client = clickhouse_connect.get_client(interface="chdb", path=resolved)
    except ProgrammingError as error:
        held = _embedded_path[0] if _embedded_path else "another directory"
        raise ConfigError(
            f"cannot open the embedded engine on {resolved}: {held} is open, or another process "
            f"uses it ({error})"
        ) from error
    except ImportError as error:
        raise ConfigError(
            'the embedded engine is not installed; run: pip install "lookup-audit[embedded]"'
        ) from error
    _embedded_path[:] = [resolved]
    return EmbeddedStore(client)


def _engine_is_open() -> bool:
    import chdb

    return bool(getattr(chdb, "_open_connections", True))


def _without_password(url: str) -> str:
    parts = urlsplit(url)
    if parts.password is None:
        return url
    return url.replace(f":{parts.password}@", ":***@")
