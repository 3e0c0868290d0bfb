import math
import random

import pytest

from lookup_audit.processors.drift.dispersion import design_effect
from lookup_audit.processors.drift.season import (
    HOURS,
    Profile,
    close_hour,
    fit_offsets,
    fit_scales,
    hour_of_week,
    observe,
)


def learned(days: int, *, swing: float = 0.0, run: int = 1, calls: int = 6) -> Profile:
    """Some days of minutes; ``run`` calls in a row have one outcome."""
    source, profile = random.Random(5), Profile()
    for minute in range(days * 1440):
        rate = 0.6 + swing * math.sin(2 * math.pi * minute / 1440)
        k = sum(run for _ in range(calls // run) if source.random() < rate)
        profile = observe(profile, minute, k, calls)
    return close_hour(profile)


def test_every_call_is_in_the_sums_once() -> None:
    hours = learned(8).hours

    assert sum(h.n for h in hours) == 8 * 1440 * 6
    assert sum(h.minutes.blocks for h in hours) == 8 * 1440
    assert sum(h.tens.blocks for h in hours) == 8 * 144
    assert sum(h.whole.blocks for h in hours) == 8 * 24
    assert {h.n for h in hours} == {360, 720}


def test_a_daily_season_is_found_in_two_weeks() -> None:
    offsets = fit_offsets(learned(14, swing=0.1).hours)
    true = [0.1 * math.sin(2 * math.pi * (h + 0.5) / 24) for h in range(24)]

    for hour in range(HOURS):
        assert offsets[hour] == pytest.approx(true[hour % 24], abs=0.04)


def test_without_a_season_the_offsets_are_next_to_nothing() -> None:
    offsets = fit_offsets(learned(14).hours)

    assert max(map(abs, offsets)) < 0.012


def test_the_season_moves_no_rate_as_a_whole() -> None:
    hours = learned(14, swing=0.1).hours
    offsets = fit_offsets(hours)

    total = sum(o * h.n for o, h in zip(offsets, hours, strict=True))
    assert total == pytest.approx(0.0, abs=1e-6)


@pytest.mark.parametrize(("run", "effect"), [(1, 1.0), (2, 2.0), (6, 6.0)])
def test_calls_in_runs_have_the_design_effect_of_their_runs(run: int, effect: float) -> None:
    hours = learned(10, run=run).hours

    assert design_effect(fit_scales(hours, ())) == pytest.approx(effect, rel=0.25)


def test_a_season_that_is_known_is_no_dispersion() -> None:
    hours = learned(14, swing=0.15).hours

    assert design_effect(fit_scales(hours, ())) > 2.0
    assert design_effect(fit_scales(hours, fit_offsets(hours))) < 1.5


@pytest.mark.parametrize("k", [0, 6])
def test_rates_at_their_ends_have_no_season_and_no_dispersion(k: int) -> None:
    profile = Profile()
    for minute in range(8 * 1440):
        profile = observe(profile, minute, k, 6)
    hours = close_hour(profile).hours

    assert set(fit_offsets(hours)) == {0.0}
    assert design_effect(fit_scales(hours, ())) == 1.0


def test_no_call_gives_no_season() -> None:
    assert fit_offsets(()) == ()


def test_the_epoch_was_a_thursday() -> None:
    assert hour_of_week(0) == 3 * 24
    assert hour_of_week(4 * 1440) == 0
