"""What people decide can be written, in each form of the store, and nothing else can."""

import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, date, datetime
from pathlib import Path

import pyarrow as pa
import pytest

from lookup_audit.collector.auth import hash_token
from lookup_audit.deploy.control import CheckedStore, RowsRefusedError
from lookup_audit.deploy.embedded.control_http import (
    CONTENT_TYPE,
    MAX_BODY_BYTES,
    TOKEN_HEADER,
    control_routes,
)
from lookup_audit.deploy.embedded.data_dir import DataDir, Running
from lookup_audit.deploy.writer import HttpWriter, open_writer
from lookup_audit.processors.store import ClickHouseStore
from lookup_audit.schemas.errors import ConfigError, UnavailableError
from tests.unit.collector.running import running
from tests.unit.deploy.test_control import stream

pytest_plugins = ["tests.support.engine"]

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
HEADERS = {"Content-Type": CONTENT_TYPE, TOKEN_HEADER: "t1"}


def make_sample(**over: object) -> pa.Table:
    row = {
        "tenant": "客户",
        "day": date(2026, 11, 30),
        "event_id": "evt-1",
        "occurred_at": NOW,
        "mode": "dense",
        "model_version": "m@1",
        "level": "PRECISE",
        "class": "plain",
        "inclusion_probability": 0.5,
        "draw": 0.25,
        "seed": "s",
        "drawn_at": NOW,
    }
    time = pa.timestamp("us", tz="UTC")
    kinds = {date: pa.date32(), datetime: time, float: pa.float64(), str: pa.string()}
    schema = pa.schema({name: kinds[type(value)] for name, value in row.items()})
    return pa.Table.from_pylist([row | over], schema=schema)


@pytest.fixture
def door(store: ClickHouseStore) -> Iterator[str]:
    with running(extra_routes=control_routes(store)) as collector:
        yield collector.server.url


def stored(store: ClickHouseStore) -> list[tuple[object, ...]]:
    return list(store.query("SELECT tenant, toString(day), event_id, draw FROM audit.samples"))


def test_rows_reach_a_running_stack_once_however_often_they_are_sent(
    door: str, store: ClickHouseStore
) -> None:
    writer = HttpWriter(door)
    for _ in range(3):
        writer.insert("audit_store.samples", make_sample(), token="same")
    writer.close()
    assert stored(store) == [("客户", "2026-11-30", "evt-1", 0.25)]
    assert store.query("SELECT count() FROM audit_store.samples").scalar() == 1


def test_a_server_is_written_through_the_same_check(store: ClickHouseStore) -> None:
    writer = CheckedStore(store)
    writer.insert("audit_store.samples", make_sample(), token="t")
    assert len(stored(store)) == 1
    with pytest.raises(RowsRefusedError, match="not written this way"):
        writer.insert("audit_store.lookups", make_sample(), token="t")


def test_a_wrong_column_is_named_to_the_caller(door: str, store: ClickHouseStore) -> None:
    wrong = make_sample().rename_columns(
        ["dray" if name == "draw" else name for name in make_sample().column_names]
    )
    with pytest.raises(RowsRefusedError, match="no column 'dray'") as refused:
        HttpWriter(door).insert("audit_store.samples", wrong, token="t")
    assert refused.value.column == "dray"
    assert stored(store) == []


def test_no_other_table_is_reached_over_http(door: str, store: ClickHouseStore) -> None:
    before = store.query("SELECT sum(total_rows) FROM system.tables WHERE database = 'audit_store'")
    with running(extra_routes=control_routes(store)) as collector:
        for table in ("lookups", "audit_store.lookups", "samples%20FORMAT%20TSV", "%2e%2e", "é"):
            path = f"/control/{table}".encode("ascii", "ignore").decode()
            answer = collector.call("POST", path, stream(make_sample()), HEADERS)
            assert answer.status in (404, 422), table
        assert collector.call("GET", "/control/samples").status == 405
    after = store.query("SELECT sum(total_rows) FROM system.tables WHERE database = 'audit_store'")
    assert after == before


