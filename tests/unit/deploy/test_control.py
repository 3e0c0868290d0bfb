import contextlib

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookup_audit.deploy.control import (
    CONTROL_TABLES,
    RowsRefusedError,
    control_table,
    decode_rows,
)

COLUMNS = {
    "tenant": "LowCardinality(String)",
    "day": "Date",
    "n": "UInt64",
    "p": "Nullable(Float64)",
    "at": "DateTime64(6, 'UTC')",
    "names": "Array(String)",
}
SCHEMA = pa.schema(
    {
        "tenant": pa.string(),
        "day": pa.date32(),
        "n": pa.uint64(),
        "p": pa.float64(),
        "at": pa.timestamp("us", tz="UTC"),
        "names": pa.list_(pa.string()),
    }
)
ROW = {"tenant": "客户", "day": 20_000, "n": 1, "p": None, "at": 0, "names": ["a"]}


def make_rows(schema: pa.Schema = SCHEMA, **over: object) -> pa.Table:
    return pa.Table.from_pylist([ROW | over], schema=schema)


def stream(table: pa.Table, options: pa.ipc.IpcWriteOptions | None = None) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def test_rows_that_fit_come_back_as_they_were() -> None:
    assert decode_rows(stream(make_rows()), "t", COLUMNS).equals(make_rows())


def test_a_stream_without_rows_is_an_empty_table() -> None:
    assert decode_rows(stream(SCHEMA.empty_table()), "t", COLUMNS).num_rows == 0


@pytest.mark.parametrize(
    ("table", "column"),
    [
        pytest.param(make_rows().drop_columns(["day"]), "day", id="missing"),
        pytest.param(make_rows().append_column("x", [["1"]]), "x", id="unknown"),
        pytest.param(make_rows().append_column("n", [[1]]), "n", id="twice"),
        pytest.param(
            make_rows().set_column(2, "n", pa.array([1], pa.int64())), "n", id="another-type"
        ),
        pytest.param(make_rows().set_column(2, "n", pa.nulls(1)), "n", id="no-type"),
        pytest.param(make_rows(tenant=None), "tenant", id="null"),
    ],
)
def test_a_column_that_does_not_fit_is_named(table: pa.Table, column: str) -> None:
    with pytest.raises(RowsRefusedError, match=f"'{column}'") as refused:
        decode_rows(stream(table), "t", COLUMNS)
    assert refused.value.column == column


@pytest.mark.parametrize("codec", ["lz4", "zstd"])
def test_a_small_body_that_would_become_large_is_refused(codec: str) -> None:
    table = make_rows(tenant="a" * 1_000_000)
    options = pa.ipc.IpcWriteOptions(compression=codec)
    with pytest.raises(RowsRefusedError, match="uncompressed"):
        decode_rows(stream(table, options), "t", COLUMNS)


def test_a_dictionary_is_refused() -> None:
    table = make_rows()
    table = table.set_column(0, "tenant", table["tenant"].dictionary_encode())
    with pytest.raises(RowsRefusedError):
        decode_rows(stream(table), "t", COLUMNS)


@given(data=st.data())
def test_a_damaged_stream_is_refused_or_read_and_never_breaks(data: st.DataObject) -> None:
    body = bytearray(stream(make_rows()))
    for _ in range(data.draw(st.integers(1, 4))):
        body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(body)))
    with contextlib.suppress(RowsRefusedError):
        decode_rows(bytes(body[:cut]), "t", COLUMNS)


@given(body=st.binary(max_size=200))
def test_any_bytes_are_refused_or_read_and_never_break(body: bytes) -> None:
    with contextlib.suppress(RowsRefusedError):
        decode_rows(body, "t", COLUMNS)


@pytest.mark.parametrize("table", sorted(CONTROL_TABLES))
def test_a_control_table_is_known_with_and_without_its_database(table: str) -> None:
    assert control_table(table) == control_table(f"audit_store.{table}") == table


@pytest.mark.parametrize(
    "table",
    [
        "",
        "lookups",
        "audit_store.lookups",
        "audit_store.audit_store.samples",
        "samples;DROP",
        "SAMPLES",
        "samples (tenant) VALUES ('x') --",
        "system.users",
        "audit.samples",
    ],
)
def test_every_other_table_is_out_of_reach(table: str) -> None:
    with pytest.raises(RowsRefusedError, match="not written this way"):
        control_table(table)
