"""Where auditors' verbs write: a server, a running stack, or a data directory at rest.

The same forms as :mod:`lookup_audit.deploy.reader`. A running stack holds the embedded engine, so
its rows go to it over HTTP.
"""

import json
import urllib.error
import urllib.request
from pathlib import Path

import pyarrow as pa

from lookup_audit.deploy.control import CheckedStore, RowsRefusedError, Writer, control_table
from lookup_audit.deploy.embedded.control_http import (
    CONTENT_TYPE,
    MAX_BODY_BYTES,
    PREFIX,
    TOKEN_HEADER,
)
from lookup_audit.deploy.embedded.data_dir import DataDir
from lookup_audit.processors.migrate import migrate
from lookup_audit.processors.store import open_store
from lookup_audit.schemas.errors import ConfigError, UnavailableError

__all__ = ["HttpWriter", "RowsRefusedError", "Writer", "open_writer"]


class HttpWriter:
    """Writes through the control routes of a running stack.

    Args:
        url: Base URL of the stack.
        token: Bearer token, where it wants one.
    """

    def __init__(self, url: str, token: str | None = None):
        self._url = url.rstrip("/")
        self._headers = {"Content-Type": CONTENT_TYPE}
        if token:
            self._headers["Authorization"] = f"Bearer {token}"

    def insert(self, table: str, batch: pa.Table, *, token: str) -> None:
        """See :meth:`Writer.insert`."""
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as stream:
            stream.write_table(batch)
        body = sink.getvalue().to_pybytes()
        if len(body) > MAX_BODY_BYTES:
            raise RowsRefusedError(f"more than {MAX_BODY_BYTES} bytes at once; write in parts")
        request = urllib.request.Request(
            f"{self._url}{PREFIX}/{control_table(table)}",
            body,
            self._headers | {TOKEN_HEADER: token},
        )
        try:
            urllib.request.urlopen(request, timeout=60).close()
        except urllib.error.HTTPError as error:
            raise _translated(error) from error
        except OSError as error:
            raise UnavailableError(f"{self._url} does not answer: {error}") from error

    def close(self) -> None:
        """See :meth:`Writer.close`."""


def _translated(error: urllib.error.HTTPError) -> Exception:
    text = error.read().decode("utf-8", "replace")
    try:
        found = json.loads(text)
    except ValueError:
        found = {}
    message = found.get("error", text) if isinstance(found, dict) else text
    if error.code == 401:
        return ConfigError("the service wants a token; set LOOKUP_AUDIT_TOKEN to one it knows")
    if error.code in (429, 503):
        return UnavailableError(str(message))
    if error.code == 404:
        return ConfigError("the running stack takes no rows; restart it with this version")
    column = found.get("column", "") if isinstance(found, dict) else ""
    return RowsRefusedError(str(message), column=str(column))


class _DirectoryWriter(CheckedStore):
    """Opens the engine of a directory that no stack holds; brings its tables up to date."""

    def __init__(self, directory: DataDir):
        directory.acquire()
        self._directory = directory
        try:
            store = open_store(f"embedded:{directory.engine}")
            super().__init__(store)
            migrate(store)
        except BaseException:
            directory.release()
            raise

    def close(self) -> None:
        """See :meth:`Writer.close`."""
        super().close()
        self._directory.release()


def open_writer(store: str | None, data_dir: Path, token: str | None = None) -> Writer:
    """Find something to write to; close a reader of a directory at rest before.

    Args:
        store: URL of a ClickHouse server, or ``None`` for the data directory.
        data_dir: Of an embedded stack, running or not.
        token: For a running stack that wants one.

    Raises:
        ConfigError: There is nothing there, or another process holds it.
        UnavailableError: The server does not answer.
    """
    if store:
        return CheckedStore(open_store(store))
    directory = DataDir(data_dir)
    running = directory.running()
    if running is not None:
        return HttpWriter(running.url, token)
    directory.must_exist()
    return _DirectoryWriter(directory)
