"""How many stored verdicts an appointment comes too late for."""

from datetime import UTC, datetime, timedelta

from lookup_audit.processors.appointing import Passed, passed_verdicts
from lookup_audit.processors.registry import appoint, load_registry, read_appointments
from lookup_audit.processors.store import ClickHouseStore
from lookup_audit.schemas.ruleset import Appointment, Ruleset
from tests.support.events import encode, make_lookup
from tests.support.twins import in_order, make_encoder, make_sink, utc_now

pytest_plugins = ["tests.support.engine"]

OLD, NEW = Ruleset(highly_relevant_threshold=0.7), Ruleset(highly_relevant_threshold=0.9)
START = datetime(2020, 1, 1, tzinfo=UTC)


def write(
    store: ClickHouseStore, *hours_ago: float, service: str = "kb", mode: str = "dense"
) -> None:
    encoder = make_encoder()
    encoder.registry = load_registry(store)
    events = [
        make_lookup(
            occurred_at=(utc_now() - timedelta(hours=hours)).isoformat(),
            service={"name": service},
            mode=mode,
        )
        for hours in hours_ago
    ]
    make_sink(store).write(encoder.encode(in_order([encode(event) for event in events])))


def put(store: ClickHouseStore, *appointments: Appointment) -> None:
    appoint(store, appointments, added_by="me", now=utc_now())


def passed(store: ClickHouseStore, new: Appointment) -> list[Passed]:
    return passed_verdicts(store, new, read_appointments(store))


def test_verdicts_since_then_by_another_ruleset_are_counted_per_service_and_mode(
    store: ClickHouseStore,
) -> None:
    put(store, Appointment(OLD, START))
    write(store, 1, 2, 5)
    write(store, 1, mode="hybrid")
    write(store, 1, service="other")
    since = utc_now() - timedelta(hours=3)
    assert passed(store, Appointment(NEW, since)) == [
        Passed("kb", "dense", 2),
        Passed("kb", "hybrid", 1),
        Passed("other", "dense", 1),
    ]
    assert passed(store, Appointment(NEW, since, "kb", "dense")) == [Passed("kb", "dense", 2)]
    assert passed(store, Appointment(NEW, utc_now())) == []


def test_verdicts_by_the_same_ruleset_are_not_counted(store: ClickHouseStore) -> None:
    put(store, Appointment(OLD, START, "kb"))
    write(store, 1)
    assert passed(store, Appointment(OLD, START)) == []


def test_a_more_specific_or_a_newer_appointment_keeps_its_verdicts(store: ClickHouseStore) -> None:
    put(
        store,
        Appointment(OLD, START, "kb", "dense"),
        Appointment(OLD, utc_now() - timedelta(hours=3), "other"),
    )
    write(store, 1, 5)
    write(store, 1, 5, service="other")
    assert passed(store, Appointment(NEW, utc_now() - timedelta(hours=9))) == [
        Passed("other", "dense", 1)
    ]


def test_lookups_of_modes_without_a_rule_are_not_counted(store: ClickHouseStore) -> None:
    write(store, 1, mode="lexical")
    assert passed(store, Appointment(NEW, START)) == []


def test_an_empty_store_has_no_verdicts(store: ClickHouseStore) -> None:
    assert passed(store, Appointment(NEW, START)) == []
