import random
from collections.abc import Callable
from math import sqrt
from typing import Any

import pytest

from lookup_audit.processors.triage import Cause, read_rises, weigh_causes
from lookup_audit.processors.triage.causes import FACTORS, Kind, Row

SHARES = [f.name for f in FACTORS if f.measure == "share"]
VERSIONS = [f.name for f in FACTORS if f.measure == "version"]


def row(*, on_day: bool = True, bad: bool = False, n: int = 1, **over: Any) -> Row:
    plain: Row = {"tenant": "t", "model_version": "m", "mode": "hybrid", "top_k": 4}
    plain |= dict.fromkeys(SHARES, 0) | dict.fromkeys(VERSIONS, "v1")
    return plain | {"age_days": 10, "quality": 0.8, "on_day": on_day, "bad": bad, "n": n} | over


def noise(chance: random.Random, *, on_day: bool, bad: bool) -> Row:
    """A lookup whose factors have nothing to do with anything."""
    shares: dict[str, Any] = {name: int(chance.random() < 0.3) for name in SHARES}
    versions: dict[str, Any] = {name: chance.choice(["v1", "v1", "v2"]) for name in VERSIONS}
    return row(
        on_day=on_day,
        bad=bad,
        age_days=int(chance.expovariate(1 / 50)),
        quality=round(chance.random(), 3),
        top_k=chance.choice([4, 8]),
        **shares,
        **versions,
    )


def noisy_rows(chance: random.Random) -> list[Row]:
    """A day with a rise and its baseline, without any cause."""
    day = [noise(chance, on_day=True, bad=i < 14) for i in range(40)]
    return day + [noise(chance, on_day=False, bad=i < 8) for i in range(80)]


def named(causes: list[Cause], name: str, contrast: str) -> Cause:
    (found,) = [c for c in causes if (c.factor, c.contrast) == (name, contrast)]
    return found


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["errors", "refusals"])
def test_without_a_cause_at_most_one_day_in_twenty_names_one(kind: Kind) -> None:
    chance = random.Random(7)
    days = 250
    alarms = sum(
        any(c.is_clear for c in weigh_causes(noisy_rows(chance), kind, resamples=999))
        for _ in range(days)
    )
    assert alarms / days <= 0.05 + 3 * sqrt(0.05 * 0.95 / days)


def stale(found: Row) -> Row:
    return found | ({"age_days": found["age_days"] + 150} if found["bad"] else {})


def unlinked(found: Row) -> Row:
    return found | ({"missing_link": 1} if found["bad"] else {})


@pytest.mark.parametrize(
    ("kind", "plant", "name"),
    [
        pytest.param("errors", stale, "age_days", id="stale documents behind errors"),
        pytest.param("refusals", unlinked, "missing_link", id="missing links behind refusals"),
    ],
)
def test_a_planted_cause_is_ranked_first(
    kind: Kind, plant: Callable[[Row], Row], name: str
) -> None:
    chance = random.Random(5)
    for _ in range(20):
        planted = [plant(r) if r["on_day"] else r for r in noisy_rows(chance)]
        first = weigh_causes(planted, kind)[0]
        assert (first.factor, first.is_clear) == (name, True)
        assert first.interval is not None
        assert first.interval[0] > 0


def test_clear_causes_come_in_the_order_in_which_to_look() -> None:
    rows = [
        row(bad=True, n=20, age_days=200, ruleset="v2"),
        row(n=30, age_days=20, ruleset="v2"),
        row(on_day=False, bad=True, n=5),
        row(on_day=False, n=95),
    ]
    causes = weigh_causes(rows, "errors")
    clear = [(c.factor, c.contrast) for c in causes if c.is_clear]
    assert clear == [("age_days", "outcome"), ("age_days", "day"), ("ruleset", "day")]
    ruleset = named(causes, "ruleset", "day")
    assert (ruleset.value, ruleset.other, ruleset.note) == (1.0, 0.0, "v1 -> v2")
    assert weigh_causes(rows, "refusals")[0].factor == "ruleset"


