import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import pyarrow as pa
import pytest
from opentelemetry.metrics import NoOpMeterProvider

from lookup_audit.processors.batch import EncodedBatch
from lookup_audit.processors.kafka_source import Place
from lookup_audit.processors.processor import Processor, ProcessorConfig
from lookup_audit.processors.sink import Sink, Written
from lookup_audit.processors.telemetry import ProcessorTelemetry
from lookup_audit.schemas.errors import StoreRejectedError, UnavailableError
from lookup_audit.schemas.names import Topic
from tests.support.events import encode, make_lookup
from tests.support.twins import ListSource, in_order, make_encoder

PLACE = (Topic.RESULTS.value, 0)


class RememberingSink(Sink):
    """Stores ids in a list; can be down, refuse, or wait for a sign."""

    def __init__(self) -> None:
        self.stored: list[str] = []
        self.error: Exception | None = None
        self.gate = threading.Event()
        self.gate.set()
        self.writing = 0
        self.most_at_once = 0
        self.is_closed = False

    def write(self, batch: EncodedBatch) -> Written:
        self.writing += 1
        self.most_at_once = max(self.most_at_once, self.writing)
        try:
            assert self.gate.wait(20)
            if self.error is not None:
                raise self.error
            table: pa.Table = batch.rows["lookup"]
            # What a real sink does by asking the store.
            new = [i for i in table["event_id"].to_pylist() if i not in self.stored]
            self.stored += new
            return Written({"lookup": len(new)})
        finally:
            self.writing -= 1

    def close(self) -> None:
        self.is_closed = True


def make_processor(source: ListSource, sink: Sink, **config: object) -> Processor:
    settings = {"flush_seconds": 0.01, "retry_seconds": 0.05, "poll_messages": 10} | config
    return Processor(
        source,
        make_encoder().encode,
        lambda cluster: sink,
        lambda: None,
        ProcessorConfig.model_validate(settings),
        ProcessorTelemetry(NoOpMeterProvider().get_meter("test"), "group"),
    )


@contextmanager
def running(processor: Processor) -> Iterator[None]:
    thread = threading.Thread(target=processor.run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        processor.stop()
        thread.join(20)
        assert not thread.is_alive()


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 15
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.005)


def lookups(count: int) -> tuple[list[str], ListSource]:
    events = [make_lookup() for _ in range(count)]
    return [e["event_id"] for e in events], ListSource(in_order([encode(e) for e in events]))


def test_everything_read_is_stored_in_order_and_then_committed() -> None:
    ids, source = lookups(95)
    sink = RememberingSink()
    with running(make_processor(source, sink)):
        wait_for(lambda: source.committed == {PLACE: 95})
    assert sink.stored == ids
    assert source.is_closed
    assert sink.is_closed


def test_nothing_is_committed_before_it_is_stored() -> None:
    _, source = lookups(30)
    sink = RememberingSink()
    sink.gate.clear()
    with running(make_processor(source, sink)):
        wait_for(lambda: sink.writing == 1)
        time.sleep(0.1)
        assert source.committed == {}
        sink.gate.set()
        wait_for(lambda: source.committed == {PLACE: 30})


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(UnavailableError("down", retry_after_seconds=0.01), id="down"),
        pytest.param(StoreRejectedError("no such table"), id="refused-as-a-whole"),
    ],
)
def test_a_store_that_fails_is_asked_again_until_it_answers(error: Exception) -> None:
    ids, source = lookups(40)
    sink = RememberingSink()
    sink.error = error
    processor = make_processor(source, sink)
    with running(processor):
        wait_for(lambda: processor.problem == str(error))
        assert (sink.stored, source.committed) == ([], {})
        sink.error = None
        wait_for(lambda: source.committed == {PLACE: 40})
        wait_for(lambda: processor.problem is None)
    assert sink.stored == ids


def test_during_an_outage_reading_pauses_and_the_group_is_still_polled() -> None:
    ids, source = lookups(100)
    sink = RememberingSink()
    sink.error = UnavailableError("down", retry_after_seconds=0.01)
    with running(make_processor(source, sink, flush_messages=20)):
        wait_for(lambda: source.polls_while_paused > 20)
        assert source.position <= 60
        sink.error = None
        wait_for(lambda: source.committed == {PLACE: 100})
    assert sink.stored == ids


def test_a_broker_that_is_away_is_waited_for() -> None:
    ids, source = lookups(20)
    source.is_down = True
    sink = RememberingSink()
    processor = make_processor(source, sink)
    with running(processor):
        wait_for(lambda: processor.problem == "the broker is down")
        source.is_down = False
        wait_for(lambda: source.committed == {PLACE: 20})
    assert sink.stored == ids


