"""The publisher's own logic, over sessions that fail in every way a broker can."""

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import pytest
from kafka import errors

from lookup_audit.collector.config import CollectorConfig
from lookup_audit.collector.delivery import Settles
from lookup_audit.collector.pressure import OverloadedError
from lookup_audit.collector.publisher import KafkaPublisher
from lookup_audit.collector.publishing import OutgoingRecord
from lookup_audit.schemas.errors import ConfigError, UnavailableError
from lookup_audit.schemas.names import Reason
from tests.unit.collector.publisher_contract import record, use

Answer = Callable[[Sequence[OutgoingRecord]], Sequence[BaseException | None] | None]


def confirm(records: Sequence[OutgoingRecord]) -> Sequence[BaseException | None]:
    return [None] * len(records)


def never(_: Sequence[OutgoingRecord]) -> None:
    return None


class ScriptedSession:
    """Answers each send as told; ``None`` for a send is silence."""

    def __init__(self, *script: Answer, probes: Sequence[str | None] = ("",)):
        self.script = list(script)
        self.probes = list(probes)
        self.sent: list[list[str]] = []
        self.closed = threading.Event()
        self._silent: list[tuple[Settles, int]] = []

    def send(self, records: Sequence[OutgoingRecord], delivery: Settles) -> None:
        self.sent.append([r.event_id for r in records])
        answer = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        outcomes = answer(records)
        if outcomes is None:
            self._silent.append((delivery, len(records)))
            return
        for index, outcome in enumerate(outcomes):
            delivery.settle(index, outcome)

    def probe(self) -> str | None:
        return self.probes.pop(0) if len(self.probes) > 1 else self.probes[0]

    def close(self) -> None:
        for delivery, count in self._silent:
            for index in range(count):
                delivery.settle(index, errors.KafkaTimeoutError("closed"))
        self.closed.set()


class Sessions:
    """Hands out sessions in order; an exception stands for a broker that is not there."""

    def __init__(self, *sessions: ScriptedSession | Exception):
        self.waiting = list(sessions)
        self.attempts = 0

    def __call__(self, _: CollectorConfig) -> ScriptedSession:
        self.attempts += 1
        found = self.waiting.pop(0) if len(self.waiting) > 1 else self.waiting[0]
        if isinstance(found, Exception):
            raise found
        return found


def run(
    sessions: Sessions | ScriptedSession,
    action: Callable[[KafkaPublisher], Coroutine[Any, Any, Any]],
    **settings: Any,
) -> Any:
    connect = Sessions(sessions) if isinstance(sessions, ScriptedSession) else sessions
    config = CollectorConfig(publish_timeout_seconds=0.5, **settings)
    publisher = KafkaPublisher(config, connect=connect)

    async def act(_: Any) -> Any:
        return await action(publisher)

    return asyncio.run(use(publisher, act))


async def until_ok(publisher: KafkaPublisher) -> None:
    async with asyncio.timeout(5):
        while not publisher.health().ok:
            await asyncio.sleep(0.01)


def test_start_returns_at_once_without_a_broker_and_callers_get_an_immediate_refusal() -> None:
    sessions = Sessions(errors.KafkaTimeoutError("Unable to bootstrap"))
    publisher = KafkaPublisher(CollectorConfig(), connect=sessions)

    async def act() -> None:
        started = time.monotonic()
        await publisher.start()
        await publisher.start()
        while "bootstrap" not in publisher.health().detail:
            await asyncio.sleep(0.01)
        with pytest.raises(UnavailableError, match="Unable to bootstrap"):
            await publisher.publish([record("e")])
        assert not publisher.health().ok
        assert "Unable to bootstrap" in publisher.health().detail
        assert time.monotonic() - started < 1
        await publisher.close()

    asyncio.run(act())


def test_a_broker_that_comes_up_late_is_found() -> None:
    sessions = Sessions(OSError("refused"), ScriptedSession(confirm))
    assert run(sessions, lambda p: p.publish([record("e")])) == [None]
    assert sessions.attempts == 2


def test_silence_is_unavailable_within_the_timeout_and_a_new_session_is_made() -> None:
    silent, good = ScriptedSession(never), ScriptedSession(confirm)

    async def act(publisher: KafkaPublisher) -> None:
        started = time.monotonic()
        with pytest.raises(UnavailableError, match="did not confirm"):
            await publisher.publish([record("a"), record("b")])
        assert 0.4 < time.monotonic() - started < 2
        await until_ok(publisher)
        assert await publisher.publish([record("c")]) == [None]
        assert silent.closed.wait(2)
        assert publisher.pending == 0

    run(Sessions(silent, good), act)
    assert (silent.sent, good.sent) == ([["a", "b"]], [["c"]])