def test_a_factor_that_points_the_harmless_way_is_no_cause() -> None:
    rows = [row(bad=True, n=20, age_days=5), row(n=20, age_days=300, missing_link=1)]
    causes = weigh_causes(rows, "errors", has_baseline=False)
    age = named(causes, "age_days", "outcome")
    assert age.adjusted_p is not None
    assert age.adjusted_p < 0.01
    assert not any(c.is_clear for c in causes)


def test_what_cannot_be_compared_has_no_p_value_and_is_not_corrected_for() -> None:
    rows = [row(bad=True, n=4, missing_link=1, age_days=None), row(n=4, age_days=3)]
    causes = weigh_causes(rows, "errors", has_baseline=False)
    link = named(causes, "missing_link", "outcome")
    assert (link.value, link.other, link.n, link.n_other) == (1.0, 0.0, 4, 4)
    # The only comparison: 2 of the 70 ways to choose 4 of 8.
    assert link.p == link.adjusted_p == pytest.approx(2 / 70)
    assert named(causes, "age_days", "outcome").note.startswith("n is too small")
    assert named(causes, "category_filter", "outcome").note == "the same everywhere"
    assert [c.p for c in causes if c is not link] == [None] * (len(causes) - 1)


def test_top_k_is_looked_at_last_and_never_within_the_day() -> None:
    rows = [
        row(bad=True, n=20, top_k=8, ruleset="v2"),
        row(n=20, top_k=8, ruleset="v2"),
        row(on_day=False, n=60),
    ]
    clear = [c.factor for c in weigh_causes(rows, "refusals") if c.is_clear]
    assert clear == ["ruleset", "top_k"]


def rise_of(bad: int, n: int, before_bad: int, before: int, **over: Any) -> list[Row]:
    return [
        row(bad=True, n=bad, **over),
        row(n=n - bad, **over),
        row(on_day=False, bad=True, n=before_bad, **over),
        row(on_day=False, n=before - before_bad, **over),
    ]


@pytest.mark.parametrize(
    ("counts", "state"),
    [
        pytest.param((20, 50, 5, 100), "rise", id="rise"),
        pytest.param((5, 50, 10, 100), "no_rise", id="as before"),
        pytest.param((0, 50, 10, 100), "no_rise", id="none at all"),
        pytest.param((2, 50, 30, 100), "no_rise", id="a fall is no rise"),
        pytest.param((2, 3, 0, 2), "too_few", id="too few to tell"),
        pytest.param((5, 9, 0, 0), "no_baseline", id="no baseline"),
    ],
)
def test_a_rise_is_told_from_chance_and_from_too_few(
    counts: tuple[int, int, int, int], state: str
) -> None:
    (rise,) = read_rises([r for r in rise_of(*counts) if r["n"]], "errors", resamples=99)
    assert (rise.bad, rise.n, rise.baseline_bad, rise.baseline_n) == counts
    assert rise.state == state
    assert bool(rise.causes) == (state in ("rise", "no_baseline"))


def test_strata_are_judged_apart_and_corrected_for_their_number() -> None:
    dense = rise_of(6, 20, 12, 120, mode="dense")
    alone = read_rises(dense, "errors", resamples=99)[0]
    others = [
        r for i in range(3) for r in rise_of(3, 30, 10, 100, mode="hybrid", tenant=f"other-{i}")
    ]
    together = read_rises(dense + others, "errors", resamples=99)
    assert (alone.state, together[0].mode, together[0].state) == ("rise", "dense", "no_rise")
    assert together[0].p == alone.p
    assert together[0].adjusted_p == pytest.approx(4 * (alone.p or 0))
    assert {(r.tenant, r.n) for r in together[1:]} == {(f"other-{i}", 30) for i in range(3)}


def test_a_stratum_without_a_lookup_on_the_day_is_left_out() -> None:
    assert read_rises([row(on_day=False, n=9)], "errors") == []
    assert read_rises([], "refusals") == []
