"""The few tables that auditors' verbs write, and the check of what is written to them.

Events never come this way: they pass the collector, Kafka and the audit. What passes here is what
people decide (a sample drawn, a ruleset put in force, a drift accepted). Whatever form the store
has, no other table can be named, and rows that do not fit are refused with the column's name.
"""

import re
import struct
from collections.abc import Mapping
from typing import Final, Protocol

import pyarrow as pa

from lookup_audit.processors.store import Store
from lookup_audit.schemas.errors import LookupAuditError, StoreRejectedError

CONTROL_TABLES: Final = frozenset({"sample_plans", "samples", "rulesets", "drift_acceptances"})
_DATABASE: Final = "audit_store."

_ARROW: Final[Mapping[str, pa.DataType]] = {
    "String": pa.string(),
    "Bool": pa.bool_(),
    "Float32": pa.float32(),
    "Float64": pa.float64(),
    "Int8": pa.int8(),
    "Int16": pa.int16(),
    "Int32": pa.int32(),
    "Int64": pa.int64(),
    "UInt8": pa.uint8(),
    "UInt16": pa.uint16(),
    "UInt32": pa.uint32(),
    "UInt64": pa.uint64(),
    "Date": pa.date32(),
    "DateTime64(3, 'UTC')": pa.timestamp("ms", tz="UTC"),
    "DateTime64(6, 'UTC')": pa.timestamp("us", tz="UTC"),
}
_WRAPPED = re.compile(r"(LowCardinality|Nullable|Array)\((.*)\)")
_RECORD_BATCH: Final = 3


class RowsRefusedError(LookupAuditError):
    """Rows that do not fit their table, or a table that is not written this way.

    Args:
        message: What is wrong and what would be right.
        column: The column at fault, or ``""``.
    """

    def __init__(self, message: str, *, column: str = ""):
        super().__init__(message)
        self.column = column


class Writer(Protocol):
    """Stores rows in one of :data:`CONTROL_TABLES`."""

    def insert(self, table: str, batch: pa.Table, *, token: str) -> None:
        """Store rows, all or nothing; returns when they are stored.

        Args:
            table: Such as ``audit_store.samples``.
            batch: Exactly the table's columns.
            token: The same rows with the same token are stored once.

        Raises:
            RowsRefusedError: The table is not one of these, or the rows do not fit it.
            UnavailableError: The store does not answer; the same call may work later.
        """

    def close(self) -> None:
        """Release what is held."""


class CheckedStore:
    """A :class:`Writer` over a store."""

    def __init__(self, store: Store):
        self._store = store

    def insert(self, table: str, batch: pa.Table, *, token: str) -> None:
        """See :meth:`Writer.insert`."""
        name = control_table(table)
        check_columns(name, batch.schema, self.columns(name))
        check_nulls(batch, self.columns(name))
        check_probabilities(batch)
        try:
            self._store.insert(_DATABASE + name, batch, token=token)
        except StoreRejectedError as error:
            raise RowsRefusedError(str(error)) from error

    def columns(self, name: str) -> dict[str, str]:
        """The columns of a control table with their ClickHouse types.

        Raises:
            RowsRefusedError: The store does not have the table yet.
        """
        found = self._store.query(
            "SELECT name, type FROM system.columns WHERE database = 'audit_store' "
            "AND table = {table:String} AND default_kind NOT IN ('MATERIALIZED', 'ALIAS') "
            "ORDER BY position",
            {"table": control_table(name)},
        )
        if not found:
            raise RowsRefusedError(
                f"the store has no table {name} yet; run 'lookup-audit migrate', or restart "
                "'lookup-audit up' with this version"
            )
        return dict(found)

    def close(self) -> None:
        """See :meth:`Writer.close`."""
        self._store.close()


def control_table(table: str) -> str:
    """The bare name of a control table.

    >>> control_table("audit_store.samples")
    'samples'

    Raises:
        RowsRefusedError: It is none.
    """
    name = table.removeprefix(_DATABASE)
    if name not in CONTROL_TABLES:
        allowed = ", ".join(sorted(CONTROL_TABLES))
        raise RowsRefusedError(f"{name!r} is not written this way; only {allowed} are")
    return name


