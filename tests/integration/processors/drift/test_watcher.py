from datetime import UTC, timedelta
from typing import Any

import pytest

from lookup_audit.processors.drift.config import DriftConfig
from lookup_audit.processors.drift.ledger import acceptance_row
from lookup_audit.processors.store import ClickHouseStore
from tests.support.drift import (
    CONFIG,
    START,
    InterruptedStore,
    Killed,
    KillingStore,
    Time,
    add_traffic,
    alarms,
    forget_drift,
    make_watcher,
    settle,
)

pytest_plugins = ["tests.support.engine"]

HOUR = timedelta(hours=1)


def watch(store: ClickHouseStore, at: Any, config: DriftConfig = CONFIG) -> list[dict[str, Any]]:
    """Watch everything that is stored, with a watcher of its own, and return the alarms."""
    forget_drift(store)
    settle(make_watcher(store, Time(at), config=config))
    return alarms(store)


def a_drop(store: ClickHouseStore) -> Any:
    """30 hours at 60 %, then 10 hours at 40 %; returns when it is all stored and silent."""
    changed = add_traffic(store, "before", hours=30, a_minute=4)
    return add_traffic(store, "after", start=changed, hours=10, a_minute=4, rate=0.4) + HOUR


def test_a_drop_of_twenty_points_gives_one_alarm_with_its_start_and_size(
    store: ClickHouseStore,
) -> None:
    found = watch(store, a_drop(store))

    assert len(found) == 1
    alarm = found[0]
    changed = START + timedelta(hours=30)
    assert (alarm["metric"], alarm["direction"], alarm["state"]) == ("precise_rate", "down", "open")
    assert (alarm["tenant"], alarm["mode"], alarm["model_version"]) == ("acme", "dense", "m1")
    assert timedelta(0) < alarm["detected_at"] - changed < timedelta(hours=2)
    assert abs(alarm["started_at"] - changed) < timedelta(hours=1)
    assert alarm["change_low"] < -20 < alarm["change_high"] < 0
    assert "fell by" in alarm["summary"]


def test_a_steady_rate_gives_none(store: ClickHouseStore) -> None:
    end = add_traffic(store, "steady", hours=72, a_minute=4)

    assert watch(store, end + HOUR) == []


def test_an_empty_store_is_watched_in_silence(store: ClickHouseStore) -> None:
    assert watch(store, START) == []
    assert store.query("SELECT count() FROM audit_store.drift_steps").scalar() == 0


@pytest.mark.parametrize("rate", [0.0, 1.0])
def test_a_rate_at_its_end_is_watched(store: ClickHouseStore, rate: float) -> None:
    changed = add_traffic(store, "before", hours=30, a_minute=4, rate=rate)
    assert watch(store, changed + HOUR) == []

    end = add_traffic(store, "after", start=changed, hours=3, a_minute=4, rate=abs(rate - 0.2))
    found = watch(store, end + HOUR)

    assert [a["direction"] for a in found] == ["up" if rate == 0.0 else "down"]


def test_restarts_and_other_steps_change_no_alarm(store: ClickHouseStore) -> None:
    silent = a_drop(store)
    at_once = watch(store, silent)

    forget_drift(store)
    time = Time(START)
    while time.now < silent:
        # Every watcher sees a few more hours, and is then gone without a word.
        time.advance(hours=3, minutes=7)
        settle(make_watcher(store, time, holder=f"watcher-{time.now}"))

    assert at_once
    assert alarms(store) == at_once


@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
def test_a_kill_at_any_write_changes_no_alarm(store: ClickHouseStore, before: bool) -> None:
    silent = a_drop(store)
    at_once = watch(store, silent)

    forget_drift(store)
    time, kills, number = Time(START + HOUR), 0, 0
    while time.now < silent:
        # Two minutes outlive the lease of whoever was killed.
        time.advance(hours=1, minutes=2)
        number += 1
        # A step has about seven writes, and the first claim one more.
        killing = KillingStore(store, number % 9 + 1, before=before)
        try:
            settle(make_watcher(killing, time, holder=f"watcher-{number}"))
        except Killed:
            kills += 1
    time.advance(minutes=2)
    settle(make_watcher(store, time, holder="last"))

    assert kills > 15
    assert alarms(store) == at_once


def test_a_second_watcher_waits_and_then_goes_on(store: ClickHouseStore) -> None:
    silent = a_drop(store)
    at_once = watch(store, silent)

    forget_drift(store)
    time = Time(silent)
    first, second = make_watcher(store, time), make_watcher(store, time, holder="watcher-2")
    assert first.tick()
    assert not second.tick()
    time.advance(minutes=2)
    assert settle(second) > 0

    assert not first.tick()
    assert alarms(store) == at_once


def test_a_leader_that_slept_past_its_lease_changes_nothing(store: ClickHouseStore) -> None:
    silent = a_drop(store)
    at_once = watch(store, silent)

    forget_drift(store)
    time = Time(START + timedelta(hours=20))
    second = make_watcher(store, time, holder="watcher-2")

    def meanwhile() -> None:
        # The first is in the middle of its second step, for longer than its lease.
        time.now = silent
        settle(second)

    sleepy = InterruptedStore(store, "audit_store.drift_minutes", 2, meanwhile)
    first = make_watcher(sleepy, time)
    assert first.tick()
    time.advance(seconds=50, hours=1)
    time.uptime -= 3600
    assert first.tick()

    twice = store.query(
        "SELECT step, groupUniqArray(epoch) FROM audit_store.drift_steps "
        "GROUP BY step HAVING count() > 1"
    )
    assert [(step, sorted(epochs)) for step, epochs in twice] == [(2, [1, 2])]
    assert alarms(store) == at_once
    assert not first.tick()


