import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookup_audit.processors.drift.config import DriftConfig, drift_config
from lookup_audit.processors.drift.reference import Phase, Reference, can_freeze, is_warm, learn
from lookup_audit.schemas.errors import ConfigError

CONFIG = DriftConfig()
DAY = 1440
FIGURES = Path(__file__).parents[4] / "processors" / "FIGURES.md"


def test_the_page_lists_every_setting_with_its_default() -> None:
    table = FIGURES.read_text("utf-8").split("| `DriftConfig` | default |")[1].split("\n\n")[0]
    documented = dict(re.findall(r"^\| `(\w+)` \| ([\d.]+) \|", table, re.M))

    fields = {name: f"{f.default:g}" for name, f in DriftConfig.model_fields.items()}
    assert documented == fields, "processors/FIGURES.md and drift/config.py differ"


def test_warming_needs_calls_and_a_full_day() -> None:
    many = Reference(k=300, n=600, since=0)

    assert not is_warm(many, CONFIG, 1.0, DAY - 1)
    assert is_warm(many, CONFIG, 1.0, DAY)
    assert not is_warm(replace(many, n=499), CONFIG, 1.0, DAY)


def test_clustered_calls_count_for_less() -> None:
    assert not is_warm(Reference(k=300, n=600, since=0), CONFIG, 2.0, DAY)


def test_what_is_learned_waits_in_quarantine() -> None:
    reference = Reference(k=600, n=1000, since=0, phase=Phase.LEARNING)
    for minute in range(10):
        reference = learn(reference, minute, 10, 100)

    assert reference.n == 1000
    assert sum(c.n for c in reference.quarantine) == 1000

    for minute in range(10, 60):
        reference = learn(reference, minute, 10, 100)
    held = sum(c.n for c in reference.quarantine)
    assert 2 * 1000 <= held <= 3200
    assert reference.n == 1000 + 6000 - held


def test_after_a_week_it_is_learned_whatever_its_number() -> None:
    reference = Reference(k=600, n=1000, since=0, phase=Phase.LEARNING)
    for day in range(9):
        reference = learn(reference, day * DAY, 6, 10)

    assert reference.n == 1020


@given(
    batches=st.lists(st.tuples(st.integers(0, 300), st.integers(1, 2000)), min_size=1, max_size=200)
)
def test_every_call_is_learned_or_held_and_few_chunks_hold_them(
    batches: list[tuple[int, int]],
) -> None:
    reference, minute, total = Reference(k=300, n=500, since=0, phase=Phase.LEARNING), 0, 500
    for gap, n in batches:
        minute, total = minute + gap, total + n
        reference = learn(reference, minute, 0, n)

    assert reference.n + sum(c.n for c in reference.quarantine) == total
    assert len(reference.quarantine) <= 64


def test_a_frozen_reference_learns_nothing() -> None:
    frozen = Reference(k=600, n=1000, since=0, phase=Phase.FROZEN)

    assert learn(frozen, 5, 0, 100) is frozen


def test_it_is_pinned_when_sharp_and_two_weeks_old() -> None:
    sharp = Reference(k=13_200, n=22_000, since=0, phase=Phase.LEARNING)

    assert can_freeze(sharp, CONFIG, 1.0, 14 * DAY)
    assert not can_freeze(sharp, CONFIG, 1.0, 13 * DAY)
    assert not can_freeze(replace(sharp, k=6_000, n=10_000), CONFIG, 1.0, 14 * DAY)


def test_a_batch_too_large_for_an_estimate_is_not_tested() -> None:
    learning = Reference(k=600, n=1000, since=0, phase=Phase.LEARNING)

    assert learning.can_test(50)
    assert not learning.can_test(51)
    assert replace(learning, phase=Phase.FROZEN).can_test(5_000)
    assert not replace(learning, phase=Phase.WARMING).can_test(1)


@pytest.mark.parametrize(
    ("name", "value", "advice"),
    [
        ("ignore_points", 0, "1 is sensible"),
        ("ignore_points", 60, "1 is sensible"),
        ("false_alarm_days", 0.5, "30 to 365 days is sensible"),
        ("fleet_false_alarm_days", 9_999, "7 to 90 days"),
        ("minimum_calls", 3, "500 is sensible"),
        ("reference_days", 400, "two weekly cycles"),
    ],
)
def test_a_setting_without_sense_is_refused_with_one_that_has(
    name: str, value: float, advice: str
) -> None:
    with pytest.raises(ConfigError, match=advice) as refused:
        drift_config(**{name: value})
    assert name in str(refused.value)