def check_columns(table: str, schema: pa.Schema, columns: Mapping[str, str]) -> None:
    """Refuse a batch whose columns are not exactly the table's, each in its type.

    Args:
        table: For the message.
        schema: Of the batch.
        columns: Of the table, with ClickHouse types.

    Raises:
        RowsRefusedError: Names the first column at fault.
    """
    names: list[str] = schema.names
    for name in names:
        if name not in columns:
            raise RowsRefusedError(f"{table} has no column {name!r}", column=name)
        if names.count(name) > 1:
            raise RowsRefusedError(f"column {name!r} is given twice", column=name)
    for name, kind in columns.items():
        if name not in names:
            raise RowsRefusedError(f"column {name!r} of {table} is missing", column=name)
        expected, given = _arrow_type(kind), schema.field(name).type
        if given != expected:
            raise RowsRefusedError(
                f"column {name!r} of {table} must be {expected or kind}, not {given}", column=name
            )


def check_nulls(batch: pa.Table, columns: Mapping[str, str]) -> None:
    """Refuse a null where the table takes none; raises RowsRefusedError."""
    for name, kind in columns.items():
        if batch.column(name).null_count and "Nullable(" not in kind:
            raise RowsRefusedError(f"column {name!r} must not be null", column=name)


def _arrow_type(kind: str) -> pa.DataType | None:
    if kind in _ARROW:
        return _ARROW[kind]
    found = _WRAPPED.fullmatch(kind)
    if found is None:
        return None
    inner = _arrow_type(found[2])
    if found[1] == "Array" and inner is not None:
        return pa.list_(inner)
    return inner


def check_probabilities(batch: pa.Table) -> None:
    """Refuse an inclusion probability that is none: rates are divided by it.

    Raises:
        RowsRefusedError: One is not in (0, 1].
    """
    name = "inclusion_probability"
    if name in batch.schema.names:
        for value in batch.column(name).to_pylist():
            if value is None or not 0 < value <= 1:
                raise RowsRefusedError(
                    f"column {name!r} must be above 0 and at most 1, not {value}", column=name
                )


def decode_rows(body: bytes, table: str, columns: Mapping[str, str]) -> pa.Table:
    """An ArrowStream body as a table, checked before its rows are read.

    Compressed buffers and dictionaries are refused: they alone could make a small body large.

    Raises:
        RowsRefusedError: It is no such stream, or its columns do not fit.
    """
    try:
        _refuse_expanding(body)
        with pa.ipc.open_stream(body) as reader:
            check_columns(table, reader.schema, columns)
            batch = reader.read_all()
        batch.validate(full=True)
    except (pa.ArrowException, OSError, ValueError, EOFError, struct.error) as error:
        raise RowsRefusedError(f"the body is no readable ArrowStream: {error}") from error
    check_nulls(batch, columns)
    return batch


def _refuse_expanding(body: bytes) -> None:
    messages = pa.ipc.MessageReader.open_stream(pa.py_buffer(body))
    next(messages, None)  # the schema
    for message in messages:
        if message.type != "record batch" or _is_compressed(message.metadata.to_pybytes()):
            raise ValueError("only uncompressed record batches are taken")


def _is_compressed(metadata: bytes) -> bool:
    """Whether a message's record batch has a compression: Message.header, RecordBatch field 3.

    The layout is Arrow's ``Message.fbs``; a field's place stands in the table's own index.
    """

    def field(table: int, number: int) -> int:
        index = table - struct.unpack_from("<i", metadata, table)[0]
        size = struct.unpack_from("<H", metadata, index)[0]
        at = 4 + 2 * number
        offset = struct.unpack_from("<H", metadata, index + at)[0] if at < size else 0
        return table + offset if offset else 0

    message: int = struct.unpack_from("<I", metadata, 0)[0]
    kind, header = field(message, 1), field(message, 2)
    if not kind or not header or metadata[kind] != _RECORD_BATCH:
        raise ValueError("only record batches are taken")
    return bool(field(header + struct.unpack_from("<I", metadata, header)[0], 3))