def test_late_lookups_are_counted_apart(store: ClickHouseStore) -> None:
    end = add_traffic(store, "on-time", hours=2)
    add_traffic(store, "late", start=START, hours=1, delay=timedelta(minutes=30))
    time = Time(end + HOUR)
    settle(make_watcher(store, time))
    add_traffic(store, "missed", start=START, hours=1, stored_after=timedelta(hours=5))
    add_traffic(store, "older", start=START, hours=1, delay=timedelta(days=2))
    add_traffic(store, "next", start=START + timedelta(days=3), hours=2)
    time.advance(days=4)
    settle(make_watcher(store, time))

    found = store.query(
        "SELECT sum(n), sum(late), sum(missed) FROM audit.drift_minutes "
        "WHERE metric = 'precise_rate' AND quality_basis = '*'"
    )

    assert found == [(480, 240, 120)]
    stored = store.query("SELECT count() FROM audit_store.lookups").scalar()
    assert stored == sum(found[0])


def test_a_closed_minute_is_never_opened_again(store: ClickHouseStore) -> None:
    sql = "SELECT minute, n, k FROM audit.drift_minutes WHERE n > 0 ORDER BY ALL"
    end = add_traffic(store, "on-time", hours=2)
    time = Time(end + HOUR)
    settle(make_watcher(store, time))
    before = store.query(sql)
    add_traffic(store, "missed", start=START, hours=1, stored_after=timedelta(hours=5))
    time.advance(days=1)
    settle(make_watcher(store, time))

    assert store.query(sql) == before


def test_minutes_stay_open_until_what_was_on_time_must_be_stored(store: ClickHouseStore) -> None:
    end = add_traffic(store, "traffic", hours=2)

    settle(make_watcher(store, Time(end)))

    closed = store.query("SELECT max(minute) FROM audit.drift_minutes").scalar()
    assert closed.replace(tzinfo=UTC) == end - timedelta(minutes=4)


@pytest.mark.parametrize("jump", [timedelta(days=400), timedelta(days=-400)])
def test_a_clock_that_jumps_changes_no_alarm(store: ClickHouseStore, jump: timedelta) -> None:
    changed = add_traffic(store, "before", hours=30, a_minute=4)
    time = Time(changed)
    settle(make_watcher(store, time))
    settle(make_watcher(store, Time(changed + jump), holder="jumped"))
    time.advance(hours=1)
    end = add_traffic(store, "after", start=changed, hours=10, a_minute=4, rate=0.4)
    settle(make_watcher(store, Time(max(end, end + jump) + HOUR), holder="later"))
    jumped = alarms(store)

    assert jumped
    assert jumped == watch(store, end + HOUR)


def test_an_alarm_closes_when_the_rate_is_back(store: ClickHouseStore) -> None:
    changed = a_drop(store) - HOUR
    end = add_traffic(store, "back", start=changed, hours=10, a_minute=4)

    found = watch(store, end + HOUR)

    assert [a["state"] for a in found] == ["recovered"]
    assert changed < found[0]["closed_at"] < changed + timedelta(hours=3)


def test_an_accepted_rate_is_the_new_reference(store: ClickHouseStore) -> None:
    silent = a_drop(store)
    alarm_id = watch(store, silent)[0]["alarm_id"]
    row = acceptance_row(
        alarm_id, accepted_by="mia", comment="new index", accepted_at=silent + HOUR
    )
    store.insert("audit_store.drift_acceptances", row, token="accept")
    assert [a["state"] for a in alarms(store)] == ["accepted"]
    end = add_traffic(store, "go on", start=silent + HOUR, hours=40, a_minute=4, rate=0.4)
    settle(make_watcher(store, Time(end + HOUR), holder="later"))
    accepted = alarms(store)

    assert [(a["state"], a["accepted_by"]) for a in accepted] == [("accepted", "mia")]
    assert accepted == watch(store, end + HOUR)
    reference = store.query(
        "SELECT phase, reference_rate FROM audit.drift_strata "
        "WHERE metric = 'precise_rate' AND quality_basis = '*'"
    )
    assert reference[0][0] != "warming"
    assert reference[0][1] == pytest.approx(0.4, abs=0.03)


def test_a_new_model_version_is_compared_with_the_one_before(store: ClickHouseStore) -> None:
    changed = add_traffic(store, "old", hours=30, a_minute=4)
    end = add_traffic(store, "new", start=changed, hours=5, a_minute=4, rate=0.35, model="m2")

    found = watch(store, end + HOUR)

    assert [(a["model_version"], a["compared_to"]) for a in found] == [("m2", "m1")]
    assert "expected from m1" in found[0]["summary"]


def test_modes_and_tenants_are_never_pooled(store: ClickHouseStore) -> None:
    end = START
    for tenant in ("a", "b"):
        for mode in ("dense", "hybrid"):
            name = f"{tenant}-{mode}"
            changed = add_traffic(store, name, hours=30, a_minute=4, tenant=tenant, mode=mode)
            rate = 0.4 if name == "b-hybrid" else 0.6
            end = add_traffic(
                store,
                f"{name}-2",
                start=changed,
                hours=6,
                a_minute=4,
                tenant=tenant,
                mode=mode,
                rate=rate,
            )

    found = watch(store, end + HOUR)

    assert [(a["tenant"], a["mode"]) for a in found] == [("b", "hybrid")]


def test_a_stratum_says_how_far_it_is_before_it_is_watched(store: ClickHouseStore) -> None:
    end = add_traffic(store, "few", hours=3)
    watch(store, end + HOUR)

    found = store.query(
        "SELECT status, reference_calls, calls_needed FROM audit.drift_strata "
        "WHERE metric = 'precise_rate' AND quality_basis = '*'"
    )

    assert found == [("not watching yet", 360.0, 500)]
