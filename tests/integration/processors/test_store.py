import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from lookup_audit.processors import columns
from lookup_audit.processors.migrate import (
    Migration,
    migrate,
    pending,
    set_retention,
    shipped_migrations,
)
from lookup_audit.processors.store import ClickHouseStore, open_store
from lookup_audit.schemas.errors import ConfigError, StoreRejectedError, UnavailableError
from tests.support.events import encode, make_judgement, make_lookup, make_outcome
from tests.support.twins import make_encoder, make_message

pytest_plugins = ["tests.support.engine"]

GOLDEN = Path(__file__).parents[2] / "golden" / "schema.sql"
STAMPED = {"kafka_cluster", "ingested_at", "insert_id"}


def test_migrations_are_numbered_densely_and_applied_once(engine: ClickHouseStore) -> None:
    assert [m.number for m in shipped_migrations()] == list(range(1, len(shipped_migrations()) + 1))
    assert migrate(engine) == []


def test_a_migration_that_was_changed_afterwards_is_refused(engine: ClickHouseStore) -> None:
    first, *others = shipped_migrations()
    changed = Migration(first.number, first.name, first.sql + "\nSELECT 1;")
    with pytest.raises(ConfigError, match="was changed after it was applied"):
        pending(engine, [changed, *others])


def test_a_database_newer_than_this_version_is_refused(engine: ClickHouseStore) -> None:
    with pytest.raises(ConfigError, match="install the version that applied it"):
        pending(engine, shipped_migrations()[:-1])


def test_a_migration_that_broke_off_is_simply_applied_again(engine: ClickHouseStore) -> None:
    for migration in shipped_migrations():
        for statement in migration.statements():
            engine.command(statement)


def test_retention_is_set_once_and_can_be_changed(engine: ClickHouseStore) -> None:
    sql = "SELECT create_table_query FROM system.tables WHERE database = 'audit_store' AND name = "
    for days in (30, 30, 730):
        set_retention(engine, days)
        for table in ("lookups", "dead_letters"):
            assert f"toIntervalDay({days})" in engine.query(f"{sql}'{table}'").scalar()


def test_the_schema_is_the_one_reviewed(engine: ClickHouseStore) -> None:
    set_retention(engine, 730)
    rows = engine.query(
        "SELECT create_table_query FROM system.tables WHERE database IN ('audit', 'audit_store') "
        "AND name != 'migrations' ORDER BY database, name"
    )
    schema = "\n\n".join(f"{statement};" for (statement,) in rows) + "\n"
    if os.environ.get("UPDATE_GOLDEN"):
        GOLDEN.parent.mkdir(exist_ok=True)
        GOLDEN.write_text(schema, encoding="utf-8")
    assert schema == GOLDEN.read_text(encoding="utf-8"), (
        "the schema changed; if that is meant, run this test with UPDATE_GOLDEN=1 and review "
        "tests/golden/schema.sql"
    )


@pytest.mark.parametrize("kind", ["lookup", "outcome", "judgement"])
def test_the_encoder_fills_exactly_the_tables_columns(kind: str, engine: ClickHouseStore) -> None:
    event = {"lookup": make_lookup, "outcome": make_outcome, "judgement": make_judgement}[kind]()
    topic = "lookup.results.v1" if kind == "lookup" else "lookup.outcomes.v1"
    batch = make_encoder().encode([make_message(encode(event), topic=topic)])
    made = set(batch.rows[kind].schema.names) | STAMPED
    stored = {
        name
        for (name,) in engine.query(
            "SELECT name FROM system.columns WHERE database = 'audit_store' "
            "AND table = {table:String} AND default_kind != 'MATERIALIZED'",
            {"table": f"{kind}s"},
        )
    }
    assert made == stored, "columns.py and the migrations differ; change the one that is behind"


def test_every_struct_field_that_columns_name_exists() -> None:
    table = columns.lookup_table([])
    assert table.num_rows == 0


def test_a_statement_that_cannot_work_is_a_refusal(engine: ClickHouseStore) -> None:
    with pytest.raises(StoreRejectedError, match="no_such_table"):
        engine.query("SELECT * FROM no_such_table")
    with pytest.raises(StoreRejectedError):
        engine.insert("audit_store.no_such_table", pa.table({"a": [1]}), token="t")
    assert engine.query("SELECT 1") == [(1,)]


def test_a_null_where_none_may_be_is_refused_and_nothing_is_stored(store: ClickHouseStore) -> None:
    rows = pa.table(
        {
            "ruleset_id": pa.array(["a", None, "c"], pa.string()),
            "content": ["{}", "{}", "{}"],
        }
    )
    with pytest.raises(StoreRejectedError):
        store.insert("audit_store.rulesets", rows, token="nulls")
    assert store.query("SELECT count() FROM audit_store.rulesets").scalar() == 0


def test_a_second_directory_is_refused_and_the_first_goes_on(
    engine: ClickHouseStore, engine_path: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError) as refused:
        open_store(f"embedded:{tmp_path / 'other'}")
    assert engine_path in str(refused.value)
    assert str(tmp_path / "other") in str(refused.value)
    third = open_store(f"embedded:{engine_path}/")
    assert third.query("SELECT count() FROM audit_store.migrations").scalar() > 0
    third.close()
    assert engine.query("SELECT 1") == [(1,)]


def test_a_server_that_is_not_there_is_unavailable() -> None:
    with pytest.raises(UnavailableError, match=r"127\.0\.0\.1"):
        open_store("http://127.0.0.1:1")


def test_a_wrong_address_is_refused_without_its_password() -> None:
    with pytest.raises(ConfigError) as refused:
        open_store("ftp://user:secret@host")
    assert "secret" not in str(refused.value)
    assert "http://user:password@host:8123" in str(refused.value)


_STORE_ONE = """
import sys
from lookup_audit.processors.migrate import migrate
from lookup_audit.processors.store import open_store
from tests.support.events import encode, make_lookup
from tests.support.twins import make_encoder, make_message, make_sink
store = open_store(f"embedded:{sys.argv[1]}")
migrate(store)
event = make_lookup(occurred_at="2026-11-30T12:00:00.123456789Z")
message = make_message(encode(event), timestamp_ms=1796040005000)
make_sink(store).write(make_encoder().encode([message]))
print(store.query(
    "SELECT toUnixTimestamp64Micro(occurred_at), toString(occurred_at) FROM audit.lookups"
))
"""


@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Asia/Tokyo"])
def test_the_hosts_time_zone_moves_no_instant(zone: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _STORE_ONE, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=60,
        env=os.environ | {"TZ": zone, "PYTHONPATH": str(Path(__file__).parents[3])},
        check=True,
    )
    assert done.stdout.strip() == "[(1796040000123456, '2026-11-30 12:00:00.123456')]"
