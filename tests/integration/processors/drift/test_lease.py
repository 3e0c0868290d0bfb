from lookup_audit.processors.drift.lease import Lease
from lookup_audit.processors.store import ClickHouseStore, Store
from tests.support.drift import START, InterruptedStore, Time

pytest_plugins = ["tests.support.engine"]


def lease(store: Store, time: Time, holder: str) -> Lease:
    return Lease(store, holder, clock=time, monotonic=time.monotonic, sleep=time.sleep)


def test_one_holds_until_it_lets_go(store: ClickHouseStore) -> None:
    time = Time(START)
    first, second = lease(store, time, "a"), lease(store, time, "b")

    assert first.hold()
    assert not second.hold()
    time.advance(seconds=1)
    first.release()
    time.advance(seconds=1)
    assert second.hold()
    assert second.epoch == first.epoch + 2 == 2


def test_a_lease_runs_out_and_is_taken_with_a_higher_epoch(store: ClickHouseStore) -> None:
    time = Time(START)
    first, second = lease(store, time, "a"), lease(store, time, "b")
    assert first.hold()

    time.advance(seconds=61)

    assert not first.is_held
    assert second.hold()
    assert (first.epoch, second.epoch) == (1, 2)
    assert not first.hold()


def test_a_lease_that_is_renewed_stays(store: ClickHouseStore) -> None:
    time = Time(START)
    first, second = lease(store, time, "a"), lease(store, time, "b")
    for _ in range(10):
        assert first.hold()
        assert not second.hold()
        time.advance(seconds=20)

    assert first.epoch == 1


def test_of_two_that_claim_at_once_one_leads(store: ClickHouseStore) -> None:
    time = Time(START)
    second = lease(store, time, "b")
    led: list[bool] = []
    # The second has read, claimed and waited before the first's claim is stored.
    slow = InterruptedStore(store, "audit_store.drift_leases", 1, lambda: led.append(second.hold()))

    led.append(lease(slow, time, "a").hold())

    assert led == [True, False]


def test_a_name_of_ones_own_may_take_the_lease_back_at_once(store: ClickHouseStore) -> None:
    time = Time(START)
    assert lease(store, time, "embedded").hold()

    again = lease(store, time, "embedded")

    assert again.hold()
    assert again.epoch == 2
