import math

import pytest

from lookup_audit.schemas.lookup import LookupResult
from lookup_audit.schemas.unknown import Unclear, is_plain, unknown_in_json


def test_a_shallow_value_may_be_wide() -> None:
    assert is_plain([[{}] * 1000, {"a": [1, 2, 3]}], depth=3)


@pytest.mark.parametrize("value", [math.inf, [math.nan], {"a": [[]]}], ids=repr)
def test_what_the_models_may_refuse_is_not_plain(value: object) -> None:
    assert not is_plain(value, depth=2)


def test_unknown_fields_are_found_at_any_depth_of_the_event() -> None:
    event = {
        "news": 1,
        "candidates": [{"chunk_id": "a"}, {"more": {"inner": 1}}],
        "retrieval_trace": {"routes": [{"speed": 1}], "fusion": None},
        "projection": {"leak": {"distance": [{"deep": 1}]}},
        "context_pack": {"opaque": 1},
    }
    assert sorted(unknown_in_json(LookupResult, event)) == [
        "candidates[1].more",
        "news",
        "projection.leak",
        "projection.leak.distance",
        "projection.leak.distance[0].deep",
        "retrieval_trace.routes[0].speed",
    ]


@pytest.mark.parametrize(
    "event",
    [{"eventId": "x"}, {"candidates": [{"chunkId": "a"}]}, {"evidenceBlocks": []}, {"x": math.inf}],
    ids=repr,
)
def test_another_spelling_is_left_to_the_models(event: dict[str, object]) -> None:
    with pytest.raises(Unclear):
        list(unknown_in_json(LookupResult, event))
