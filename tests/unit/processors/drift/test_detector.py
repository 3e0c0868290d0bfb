import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookup_audit.processors.drift.detector import (
    BOTH,
    FALLS,
    RISES,
    Evidence,
    brackets,
    injection,
    no_evidence,
    step,
)

shares = st.floats(0.0, 1.0)
bands = st.floats(0.0, 0.1)


def fed(batches: list[tuple[int, int]], mean: float, band: float = 0.01) -> Evidence:
    evidence = no_evidence(BOTH)
    for minute, (k, n) in enumerate(batches):
        logs = brackets(BOTH, k, n, mean=mean, band=band, dispersion=1.0)
        evidence = step(evidence, logs, inject=1e-4, minute=minute, k=k, n=n, expected=n * mean)
    return evidence


@given(mean=shares, band=bands, rate=shares, dispersion=st.floats(1.0, 50.0))
def test_one_call_multiplies_evidence_by_at_most_one_on_average_inside_the_band(
    mean: float, band: float, rate: float, dispersion: float
) -> None:
    inside = min(max(rate, mean - band), mean + band)
    inside = min(max(inside, 0.0), 1.0)
    yes = brackets(BOTH, 1, 1, mean=mean, band=band, dispersion=dispersion)
    no = brackets(BOTH, 0, 1, mean=mean, band=band, dispersion=dispersion)

    for up, down in zip(yes, no, strict=True):
        assert inside * math.exp(up) + (1 - inside) * math.exp(down) <= 1 + 1e-9


@given(
    batches=st.lists(
        st.integers(0, 50).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), max_size=20
    ),
    mean=shares,
)
def test_the_order_of_calls_within_a_batch_is_nothing_and_numbers_stay_finite(
    batches: list[tuple[int, int]], mean: float
) -> None:
    evidence = fed(batches, mean)

    assert 0.0 <= evidence.value < math.inf
    for tilt in evidence.tilts:
        assert 0 <= tilt.k <= tilt.n


@given(calls=st.lists(st.booleans(), min_size=1, max_size=60), mean=shares, cut=st.integers(0, 60))
def test_a_batch_gives_the_evidence_of_its_calls_one_by_one(
    calls: list[bool], mean: float, cut: int
) -> None:
    def logs(part: list[bool]) -> list[float]:
        return brackets(BOTH, sum(part), len(part), mean=mean, band=0.01, dispersion=2.0)

    whole = logs(calls)
    parts = zip(logs(calls[:cut]), logs(calls[cut:]), strict=True)

    assert whole == pytest.approx([a + b for a, b in parts], abs=1e-9)


@pytest.mark.parametrize(("rate", "tilts"), [(0.0, FALLS), (1.0, RISES)])
def test_a_rate_at_its_end_can_go_no_further(
    rate: float, tilts: tuple[tuple[float, float], ...]
) -> None:
    logs = brackets(tilts, 100_000 * rate, 100_000, mean=rate, band=0.01, dispersion=1.0)

    assert all(log <= 1e-9 for log in logs)


def test_a_huge_batch_alarms_and_stays_finite() -> None:
    evidence = fed([(0, 10_000_000), (0, 10_000_000), (10_000_000, 10_000_000)], 0.5)

    assert 1.0 <= evidence.value < math.inf


def test_the_winning_tilt_knows_since_when_and_how_much() -> None:
    evidence = fed([(6, 10)] * 50 + [(2, 10)] * 20, 0.6)
    tilt = evidence.tilts[evidence.winner]

    assert BOTH[evidence.winner][0] < 0
    assert 48 <= tilt.start <= 52
    assert tilt.k / tilt.n == pytest.approx(0.2, abs=0.05)
    assert tilt.expected == pytest.approx(0.6 * tilt.n)


@given(minutes=st.floats(0, 1e6), calls=st.floats(1, 1e6))
def test_no_batch_spends_more_than_time_and_calls_allow(minutes: float, calls: float) -> None:
    spent = injection(minutes, calls, per_minute=1e-5, calls_per_alarm=5000)

    assert spent <= minutes * 1e-5
    assert spent <= calls / 5000


def test_a_stratum_of_few_calls_is_held_back() -> None:
    assert injection(7 * 1440, 1, per_minute=1e-4, calls_per_alarm=5000) == 1 / 5000