@pytest.mark.parametrize(
    "error",
    [
        errors.KafkaTimeoutError("expired"),
        errors.KafkaConnectionError("lost"),
        errors.NotEnoughReplicasError("min.insync.replicas"),
        errors.UnknownProducerIdError("fatal"),
        errors.TopicAuthorizationFailedError("denied"),
        ValueError("something else"),
    ],
)
def test_a_fault_that_is_not_the_records_is_unavailable_and_retires_the_producer(
    error: Exception,
) -> None:
    bad, good = ScriptedSession(lambda records: [None, error]), ScriptedSession(confirm)

    async def act(publisher: KafkaPublisher) -> None:
        with pytest.raises(UnavailableError, match=type(error).__name__):
            await publisher.publish([record("a"), record("b")])
        await until_ok(publisher)
        assert await publisher.publish([record("a"), record("b")]) == [None, None]

    run(Sessions(bad, good), act)
    assert bad.closed.is_set()


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (errors.MessageSizeTooLargeError("x"), Reason.TOO_LARGE),
        (errors.RecordListTooLargeError("x"), Reason.TOO_LARGE),
        (errors.InvalidRecordError("x"), Reason.REJECTED_BY_STORE),
        (errors.InvalidTimestampError("x"), Reason.REJECTED_BY_STORE),
    ],
)
def test_a_fault_of_one_record_is_its_rejection_and_the_producer_stays(
    error: Exception, reason: Reason
) -> None:
    session = ScriptedSession(lambda records: [None, error, None])

    async def act(publisher: KafkaPublisher) -> None:
        answers = await publisher.publish([record("a"), record("b"), record("c")])
        assert answers[0] is None
        assert answers[2] is None
        assert answers[1] is not None
        assert (answers[1].reason, answers[1].event_id) == (reason, "b")
        assert publisher.health().ok

    run(session, act)


def test_the_neighbours_of_a_refused_record_in_its_batch_are_sent_again() -> None:
    batch = errors.KafkaError("Failed to append record because it was part of a batch")
    session = ScriptedSession(
        lambda records: [batch, errors.InvalidRecordError("bad"), batch], confirm
    )

    async def act(publisher: KafkaPublisher) -> None:
        answers = await publisher.publish([record("a"), record("b"), record("c")])
        assert [answer and answer.event_id for answer in answers] == [None, "b", None]

    run(session, act)
    assert session.sent == [["a", "b", "c"], ["a", "c"]]


def test_a_neighbour_of_another_callers_bad_record_may_try_again() -> None:
    batch = errors.KafkaError("Failed to append record because it was part of a batch")
    session = ScriptedSession(lambda records: [batch], confirm)

    async def act(publisher: KafkaPublisher) -> None:
        with pytest.raises(UnavailableError):
            await publisher.publish([record("a")])
        assert await publisher.publish([record("a")]) == [None]

    run(session, act)


def test_more_unconfirmed_events_than_allowed_are_refused_at_once() -> None:
    session = ScriptedSession(never, confirm)

    async def act(publisher: KafkaPublisher) -> None:
        waiting = asyncio.create_task(publisher.publish([record("a"), record("b")]))
        await asyncio.sleep(0.05)
        assert publisher.pending == 2
        with pytest.raises(OverloadedError):
            await publisher.publish([record("c")])
        with pytest.raises(UnavailableError):
            await waiting

    run(Sessions(session, ScriptedSession(confirm)), act, max_events=2, max_in_flight_events=2)


def test_a_broker_that_stops_answering_is_seen_without_any_traffic() -> None:
    session = ScriptedSession(confirm, probes=["", None])

    async def act(publisher: KafkaPublisher) -> None:
        async with asyncio.timeout(5):
            while publisher.health().ok:
                await asyncio.sleep(0.01)
        assert session.closed.wait(2)

    run(Sessions(session, OSError("refused")), act)


def test_a_missing_topic_is_named_while_the_producer_stays() -> None:
    session = ScriptedSession(confirm, probes=["no topic lookup.results.v1; create it", ""])
    publisher = KafkaPublisher(CollectorConfig(), connect=Sessions(session))

    async def act() -> None:
        await publisher.start()
        async with asyncio.timeout(5):
            while "lookup.results.v1" not in publisher.health().detail:
                await asyncio.sleep(0.01)
            assert not publisher.health().ok
            await until_ok(publisher)
        await publisher.close()

    asyncio.run(act())


def test_after_closing_nothing_is_accepted() -> None:
    async def act(publisher: KafkaPublisher) -> None:
        await publisher.close()
        with pytest.raises(UnavailableError, match="closed"):
            await publisher.publish([record("a")])

    run(ScriptedSession(confirm), act)


def test_an_option_that_kafka_python_does_not_know_is_named() -> None:
    with pytest.raises(ConfigError, match="no option sasl_passwrod"):
        KafkaPublisher(CollectorConfig(kafka_options={"sasl_passwrod": "x"}))
