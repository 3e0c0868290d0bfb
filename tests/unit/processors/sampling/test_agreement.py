import math
import random
from collections import Counter
from collections.abc import Hashable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookup_audit.processors.sampling.agreement import cohen_kappa

Cells = dict[tuple[Hashable, Hashable], int]
VERDICTS = ["correct", "incorrect", "partly", "cannot_tell"]
CELLS = st.dictionaries(
    st.tuples(st.sampled_from(VERDICTS), st.sampled_from(VERDICTS)), st.integers(0, 50)
)


def kappa_of_shares(shares: dict[tuple[Hashable, Hashable], float]) -> float:
    verdicts = {v for pair in shares for v in pair}
    rows = {v: math.fsum(s for (a, _), s in shares.items() if a == v) for v in verdicts}
    columns = {v: math.fsum(s for (_, b), s in shares.items() if b == v) for v in verdicts}
    observed = math.fsum(s for (a, b), s in shares.items() if a == b)
    expected = math.fsum(rows[v] * columns[v] for v in verdicts)
    return (observed - expected) / (1 - expected)


def test_kappa_is_the_one_worked_out_by_hand() -> None:
    # Agreed 35 of 50 = 0.7; by chance 0.5 * 0.6 + 0.5 * 0.4 = 0.5.
    found = cohen_kappa({("a", "a"): 20, ("a", "b"): 5, ("b", "a"): 10, ("b", "b"): 15})
    assert (found.n, found.agreed) == (50, 35)
    assert found.kappa == pytest.approx(0.4)


def test_the_interval_is_that_of_the_delta_method() -> None:
    """The variance by numerical derivatives of kappa, an independent way to the same number."""
    cells: Cells = {
        ("correct", "correct"): 44,
        ("correct", "incorrect"): 5,
        ("correct", "partly"): 1,
        ("incorrect", "correct"): 7,
        ("incorrect", "incorrect"): 20,
        ("incorrect", "partly"): 3,
        ("partly", "correct"): 9,
        ("partly", "incorrect"): 5,
        ("partly", "partly"): 6,
    }
    n = sum(cells.values())
    shares = {pair: count / n for pair, count in cells.items()}
    step = 1e-6
    slope = {
        pair: (
            kappa_of_shares(shares | {pair: share + step})
            - kappa_of_shares(shares | {pair: share - step})
        )
        / (2 * step)
        for pair, share in shares.items()
    }
    mean = math.fsum(slope[p] * shares[p] for p in shares)
    variance = (math.fsum(slope[p] ** 2 * shares[p] for p in shares) - mean**2) / n
    found = cohen_kappa(cells)
    assert found.kappa is not None
    assert found.high == pytest.approx(found.kappa + 1.959964 * math.sqrt(variance), abs=1e-6)
    assert found.low == pytest.approx(found.kappa - 1.959964 * math.sqrt(variance), abs=1e-6)


def test_the_interval_holds_the_true_value_as_often_as_it_says() -> None:
    truth: dict[tuple[Hashable, Hashable], float] = {
        ("a", "a"): 0.4,
        ("a", "b"): 0.1,
        ("b", "a"): 0.15,
        ("b", "b"): 0.35,
    }
    kappa = kappa_of_shares(truth)
    dice = random.Random(7)
    held = 0
    for _ in range(2_000):
        drawn = Counter(dice.choices(list(truth), list(truth.values()), k=200))
        found = cohen_kappa(dict(drawn))
        assert found.low is not None
        assert found.high is not None
        held += found.low <= kappa <= found.high
    assert 0.93 <= held / 2_000 <= 0.97


@given(CELLS)
def test_who_is_named_first_makes_no_difference(cells: Cells) -> None:
    one = cohen_kappa(cells)
    other = cohen_kappa({(b, a): count for (a, b), count in cells.items()})
    assert (one.n, one.agreed) == (other.n, other.agreed)
    assert one.kappa == (None if other.kappa is None else pytest.approx(other.kappa))


@given(CELLS)
def test_kappa_and_its_interval_stay_in_their_bounds(cells: Cells) -> None:
    found = cohen_kappa(cells)
    if found.kappa is not None:
        assert -1 - 1e-9 <= found.kappa <= 1 + 1e-9
    if found.low is not None and found.high is not None and found.kappa is not None:
        assert -1 <= found.low <= found.kappa <= found.high <= 1


@pytest.mark.parametrize(
    "cells",
    [pytest.param({}, id="nothing"), pytest.param({("a", "a"): 9}, id="always-the-same-verdict")],
)
def test_where_it_is_undefined_there_is_no_value(cells: Cells) -> None:
    found = cohen_kappa(cells)
    assert (found.kappa, found.low, found.high) == (None, None, None)


def test_full_agreement_has_no_interval_that_would_claim_certainty() -> None:
    found = cohen_kappa({("a", "a"): 3, ("b", "b"): 2})
    assert found.kappa == pytest.approx(1.0)
    assert (found.low, found.high) == (None, None)
