import os
import threading
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lookup_audit.processors.batch import DeadLetter
from lookup_audit.processors.exceptions_table import dead_letter_rows
from lookup_audit.processors.store import ClickHouseStore, EmbeddedStore, write_stream
from lookup_audit.schemas.errors import Rejected
from lookup_audit.schemas.names import Reason
from tests.support.twins import make_message, utc_now

pytest_plugins = ["tests.support.engine"]


TABLE = "audit_store.dead_letters"


def rows_of(*values: bytes) -> pa.Table:
    letters = [
        DeadLetter(make_message(value, offset), Rejected(Reason.INVALID_JSON, "", "broken"))
        for offset, value in enumerate(values)
    ]
    return dead_letter_rows(letters, "cluster", utc_now())


def stored(store: ClickHouseStore) -> list[str]:
    return [row[0] for row in store.query(f"SELECT value FROM {TABLE} ORDER BY value")]


def test_the_same_batch_with_the_same_token_is_stored_once(store: ClickHouseStore) -> None:
    token = f"it's a \\ token {os.urandom(8).hex()}"
    for _ in range(2):
        store.insert(TABLE, rows_of(b"a", b"b"), token=token)
    store.insert(TABLE, rows_of(b"a", b"b"), token=token + "x")
    assert stored(store) == ["a", "a", "b", "b"]


def test_without_a_token_only_the_very_same_rows_are_stored_once(store: ClickHouseStore) -> None:
    for value in (b"a", b"b"):
        store.insert(TABLE, rows_of(value), token="")
    assert stored(store) == ["a", "b"]


def test_a_stream_in_an_open_file_is_stored_like_a_batch(
    store: EmbeddedStore, tmp_path: Path
) -> None:
    rows = rows_of(b"from a file")
    with (tmp_path / "batch").open("wb") as file:
        write_stream(rows, file)
    with (tmp_path / "batch").open("rb") as file:
        store.insert_stream(TABLE, rows.column_names, file.fileno(), token=os.urandom(8).hex())
    assert stored(store) == ["from a file"]


@given(text=st.text(st.characters(codec="utf-8"), max_size=40))
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
def test_text_is_bound_as_it_is(text: str, engine: ClickHouseStore) -> None:
    assert engine.query("SELECT {text:String}", {"text": text}).scalar() == text


@pytest.mark.parametrize(
    "text", ["", "'", "\\", "`\t\n'\\'", "a\\'); DROP TABLE x; --", "\0", "漢\b"]
)
def test_text_that_means_something_to_sql_is_bound_as_it_is(
    text: str, engine: ClickHouseStore
) -> None:
    found = engine.query(
        "SELECT {t:String} = unhex({h:String})", {"t": text, "h": text.encode().hex()}
    )
    assert found.scalar() == 1


def test_only_one_writer_of_an_engine_is_let_in_at_a_time(engine: ClickHouseStore) -> None:
    seen = []

    def second() -> None:
        with engine.sole_writer() as alone:
            seen.append(alone)

    thread = threading.Thread(target=second)
    with engine.sole_writer() as alone:
        assert alone
        thread.start()
        thread.join(0.1)
        assert seen == []
    thread.join(5)
    assert seen == [True]