def test_one_batch_is_stored_at_a_time() -> None:
    _, source = lookups(300)
    sink = RememberingSink()
    with running(make_processor(source, sink, flush_messages=10)):
        wait_for(lambda: source.committed == {PLACE: 300})
    assert sink.most_at_once == 1


def test_stopping_stores_and_commits_what_was_read() -> None:
    ids, source = lookups(50)
    sink = RememberingSink()
    with running(make_processor(source, sink, flush_seconds=60)):
        wait_for(lambda: source.position == 50)
        assert sink.stored == []
    assert sink.stored == ids
    assert source.committed == {PLACE: 50}


def test_a_lost_commit_means_reading_again_and_storing_nothing_twice() -> None:
    ids, source = lookups(60)
    source.lose_commits = True
    sink = RememberingSink()
    with running(make_processor(source, sink)):
        wait_for(lambda: len(sink.stored) == 60)
    source.lose_commits = False
    source.position = 0
    with running(make_processor(source, sink)):
        wait_for(lambda: source.committed == {PLACE: 60})
    assert sink.stored == ids


def test_partitions_that_move_away_are_stored_and_committed_first() -> None:
    ids, source = lookups(30)
    sink = RememberingSink()
    processor = make_processor(source, sink, flush_seconds=60)
    for _ in range(3):
        processor.step(timeout_seconds=0)
    assert source.committed == {}
    source.rebalance()
    assert sink.stored == ids
    assert source.committed == {PLACE: 30}
    assert source.position == 30


def test_a_batch_that_cannot_be_stored_before_a_rebalance_is_read_again() -> None:
    ids, source = lookups(30)
    sink = RememberingSink()
    sink.error = UnavailableError("down", retry_after_seconds=0.01)
    processor = make_processor(source, sink, flush_seconds=60)
    for _ in range(3):
        processor.step(timeout_seconds=0)
    source.rebalance()
    assert source.position == 0
    sink.error = None
    with running(processor):
        processor.stop()
    again = make_processor(source, sink)
    with running(again):
        wait_for(lambda: source.committed == {PLACE: 30})
    assert sink.stored == ids


def test_a_commit_the_broker_does_not_take_is_made_up_for_without_new_messages() -> None:
    class NoCommits(ListSource):
        refused = 0

        def commit(self, next_offsets: Mapping[Place, int]) -> None:
            if self.refused < 3:
                self.refused += 1
                raise UnavailableError("no coordinator", retry_after_seconds=0.01)
            super().commit(next_offsets)

    source = NoCommits(in_order([encode(make_lookup()) for _ in range(20)]))
    processor = make_processor(source, RememberingSink())
    with running(processor):
        wait_for(lambda: source.committed == {PLACE: 20})
    assert processor.has_settled({PLACE: 20})


def test_what_was_read_is_stored_though_the_broker_is_away() -> None:
    ids, source = lookups(10)
    sink = RememberingSink()
    processor = make_processor(source, sink, flush_seconds=0.2)
    with running(processor):
        wait_for(lambda: source.position == 10)
        source.is_down = True
        wait_for(lambda: sink.stored == ids)
        wait_for(lambda: processor.problem == "the broker is down")


def test_a_fault_of_ours_while_storing_is_logged_once_and_tried_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    ids, source = lookups(10)
    sink = RememberingSink()
    sink.error = ZeroDivisionError("ours")
    processor = make_processor(source, sink)
    with running(processor):
        wait_for(lambda: processor.problem == "ours")
        time.sleep(0.5)
        sink.error = None
        wait_for(lambda: source.committed == {PLACE: 10})
    assert sink.stored == ids
    assert [r.levelname for r in caplog.records].count("ERROR") == 1


def test_leaving_the_group_does_not_store_what_the_drain_gave_up() -> None:
    class Leaving(ListSource):
        """Calls back on close, as a real consumer does."""

        def close(self) -> None:
            self.on_revoked(frozenset({PLACE}))
            super().close()

    source = Leaving(in_order([encode(make_lookup()) for _ in range(10)]))
    sink = RememberingSink()
    processor = make_processor(source, sink, flush_seconds=60)
    processor.step(timeout_seconds=0)

    def give_up() -> None:
        return

    processor._drain = give_up  # type: ignore[method-assign]  # thirty seconds are too long here
    processor.stop()
    processor.run()
    assert (sink.stored, source.committed, source.is_closed) == ([], {}, True)
    assert sink.is_closed
