import re
from datetime import UTC, datetime
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from lookup_audit.schemas.errors import ConfigError
from lookup_audit.schemas.records import Thresholds
from lookup_audit.schemas.ruleset import (
    DEFAULT_RULESET,
    Appointment,
    Registry,
    Ruleset,
    stated_differences,
    stated_ruleset,
)
from tests.support.strategies import UNIT, examples

OLD, NEW, OTHER = (Ruleset(highly_relevant_threshold=value) for value in (0.7, 0.8, 0.9))
JANUARY, JUNE = (datetime(2026, month, 1, tzinfo=UTC) for month in (1, 6))


def test_the_defaults_are_those_of_the_field() -> None:
    assert DEFAULT_RULESET.model_dump() == {
        "rule": "unified-quality/1",
        "max_l2_distance": 2.0,
        "highly_relevant_threshold": 0.75,
        "reference_threshold": 0.5,
        "distance_metric": "l2",
        "normalized": False,
        "rank_fallback": "reciprocal",
        "high_layer_similarity": 0.82,
        "middle_layer_similarity": 0.70,
    }


def test_an_id_never_changes_for_the_same_content() -> None:
    # Stored with every verdict: an id that moves makes history unreadable.
    assert DEFAULT_RULESET.ruleset_id == "rs-f6a8a61c4ca50c04"


@given(UNIT, UNIT)
@examples(60)
def test_equal_rulesets_and_only_those_share_an_id(one: float, other: float) -> None:
    ids = [Ruleset(reference_threshold=value).ruleset_id for value in (one, other)]

    assert (ids[0] == ids[1]) is (one == other)
    assert all(re.fullmatch(r"rs-[0-9a-f]{16}", text) for text in ids)


def test_zero_has_one_id_whatever_its_sign() -> None:
    assert (
        Ruleset(reference_threshold=0.0).ruleset_id == Ruleset(reference_threshold=-0.0).ruleset_id
    )


def test_a_whole_number_is_the_same_threshold() -> None:
    assert Ruleset.model_validate_json('{"max_l2_distance":2}') == DEFAULT_RULESET


@pytest.mark.parametrize(
    "member",
    [
        {"max_l2_distance": 0.0},
        {"max_l2_distance": -1.0},
        {"highly_relevant_threshold": float("nan")},
        {"reference_threshold": "0.5"},
        {"rule": "newest"},
        {"treshold": 1.0},
    ],
)
def test_a_ruleset_that_cannot_rule_is_refused(member: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Ruleset.model_validate(member)


def test_what_an_event_states_becomes_a_ruleset_with_defaults_for_the_rest() -> None:
    stated = stated_ruleset(Thresholds(highly_relevant_threshold=0.7, reference_threshold=0.4))

    assert stated == Ruleset(highly_relevant_threshold=0.7, reference_threshold=0.4)


@pytest.mark.parametrize(
    "thresholds",
    [
        pytest.param(Thresholds(), id="nothing"),
        pytest.param(Thresholds(highly_relevant_threshold=0.7), id="only-the-upper"),
        pytest.param(Thresholds(reference_threshold=0.5), id="only-the-lower"),
    ],
)
def test_without_both_thresholds_an_event_states_no_ruleset(thresholds: Thresholds) -> None:
    assert stated_ruleset(thresholds) is None


@pytest.mark.parametrize(
    ("thresholds", "names"),
    [
        pytest.param(Thresholds(), (), id="silence-is-no-difference"),
        pytest.param(Thresholds(reference_threshold=0.5), (), id="equal"),
        pytest.param(
            Thresholds(normalized=True, reference_threshold=0.4),
            ("reference_threshold", "normalized"),
            id="two",
        ),
    ],
)
def test_stated_differences_are_named(thresholds: Thresholds, names: tuple[str, ...]) -> None:
    assert stated_differences(thresholds, DEFAULT_RULESET) == names


@pytest.mark.parametrize(
    ("at", "expected"),
    [
        pytest.param("2025-12-31T23:59:59.999999Z", None, id="before-any"),
        pytest.param("2026-01-01T00:00:00Z", OLD, id="from-its-first-moment"),
        pytest.param("2026-01-01T05:00:00+05:00", OLD, id="from-its-first-moment-elsewhere"),
        pytest.param("2026-01-01T04:59:59+05:00", None, id="a-second-before-elsewhere"),
        pytest.param("2026-05-31T23:59:59.999999Z", OLD, id="to-its-last-moment"),
        pytest.param("2026-06-01T00:00:00Z", NEW, id="the-newer-one"),
    ],
)
def test_the_newest_appointment_at_the_time_of_the_lookup_is_in_force(
    at: str, expected: Ruleset | None
) -> None:
    registry = Registry([Appointment(OLD, JANUARY), Appointment(NEW, JUNE)])

    assert registry.in_force("kb", "dense", at) == expected


@pytest.mark.parametrize(
    ("service", "mode", "expected"),
    [
        pytest.param("kb", "dense", OTHER, id="service-and-mode"),
        pytest.param("kb", "hybrid", NEW, id="service"),
        pytest.param("", "dense", OLD, id="unknown-service"),
        pytest.param("wiki", "dense", OLD, id="another-service"),
    ],
)
def test_the_most_specific_appointment_wins(service: str, mode: str, expected: Ruleset) -> None:
    registry = Registry(
        [
            Appointment(OLD, JUNE),
            Appointment(NEW, JANUARY, service="kb"),
            Appointment(OTHER, JANUARY, service="kb", mode="dense"),
        ]
    )

    assert registry.in_force(service, mode, "2026-11-30T12:00:00Z") == expected


def test_a_service_is_more_specific_than_a_mode() -> None:
    registry = Registry(
        [Appointment(OLD, JUNE, mode="dense"), Appointment(NEW, JANUARY, service="kb")]
    )

    assert registry.in_force("kb", "dense", "2026-11-30T12:00:00Z") == NEW


def test_an_empty_registry_appoints_nothing() -> None:
    assert Registry().in_force("kb", "dense", "2026-11-30T12:00:00Z") is None


def test_the_order_of_the_list_decides_nothing() -> None:
    appointments = [Appointment(ruleset, JANUARY) for ruleset in (OLD, NEW, OTHER)]

    appointed = {
        registry.ruleset_id
        for order in permutations(appointments)
        if (registry := Registry(order).in_force("kb", "dense", "2026-11-30T12:00:00Z"))
    }

    assert len(appointed) == 1


def test_a_registry_knows_each_ruleset_once() -> None:
    registry = Registry([Appointment(OLD, JANUARY), Appointment(OLD, JUNE)])

    assert registry.rulesets == (OLD,)


def test_an_appointment_needs_a_time_zone() -> None:
    with pytest.raises(ConfigError, match="time zone"):
        Appointment(OLD, datetime(2026, 1, 1))


@given(st.lists(st.tuples(st.integers(1, 12), st.sampled_from(["", "kb"])), max_size=5))
@examples(60)
def test_a_ruleset_is_never_in_force_before_its_time(items: list[tuple[int, str]]) -> None:
    registry = Registry(
        Appointment(
            Ruleset(max_l2_distance=float(month)), datetime(2026, month, 1, tzinfo=UTC), service
        )
        for month, service in items
    )

    found = registry.in_force("kb", "dense", "2026-06-15T00:00:00Z")

    assert found is None or found.max_l2_distance <= 6
    assert (found is None) is not any(month <= 6 for month, _ in items)
