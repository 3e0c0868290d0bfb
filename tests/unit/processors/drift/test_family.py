from collections.abc import Iterator

import numpy as np
import pytest

from lookup_audit.processors.drift.codec import (
    read_rollup,
    read_series,
    rollup_text,
    series_text,
)
from lookup_audit.processors.drift.config import MINUTES_A_DAY, DriftConfig
from lookup_audit.processors.drift.family import Count, Family, Told
from lookup_audit.processors.drift.series import SeriesKey
from lookup_audit.processors.drift.watcher import fold
from lookup_audit.schemas.names import ALL, DriftMetric

DAY = MINUTES_A_DAY
CONFIG = DriftConfig(young_days=0, reference_days=1)


def key(tenant: str = "acme", *, basis: str = ALL, mode: str = "dense") -> SeriesKey:
    return SeriesKey(DriftMetric.PRECISE, tenant, "kb", mode, "m1", basis)


def traffic(
    which: SeriesKey, rate: float, *, start: int, minutes: int, n: int = 10, every: int = 10
) -> Iterator[Count]:
    source = np.random.default_rng([*map(ord, which.tenant + which.mode), start])
    for minute in range(start, start + minutes, every):
        yield Count(minute, which, int(source.binomial(n, rate)), n)


def told(family: Family, counts: list[Count]) -> list[Told]:
    return fold(family, counts, ())[0]


def opened(found: list[Told]) -> list[SeriesKey]:
    return [one.key for one in found if one.transition.what == "opened"]


def strata(count: int, rates: list[float], *, start: int, minutes: int, n: int = 10) -> list[Count]:
    return [
        one
        for index in range(count)
        for one in traffic(
            key(f"t{index:02}"), rates[index % len(rates)], start=start, minutes=minutes, n=n
        )
    ]


def test_state_read_back_in_the_middle_changes_nothing() -> None:
    counts = strata(4, [0.5, 0.7], start=0, minutes=4 * DAY)
    counts += strata(4, [0.3, 0.7], start=4 * DAY, minutes=2 * DAY)
    whole = Family(CONFIG)
    expected = [(o.key, o.transition) for o in told(whole, counts)]
    found, first = [], Family(CONFIG)
    for start in range(0, 6 * DAY, 500):
        second = Family(CONFIG)
        second.restore(
            [read_series(series_text(one)) for one in first.series.values()],
            [read_rollup(rollup_text(one)) for one in first.rollups.values()],
        )
        part = [c for c in counts if start <= c.minute < start + 500]
        found += [(o.key, o.transition) for o in told(second, part)]
        first = second

    assert expected
    assert found == expected
    assert first.series == whole.series


def test_a_state_stays_small() -> None:
    family = Family(CONFIG)
    told(family, list(traffic(key(), 0.5, start=0, minutes=30 * DAY, every=5, n=100)))

    assert len(series_text(family.series[key()])) < 8_000


def test_bases_of_one_change_share_one_alarm() -> None:
    family = Family(CONFIG)
    counts: list[Count] = []
    for basis in (ALL, "dense_l2"):
        counts += traffic(key(basis=basis), 0.6, start=0, minutes=3 * DAY)
        counts += traffic(key(basis=basis), 0.3, start=3 * DAY, minutes=DAY)

    found = told(family, counts)

    assert opened(found) == [key()]
    assert {one.incident.alarm_id for one in family.series.values() if one.incident} == {
        found[0].transition.incident.alarm_id
    }


def test_a_common_shift_is_one_alarm_of_the_roll_up() -> None:
    family = Family(CONFIG)
    counts = strata(12, [0.5, 0.6, 0.7], start=0, minutes=5 * DAY)
    counts += strata(12, [0.44, 0.54, 0.64], start=5 * DAY, minutes=3 * DAY)

    found = told(family, counts)

    assert [k.tenant for k in opened(found)] == [ALL]
    assert opened(found)[0].mode == "dense"


