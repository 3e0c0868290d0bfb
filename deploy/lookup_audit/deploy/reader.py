"""Read-only SQL for people: against a server, a running stack, or a data directory at rest.

All three answer the same statements; in each it is the engine that refuses a change.
"""

import base64
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lookup_audit.deploy.embedded.data_dir import DataDir
from lookup_audit.deploy.embedded.read_only import QueryError, ReadOnlyEngine, escape
from lookup_audit.processors.reading import QueryRefusedError, Reader
from lookup_audit.schemas.errors import ConfigError, UnavailableError

DEFAULT_DATA_DIR = Path("lookup-audit-data")


class HttpReader:
    """Reads over ClickHouse's HTTP interface.

    Args:
        url: Base URL; a name and password in it are sent as basic authentication.
        token: Bearer token, where the other side wants one.
        settings: Sent with every statement.
    """

    def __init__(
        self, url: str, *, token: str | None = None, settings: Mapping[str, str] | None = None
    ):
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ConfigError("the store's address must look like http://user:password@host:8123")
        host = f"{parts.hostname}:{parts.port}" if parts.port else parts.hostname
        self._url = f"{parts.scheme}://{host}{parts.path.rstrip('/')}/"
        self._settings = dict(settings or {})
        self._headers = {"Content-Type": "text/plain; charset=utf-8"}
        if token:
            self._headers["Authorization"] = f"Bearer {token}"
        elif parts.username:
            secret = f"{urllib.parse.unquote(parts.username)}:"
            secret += urllib.parse.unquote(parts.password or "")
            encoded = base64.b64encode(secret.encode()).decode()
            self._headers["Authorization"] = f"Basic {encoded}"

    def raw(
        self, sql: str, *, output_format: str, parameters: Mapping[str, Any] | None = None
    ) -> bytes:
        """See :meth:`Reader.raw`."""
        options = {
            f"param_{name}": escape(str(value)) for name, value in (parameters or {}).items()
        }
        options |= {"default_format": output_format, "database": "audit", **self._settings}
        request = urllib.request.Request(
            f"{self._url}?{urllib.parse.urlencode(options)}",
            data=sql.encode(),
            headers=self._headers,
        )
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:
                data: bytes = answer.read()
                return data
        except urllib.error.HTTPError as error:
            text = error.read().decode("utf-8", "replace").strip()
            if error.code == 401:
                raise ConfigError(
                    "the service wants a token; set LOOKUP_AUDIT_TOKEN to one it knows"
                ) from error
            raise QueryRefusedError(text or str(error)) from error
        except OSError as error:
            raise UnavailableError(f"{self._url} does not answer: {error}") from error

    def close(self) -> None:
        """See :meth:`Reader.close`."""


class EngineReader:
    """Reads a data directory that no stack holds, by opening the engine here."""

    def __init__(self, data_dir: DataDir):
        data_dir.acquire()
        self._data_dir = data_dir
        self._engine = ReadOnlyEngine(str(data_dir.engine), connections=1)

    def raw(
        self, sql: str, *, output_format: str, parameters: Mapping[str, Any] | None = None
    ) -> bytes:
        """See :meth:`Reader.raw`."""
        values = {name: escape(str(value)) for name, value in (parameters or {}).items()}
        try:
            return self._engine.query(sql, default_format=output_format, parameters=values)[0]
        except QueryError as error:
            raise QueryRefusedError(str(error)) from error

    def close(self) -> None:
        """See :meth:`Reader.close`."""
        self._engine.close()
        self._data_dir.release()


def open_reader(store: str | None, data_dir: Path, token: str | None = None) -> Reader:
    """Find something to read.

    Args:
        store: URL of a ClickHouse server, or ``None`` for the data directory.
        data_dir: Of an embedded stack, running or not.
        token: For a running stack that wants one.

    Raises:
        ConfigError: There is nothing there.
    """
    if store:
        # 2: nothing can be changed, yet limits may still be set with a query.
        return HttpReader(store, settings={"readonly": "2"})
    directory = DataDir(data_dir)
    running = directory.running()
    if running is not None:
        return HttpReader(f"{running.url}/clickhouse", token=token)
    directory.must_exist()
    return EngineReader(directory)
