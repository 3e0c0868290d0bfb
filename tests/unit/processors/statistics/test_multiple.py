import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookup_audit.processors.statistics.multiple import holm


def test_holm_multiplies_by_those_not_yet_rejected_and_never_decreases() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []


@given(st.lists(st.floats(0, 1), max_size=12))
def test_holm_keeps_the_order_and_lies_between_p_and_bonferroni(p_values: list[float]) -> None:
    adjusted = [value for value in holm(p_values) if value is not None]
    for p, value in zip(p_values, adjusted, strict=True):
        assert p <= value <= 1
        assert value <= max(p * len(p_values), max(adjusted))
    pairs = sorted(zip(p_values, adjusted, strict=True))
    assert [a for _, a in pairs] == sorted(adjusted)


def test_holm_multiplies_by_what_is_left_and_never_falls() -> None:
    adjusted = holm([0.04, 0.01, None, 0.03])
    assert adjusted == pytest.approx([0.06, 0.03, None, 0.06])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