@pytest.mark.parametrize(
    ("body", "headers", "expected"),
    [
        pytest.param(b"", {}, 422, id="empty"),
        pytest.param(b"\xff" * 100, {}, 422, id="noise"),
        pytest.param(stream(make_sample())[:200], {}, 422, id="cut"),
        pytest.param(stream(make_sample()), {"Content-Type": "application/json"}, 415, id="type"),
        pytest.param(stream(make_sample()), {TOKEN_HEADER: ""}, 422, id="no-token"),
        pytest.param(stream(make_sample()), {TOKEN_HEADER: "x" * 257}, 422, id="long-token"),
        pytest.param(stream(make_sample()), {"Origin": "https://evil.example"}, 403, id="origin"),
        pytest.param(
            stream(make_sample()), {"Sec-Fetch-Site": "cross-site"}, 403, id="another-site"
        ),
        pytest.param(b"x", {"Content-Length": str(MAX_BODY_BYTES + 1)}, 413, id="too-large"),
        pytest.param(stream(make_sample(draw=float("nan"))), {}, 200, id="nan-is-a-number"),
    ],
)
def test_bad_input_is_the_callers_fault(
    body: bytes, headers: dict[str, str], expected: int, store: ClickHouseStore
) -> None:
    with running(extra_routes=control_routes(store)) as collector:
        answer = collector.call("POST", "/control/samples", body, HEADERS | headers)
    assert answer.status == expected
    assert len(stored(store)) == (expected == 200)


def test_the_door_wants_the_collectors_tokens(store: ClickHouseStore) -> None:
    token = "t" * 40
    with running(
        extra_routes=control_routes(store), token_hashes=(hash_token(token),)
    ) as collector:
        url = collector.server.url
        for wrong in (None, "u" * 40):
            with pytest.raises(ConfigError, match="LOOKUP_AUDIT_TOKEN"):
                HttpWriter(url, wrong).insert("samples", make_sample(), token="t")
        assert stored(store) == []
        HttpWriter(url, token).insert("samples", make_sample(), token="t")
    assert len(stored(store)) == 1


def test_more_than_the_door_takes_at_once_is_said_before_it_is_sent(door: str) -> None:
    large = make_sample(event_id="x" * (MAX_BODY_BYTES + 1))
    with pytest.raises(RowsRefusedError, match="write in parts"):
        HttpWriter(door).insert("samples", large, token="t")


def test_a_stack_that_went_away_is_unavailable() -> None:
    with pytest.raises(UnavailableError, match="does not answer"):
        HttpWriter("http://127.0.0.1:1").insert("samples", make_sample(), token="t")


def test_a_running_stack_is_found_by_its_directory(
    door: str, store: ClickHouseStore, tmp_path: Path
) -> None:
    directory = DataDir(tmp_path)
    directory.acquire()
    directory.publish(Running(1, door, "127.0.0.1:1"))
    try:
        open_writer(None, tmp_path).insert("samples", make_sample(), token="t")
    finally:
        directory.release()
    assert len(stored(store)) == 1


def test_where_nothing_is_the_error_says_how_to_start(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="lookup-audit demo"):
        open_writer(None, tmp_path / "nothing")


_WRITE_AT_REST = """
import sys
from pathlib import Path
from lookup_audit.deploy.writer import open_writer
from lookup_audit.deploy.reader import open_reader
from tests.integration.test_write_door import make_sample
path = Path(sys.argv[1])
(path / "engine").mkdir(parents=True)
for _ in range(2):
    writer = open_writer(None, path)
    writer.insert("audit_store.samples", make_sample(), token="t")
    writer.close()
reader = open_reader(None, path)
print(reader.raw("SELECT count(), any(event_id) FROM audit.samples", output_format="CSV").decode())
reader.close()
"""


def test_a_directory_at_rest_is_opened_migrated_and_let_go(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _WRITE_AT_REST, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=120,
        cwd=Path(__file__).parents[2],
        check=False,
    )
    assert done.stdout.strip() == '1,"evt-1"', done.stderr
