"""A store whose engine another process owns; here both ends are in one process."""

import threading
from collections.abc import Iterator
from multiprocessing.connection import Connection

import pytest

from lookup_audit.processors.shared_store import RemoteStore, make_pair, serve
from lookup_audit.processors.store import EmbeddedStore
from lookup_audit.schemas.errors import StoreRejectedError, UnavailableError
from tests.support.events import encode, make_lookup
from tests.support.twins import in_order, make_encoder, make_sink

pytest_plugins = ["tests.support.engine"]


@pytest.fixture
def worker(store: EmbeddedStore) -> Iterator[RemoteStore]:
    made = connect(store)
    yield made
    made.close()


def connect(store: EmbeddedStore) -> RemoteStore:
    mine, theirs = make_pair()
    threading.Thread(target=serve, args=(store, mine), daemon=True).start()
    return RemoteStore(Connection(theirs.detach()))


def test_a_batch_of_a_worker_is_stored_once_and_found_by_both(
    store: EmbeddedStore, worker: RemoteStore
) -> None:
    events = [encode(make_lookup()) for _ in range(30)]
    batch = make_encoder().encode([*in_order(events), *in_order([b"bad"], partition=2)])
    written = make_sink(worker).write(batch)
    assert (written.stored, len(written.dead_letters)) == ({"lookup": 30}, 1)
    assert make_sink(worker).write(batch).replays == 31
    sql = "SELECT count() FROM audit.lookups WHERE tenant = {tenant:String}"
    assert worker.query(sql, {"tenant": "acme"}).scalar() == 30
    assert worker.query(sql, {"tenant": "acme"}).columns == ("count()",)
    assert store.query(sql, {"tenant": "acme"}) == [(30,)]
    answer = worker.raw(sql, output_format="TSV", parameters={"tenant": "acme"})
    assert answer == b"30\n"


def test_a_refusal_reaches_the_worker_and_the_connection_goes_on(worker: RemoteStore) -> None:
    for ask in (worker.query, worker.command):
        with pytest.raises(StoreRejectedError, match="no_such_table"):
            ask("SELECT * FROM audit_store.no_such_table")
    assert worker.query("SELECT 1").scalar() == 1


def test_what_nobody_foresaw_reaches_the_worker_too(worker: RemoteStore) -> None:
    with pytest.raises(UnavailableError, match="Error"):
        worker.query("SELECT {x:String}", [1])  # type: ignore[arg-type]  # on purpose
    assert worker.query("SELECT 1").scalar() == 1


def test_a_worker_that_is_killed_as_the_sole_writer_lets_the_next_one_in(
    store: EmbeddedStore, worker: RemoteStore
) -> None:
    killed = connect(store)
    killed._ask("enter", ())
    seen = []

    def wait() -> None:
        with worker.sole_writer() as alone:
            seen.append(alone)

    waiting = threading.Thread(target=wait)
    waiting.start()
    waiting.join(0.2)
    assert seen == []
    killed.close()
    waiting.join(5.0)
    assert seen == [True]


def test_a_worker_whose_owner_is_gone_is_told_so() -> None:
    mine, theirs = make_pair()
    worker = RemoteStore(Connection(theirs.detach()))
    mine.close()
    with pytest.raises(UnavailableError, match="owns the engine is gone"):
        worker.query("SELECT 1")