def test_a_shift_of_the_mix_alone_raises_nothing() -> None:
    family = Family(CONFIG)
    counts = strata(6, [0.4, 0.8], start=0, minutes=5 * DAY, n=20)
    for index in range(6):
        rate, n = (0.4, 32) if index % 2 == 0 else (0.8, 8)
        counts += traffic(key(f"t{index:02}"), rate, start=5 * DAY, minutes=5 * DAY, n=n)

    assert told(family, counts) == []


def test_a_stratum_that_alarms_by_itself_does_not_page_twice() -> None:
    family = Family(CONFIG)
    counts = strata(5, [0.6], start=0, minutes=5 * DAY)
    counts += strata(4, [0.6], start=5 * DAY, minutes=2 * DAY)
    counts += traffic(key("t04"), 0.2, start=5 * DAY, minutes=2 * DAY)

    assert opened(told(family, counts)) == [key("t04")]


def test_modes_never_meet_in_a_roll_up() -> None:
    family = Family(CONFIG)
    counts: list[Count] = []
    for mode in ("dense", "hybrid"):
        for index in range(3):
            counts += traffic(key(f"t{index}", mode=mode), 0.6, start=0, minutes=3 * DAY)
    told(family, counts)

    assert sorted(k.mode for k in family.rollups) == ["dense", "hybrid"]


def test_the_fleet_keeps_one_budget() -> None:
    config = DriftConfig(
        young_days=0, reference_days=1, fleet_false_alarm_days=5, false_alarm_days=5
    )
    found = []
    for seed in range(3):
        family = Family(config)
        counts = [
            one
            for index in range(20)
            for one in traffic(key(f"{seed}-{index}"), 0.6, start=0, minutes=20 * DAY, every=30)
        ]
        found.append(len(opened(told(family, counts))))

    # Alone, 20 strata would be allowed 80 false alarms in these 20 days; together it is 4.
    assert np.mean(found) <= 4


@pytest.mark.parametrize("gap_days", [1, 30])
def test_after_silence_nothing_is_alarmed_at_once(gap_days: int) -> None:
    family = Family(CONFIG)
    counts = list(traffic(key(), 0.6, start=0, minutes=3 * DAY))
    counts += traffic(key(), 0.6, start=(3 + gap_days) * DAY, minutes=DAY)

    assert told(family, counts) == []


def common_shift(family: Family) -> str:
    """Twelve strata that fell by six points together; returns the alarm."""
    counts = strata(12, [0.5, 0.6, 0.7], start=0, minutes=5 * DAY)
    counts += strata(12, [0.44, 0.54, 0.64], start=5 * DAY, minutes=2 * DAY)
    found = told(family, counts)
    return found[0].transition.incident.alarm_id


def test_a_common_shift_that_is_accepted_is_the_new_reference_of_every_stratum() -> None:
    family = Family(CONFIG)
    alarm = common_shift(family)

    found, taken = fold(family, [], [(7 * DAY, alarm)])

    assert taken == [(7 * DAY, alarm)]
    assert [one.transition.what for one in found] == ["accepted"]
    assert family.open_alarms() == set()
    after = told(family, strata(12, [0.44, 0.54, 0.64], start=7 * DAY, minutes=4 * DAY))
    assert after == []


def test_a_common_shift_that_goes_away_is_closed_once() -> None:
    family = Family(CONFIG)
    alarm = common_shift(family)

    found = told(family, strata(12, [0.5, 0.6, 0.7], start=7 * DAY, minutes=4 * DAY))

    closed = [one for one in found if one.transition.what == "recovered"]
    assert [one.transition.incident.alarm_id for one in closed] == [alarm]
    assert opened(found) == []
    assert family.open_alarms() == set()


def test_an_acceptance_of_nothing_open_waits() -> None:
    family = Family(CONFIG)
    told(family, list(traffic(key(), 0.6, start=0, minutes=DAY)))

    assert fold(family, [], [(DAY, "unknown")]) == ([], [])
