import math

import pytest
from hypothesis import given

from lookup_audit.schemas.layer import layer_of
from lookup_audit.schemas.names import Layer
from lookup_audit.schemas.ruleset import Ruleset
from tests.support.strategies import SIMILARITY, examples

URL = "https://kb.example.com/p/1"
ORDER: list[Layer] = ["low", "middle", "high"]


def below(value: float) -> float:
    return math.nextafter(value, -math.inf)


@pytest.mark.parametrize(
    ("similarity", "url", "layer"),
    [
        pytest.param(0.82, URL, "high", id="on-the-high-cut-off"),
        pytest.param(below(0.82), URL, "middle", id="one-ulp-below-high"),
        pytest.param(0.99, None, "middle", id="high-without-a-link"),
        pytest.param(0.99, "", "middle", id="high-with-an-empty-link"),
        pytest.param(0.70, URL, "middle", id="on-the-middle-cut-off"),
        pytest.param(0.70, None, "middle", id="middle-without-a-link"),
        pytest.param(below(0.70), URL, "low", id="one-ulp-below-middle"),
        pytest.param(-1.0, URL, "low", id="opposite"),
        pytest.param(None, URL, None, id="no-similarity"),
    ],
)
def test_a_layer_follows_from_similarity_and_link(
    similarity: float | None, url: str | None, layer: Layer | None
) -> None:
    assert layer_of(similarity, url, Ruleset()) == layer


def test_the_cut_offs_are_the_rulesets() -> None:
    ruleset = Ruleset(high_layer_similarity=0.5, middle_layer_similarity=0.1)

    assert layer_of(0.5, URL, ruleset) == "high"


@given(SIMILARITY, SIMILARITY)
@examples(100)
def test_a_higher_similarity_never_lowers_the_layer(one: float, other: float) -> None:
    low, high = sorted((one, other))
    lower, higher = (layer_of(value, URL, Ruleset()) for value in (low, high))

    assert lower is not None
    assert higher is not None
    assert ORDER.index(lower) <= ORDER.index(higher)
