import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookup_audit.processors.sampling.plan import (
    CLASSES,
    DEFAULT_SIZE,
    DayPlan,
    Stratum,
    in_force,
    plan_day,
    probability,
    solve_scale,
)
from lookup_audit.schemas.errors import ConfigError
from lookup_audit.schemas.names import LEVELS

STRATA = st.builds(
    Stratum,
    st.sampled_from(["dense", "hybrid"]),
    st.sampled_from(["m@1", "m@2"]),
    st.sampled_from(LEVELS),
    st.sampled_from(CLASSES),
)
POPULATIONS = st.dictionaries(STRATA, st.integers(1, 200_000), min_size=1, max_size=30)
SIZES = st.integers(1, 50_000)


def make_plan(
    populations: dict[Stratum, int], size: int | None, stored: DayPlan | None = None
) -> DayPlan:
    return plan_day(populations, size=size, seed=None, default_seed="s", stored=stored)


def make_stratum(lookup_class: str = "plain", level: str = "NONE") -> Stratum:
    return Stratum("dense", "m@1", level, lookup_class)


@given(populations=POPULATIONS, size=SIZES)
def test_the_expected_number_drawn_is_the_size_or_all_there_are(
    populations: dict[Stratum, int], size: int
) -> None:
    plan = make_plan(populations, size)
    expected = math.fsum(populations[s] * p.probability for s, p in plan.strata.items())
    assert expected == pytest.approx(min(size, sum(populations.values())))


@given(populations=POPULATIONS, size=SIZES)
def test_every_lookup_has_a_chance_and_none_more_than_one(
    populations: dict[Stratum, int], size: int
) -> None:
    plan = make_plan(populations, size)
    assert set(plan.strata) == set(populations)
    assert all(0 < p.probability <= 1 for p in plan.strata.values())


@given(populations=POPULATIONS, one=SIZES, other=SIZES)
def test_a_larger_size_lowers_no_probability(
    populations: dict[Stratum, int], one: int, other: int
) -> None:
    small, large = (make_plan(populations, size).strata for size in sorted((one, other)))
    for stratum in populations:
        # Sums of floats may differ in the last places.
        assert small[stratum].probability <= large[stratum].probability * (1 + 1e-12)


@given(before=POPULATIONS, now=POPULATIONS, one=SIZES, other=SIZES)
def test_drawing_again_never_lowers_a_stored_probability(
    before: dict[Stratum, int], now: dict[Stratum, int], one: int, other: int
) -> None:
    first = make_plan(before, one)
    second = make_plan(now, other, first)
    for stratum in before:
        assert second.strata[stratum].probability >= first.strata[stratum].probability
    assert second.size == max(one, other)


@given(before=POPULATIONS, now=POPULATIONS, size=SIZES)
def test_the_same_or_a_smaller_size_plans_only_what_was_not_there(
    before: dict[Stratum, int], now: dict[Stratum, int], size: int
) -> None:
    first = make_plan(before, size)
    for again in (None, size, 1):
        second = make_plan(now, again, first)
        assert second.added == set(now) - set(before)
        assert {s: second.strata[s] for s in before} == first.strata
        for stratum in second.added:
            expected = probability(stratum, now[stratum], first.scale)
            assert second.strata[stratum].probability == expected


@given(before=POPULATIONS, now=POPULATIONS, sizes=st.lists(SIZES, min_size=1, max_size=4))
def test_the_stored_rows_give_the_rule_back(
    before: dict[Stratum, int], now: dict[Stratum, int], sizes: list[int]
) -> None:
    plan = make_plan(before, sizes[0])
    rows = [(s, plan.strata[s]) for s in sorted(plan.added)]
    for size in sizes[1:]:
        plan = make_plan(now, size, plan)
        rows += [(s, plan.strata[s]) for s in sorted(plan.added)]
    back = in_force("s", rows)
    assert back is not None
    assert (back.seed, back.size, back.scale) == (plan.seed, plan.size, plan.scale)
    chances = {s: p.probability for s, p in plan.strata.items()}
    assert {s: p.probability for s, p in back.strata.items()} == chances


def test_the_constant_is_the_one_worked_out_by_hand() -> None:
    # Weights 3 * 3 = 9 and 1 * sqrt(100) = 10. With c = 1 the small stratum would want 9 of its
    # 4 lookups, so it gives all 4 and the other 6 come from the large one: c = 6 / 10.
    populations = {make_stratum("mismatch"): 4, make_stratum(): 100}
    assert solve_scale(populations, 10) == pytest.approx(0.6)
    plan = make_plan(populations, 10)
    assert [plan.strata[s].probability for s in populations] == [1.0, pytest.approx(0.06)]


@pytest.mark.parametrize(("lookup_class", "times"), [("near_threshold", 2), ("mismatch", 3)])
def test_what_teaches_most_is_drawn_more_often(lookup_class: str, times: int) -> None:
    populations = {make_stratum(lookup_class): 10_000, make_stratum(): 10_000}
    plan = make_plan(populations, 100)
    plain, other = plan.strata[make_stratum()], plan.strata[make_stratum(lookup_class)]
    assert other.probability == pytest.approx(times * plain.probability)


def test_a_small_stratum_gets_more_than_its_share() -> None:
    populations = {make_stratum(): 1_000_000, make_stratum(level="PRECISE"): 9}
    plan = make_plan(populations, 500)
    assert plan.strata[make_stratum(level="PRECISE")].probability * 9 > 1
    assert 500 * 9 / 1_000_009 < 0.01


def test_without_a_size_the_default_or_the_stored_one_is_used() -> None:
    populations = {make_stratum(): 1_000}
    assert make_plan(populations, None).size == DEFAULT_SIZE
    assert make_plan(populations, None, make_plan(populations, 7)).size == 7


def test_a_day_without_lookups_has_an_empty_plan() -> None:
    plan = make_plan({}, 10)
    assert (plan.strata, plan.added) == ({}, frozenset())


def test_the_seed_of_a_day_cannot_be_changed() -> None:
    stored = make_plan({make_stratum(): 10}, 5)
    with pytest.raises(ConfigError, match="seed 's' and keeps it"):
        plan_day({make_stratum(): 10}, size=5, seed="t", default_seed="s", stored=stored)
    again = plan_day({make_stratum(): 10}, size=5, seed="s", default_seed="d", stored=stored)
    assert again.seed == "s"


@pytest.mark.parametrize("size", [0, -1])
def test_a_size_must_be_positive(size: int) -> None:
    with pytest.raises(ConfigError, match="at least 1"):
        make_plan({make_stratum(): 10}, size)
