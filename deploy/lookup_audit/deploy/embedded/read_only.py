"""The embedded engine for readers: a connection of its own that the engine keeps read-only.

The engine's ``readonly`` setting refuses every change and every table function that reaches
outside. It does not refuse the scalar function ``file``, ``INTO OUTFILE`` or a second statement,
so each query is first parsed by the engine itself, without running it, and only its normal form
is looked at and run.
"""

import contextlib
import queue
import re
from collections.abc import Iterator, Mapping
from typing import Any

from lookup_audit.schemas.errors import LookupAuditError

_LITERALS = re.compile(r"'(?:[^'\\]|\\.|'')*'|`(?:[^`\\]|\\.)*`|\"(?:[^\"\\]|\\.)*\"")
_READS = re.compile(r"(?:SELECT|WITH|SHOW|EXISTS|EXPLAIN|DESCRIBE|\()", re.I)
# Names, called or not: ``arrayMap(file, …)`` and ``* APPLY file`` call them too.
_OUTSIDE = re.compile(
    r"\bINTO\s+OUTFILE\b|\beval\s*\(|\b(?:file|hasColumnInTable|catboostEvaluate|showCertificate)\b"
    r"|\bai(?:classify|embed|extract|filter|generate|redact|similarity|translate)\b",
    re.I,
)
# Of a table function DESCRIBE reads the columns from where it points, and some make a file before
# they are refused.
_DESCRIBES_FUNCTION = re.compile(
    r"\bDESC(?:RIBE)?\s+(?:TABLE\s+)?[\w.]*\s*\(\s*(?!SELECT\b|WITH\b)", re.I
)
_TABLE_FUNCTION = re.compile(
    r"\b(?:sqlite|url\w*|s3\w*|gcs|oss|cosn|mysql|postgresql|mongodb|redis|jdbc|odbc|hdfs\w*|azure\w*"
    r"|remote\w*|cluster\w*|executable|arrowFlight|ytsaurus|iceberg\w*|deltaLake\w*|hudi\w*|paimon\w*"
    r"|input|python|fuzz\w+|dictionary|mergeTree\w+)\s*\(",
    re.I,
)
_IDENTIFIER_PARAMETER = re.compile(r"\{\s*(\w+)\s*:\s*Identifier\s*\}", re.I)
_FORMAT = re.compile(r"\s+FORMAT\s+(\w+)\s*$", re.I)
_CODE = re.compile(r"Code: (\d+)")

_ESCAPES = str.maketrans({"\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r", "\0": "\\0"})

READONLY_CODE = 164
_LIMITS = {
    "max_execution_time": 60,
    "max_result_bytes": 1 << 30,
    "max_memory_usage": 4 << 30,
}


class QueryError(LookupAuditError):
    """A query that the engine, or the read-only rule, refuses.

    Args:
        message: In ClickHouse's form, ``Code: N. DB::Exception: …``.
    """

    def __init__(self, message: str):
        super().__init__(message)
        found = _CODE.search(message)
        self.code = int(found[1]) if found else 1002


class ReadOnlyEngine:
    """Runs readers' queries on read-only connections to the engine of this process.

    Args:
        path: The directory the process has open.
        connections: Queries that may run at once.
    """

    def __init__(self, path: str, *, connections: int = 2):
        self._path = path
        self._idle: queue.SimpleQueue[Any] = queue.SimpleQueue()
        for _ in range(connections):
            self._idle.put(None)

    def query(
        self,
        sql: str,
        *,
        default_format: str = "TabSeparated",
        parameters: Mapping[str, str] | None = None,
    ) -> tuple[bytes, str]:
        """Run one query; returns the bytes and the format they are in.

        Args:
            sql: One reading statement; may end with ``FORMAT name``.
            default_format: Where the statement names none.
            parameters: Values of ``{name:Type}``, as ClickHouse's HTTP interface takes them.

        Raises:
            QueryError: The statement is not one reading statement, or the engine refuses it.
        """
        if not re.fullmatch(r"\w+", default_format):
            raise QueryError(f"Code: 73. DB::Exception: Unknown format {default_format!r}")
        with self._connection() as connection:
            normal = self._normal_form(connection, sql)
            for name in _IDENTIFIER_PARAMETER.findall(normal):
                if _OUTSIDE.search((parameters or {}).get(name, "")):
                    raise _refused()
            found = _FORMAT.search(normal)
            output = found[1] if found else default_format
            result = _run(
                connection, _FORMAT.sub("", normal), output, dict(parameters) if parameters else {}
            )
            return result, output

    def _normal_form(self, connection: Any, sql: str) -> str:
        formatted = _run(
            connection,
            "SELECT formatQuerySingleLine({sql:String})",
            "TSVRaw",
            {"sql": escape(sql.strip().rstrip(";"))},
        )
        normal = formatted.decode().rstrip("\n")
        bare = _LITERALS.sub("''", normal)
        if (
            not _READS.match(bare)
            or _OUTSIDE.search(bare)
            or _DESCRIBES_FUNCTION.search(bare)
            or _TABLE_FUNCTION.search(bare)
        ):
            raise _refused()
        return normal

    @contextlib.contextmanager
    def _connection(self) -> Iterator[Any]:
        connection = self._idle.get()
        try:
            if connection is None:
                connection = self._connect()
            yield connection
        except BaseException:
            # After a failed query the engine may prepend its rest to the next answer.
            with contextlib.suppress(Exception):
                if connection is not None:
                    connection.close()
            connection = None
            raise
        finally:
            self._idle.put(connection)

    def _connect(self) -> Any:
        import chdb

        connection: Any = chdb.connect(self._path)  # type: ignore[no-untyped-call]
        connection.query("USE audit")
        for name, value in _LIMITS.items():
            connection.query(f"SET {name} = {value}")
        connection.query("SET readonly = 1")
        return connection

    def close(self) -> None:
        """Close the idle connections."""
        with contextlib.suppress(queue.Empty):
            while True:
                connection = self._idle.get_nowait()
                if connection is not None:
                    connection.close()


def _refused() -> QueryError:
    return QueryError(
        f"Code: {READONLY_CODE}. DB::Exception: Cannot execute query in readonly mode: "
        "only statements that read the database are taken here. (READONLY)"
    )


def escape(text: str) -> str:
    r"""Text as the value of a ``{name:String}`` parameter, which ClickHouse reads as escaped.

    >>> escape("a\tb")
    'a\\tb'
    """
    return text.translate(_ESCAPES)


def _run(connection: Any, sql: str, output: str, parameters: dict[str, str]) -> bytes:
    try:
        result = connection.query(sql, output, params=parameters)
    except Exception as error:
        raise QueryError(str(error)) from error
    data: bytes = result.bytes() or b""
    return data
