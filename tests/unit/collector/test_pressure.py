import threading

import pytest

from lookup_audit.collector.pressure import Budget, OverloadedError


def test_what_a_lease_took_is_given_back() -> None:
    budget = Budget(max_bytes=10, max_events=2)
    with budget.lease() as lease:
        lease.take(4, 1)
        lease.take(6, 1)
        assert (budget.bytes, budget.events) == (10, 2)
    assert (budget.bytes, budget.events) == (0, 0)


@pytest.mark.parametrize(("size", "events"), [(11, 0), (1, 3)])
def test_more_than_the_budget_is_refused_and_not_kept(size: int, events: int) -> None:
    budget = Budget(max_bytes=10, max_events=2)
    with budget.lease() as lease, pytest.raises(OverloadedError):
        lease.take(size, events)
    assert (budget.bytes, budget.events) == (0, 0)


def test_a_refused_lease_still_gives_back_what_it_had() -> None:
    budget = Budget(max_bytes=10, max_events=2)
    with budget.lease() as lease:
        lease.take(10, 2)
        with pytest.raises(OverloadedError):
            lease.take(1)
    assert (budget.bytes, budget.events) == (0, 0)


def test_a_second_release_gives_nothing_more_back() -> None:
    budget = Budget(max_bytes=10, max_events=2)
    lease = budget.lease()
    lease.take(3, 1)
    lease.release()
    lease.release()
    assert (budget.bytes, budget.events) == (0, 0)


def test_the_count_is_exact_over_threads() -> None:
    budget = Budget(max_bytes=10**9, max_events=10**9)

    def work() -> None:
        for _ in range(2000):
            with budget.lease() as lease:
                lease.take(3, 1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (budget.bytes, budget.events) == (0, 0)
