import math
import random
from datetime import date, timedelta

from hypothesis import given
from hypothesis import strategies as st

from lookup_audit.processors.sampling.draw import draw
from lookup_audit.processors.sampling.plan import DayPlan, Stratum, plan_day

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
DAY = date(2026, 11, 30)


@given(TEXT, st.dates(), TEXT, TEXT)
def test_a_draw_is_a_number_from_0_to_below_1(seed: str, day: date, tenant: str, i: str) -> None:
    u = draw(seed, day, tenant, i)
    assert 0 <= u < 1
    assert u == draw(seed, day, tenant, i)


@given(TEXT, TEXT, st.integers(1, 12))
def test_moving_a_letter_from_one_text_to_the_next_is_another_draw(
    tenant: str, event_id: str, cut: int
) -> None:
    joined = tenant + "0" + event_id
    other = joined[: cut % len(joined)]
    if other != tenant:
        rest = joined[len(other) :]
        assert draw("s", DAY, tenant, "0" + event_id) != draw("s", DAY, other, rest)


def test_a_known_draw_stays_what_it_is() -> None:
    # sha256 of "1:s10:2026-11-304:acme5:evt-1", first 53 bits.
    assert draw("s", DAY, "acme", "evt-1") == 0.9377666556797789


def test_draws_are_spread_evenly() -> None:
    n = 20_000
    draws = sorted(draw("s", DAY, "acme", str(i)) for i in range(n))
    # Kolmogorov: 1.95 / sqrt(n) is exceeded once in a thousand sets; this one is fixed.
    assert max(abs(u - i / n) for i, u in enumerate(draws)) < 1.95 / math.sqrt(n)


@given(st.integers(1, 400), st.integers(1, 400))
def test_a_larger_sample_holds_the_smaller(one: int, other: int) -> None:
    strata = {Stratum("dense", "m", level, "plain"): n for level, n in (("NONE", 90), ("P", 7))}
    ids = {s: [f"{s.level}-{i}" for i in range(n)] for s, n in strata.items()}

    def sample(plan: DayPlan) -> set[str]:
        return {
            i
            for s, members in ids.items()
            for i in members
            if draw(plan.seed, DAY, "acme", i) < plan.strata[s].probability
        }

    small, large = (
        sample(plan_day(strata, size=size, seed=None, default_seed="s"))
        for size in sorted((one, other))
    )
    assert small <= large


def test_the_weighted_estimate_over_many_days_is_unbiased() -> None:
    """Hajek's ratio sum(y/p) / sum(1/p) of each day against the day's own rate.

    Errors depend on level and class, so that a plain average of the sample would be far off. The
    mean deviation over 400 days must lie within 3.5 of its own standard errors.
    """
    chance = {("PRECISE", "plain"): 0.05, ("PRECISE", "mismatch"): 0.6, ("NONE", "plain"): 0.3}
    sizes = {("PRECISE", "plain"): 1500, ("PRECISE", "mismatch"): 40, ("NONE", "plain"): 460}
    strata = {Stratum("dense", "m", level, kind): n for (level, kind), n in sizes.items()}
    plan = plan_day(strata, size=200, seed=None, default_seed="sim")
    dice = random.Random(20261130)
    deviations, naive = [], []
    for number in range(400):
        day = DAY + timedelta(days=number)
        errors = total = hits = weights = drawn = wrong = 0.0
        for stratum, n in strata.items():
            p = plan.strata[stratum].probability
            for i in range(n):
                y = dice.random() < chance[stratum.level, stratum.lookup_class]
                total += 1
                errors += y
                if draw(plan.seed, day, "acme", f"{stratum.level}-{stratum.lookup_class}-{i}") < p:
                    weights += 1 / p
                    hits += y / p
                    drawn += 1
                    wrong += y
        deviations.append(hits / weights - errors / total)
        naive.append(wrong / drawn - errors / total)
    mean = math.fsum(deviations) / len(deviations)
    spread = math.sqrt(math.fsum((d - mean) ** 2 for d in deviations) / (len(deviations) - 1))
    standard_error = spread / math.sqrt(len(deviations))
    assert abs(mean) < 3.5 * standard_error
    assert math.fsum(naive) / len(naive) > 10 * standard_error
