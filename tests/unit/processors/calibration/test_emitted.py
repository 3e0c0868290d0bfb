from lookup_audit.processors.calibration.emitted import read_emitted
from lookup_audit.schemas.ruleset import Registry, Ruleset
from tests.support.audits import registry_of
from tests.support.events import Event, encode, make_candidate, make_lookup


def places(*events: Event | bytes) -> list[tuple[str, bytes]]:
    return [
        (f"line {n}", event if isinstance(event, bytes) else encode(event))
        for n, event in enumerate(events, start=1)
    ]


def test_events_are_audited_by_their_own_thresholds() -> None:
    found = read_emitted(places(make_lookup(query="默认超时？")), Registry())
    (asked,) = found.lookups
    assert asked.query_text == "默认超时？"
    assert asked.quality() == (1 - 0.41 / 2, "dense_l2")
    assert asked.level() == "PRECISE"


def test_a_given_ruleset_goes_before_the_events_own() -> None:
    strict = Ruleset(highly_relevant_threshold=0.9, reference_threshold=0.85)
    (asked,) = read_emitted(places(make_lookup()), registry_of(strict)).lookups
    assert asked.level() == "NONE"


def test_dropped_candidates_count_and_are_not_kept() -> None:
    event = make_lookup(
        mode="hybrid",
        candidates=[
            make_candidate(original_rank=1, kept=False, drop_reason="duplicate"),
            make_candidate(original_rank=3, dense_distance=None),
            make_candidate(original_rank=2, dense_distance=None),
        ],
    )
    (asked,) = read_emitted(places(event), Registry()).lookups
    assert [c.original_rank for c in asked.kept] == [2, 3]
    assert asked.candidate_count == 3
    assert asked.quality() == (0.5, "hybrid_rank")


def test_refused_events_are_told_by_place_and_copies_count_once() -> None:
    event = make_lookup()
    found = read_emitted(places(event, b'{"event_id": "x"}', event), Registry())
    assert len(found.lookups) == 1
    assert [place for place, _ in found.rejected] == ["line 2"]
    assert found.rejected[0][1].field == "occurred_at"


def test_times_of_any_offset_are_put_in_one_order() -> None:
    early = make_lookup(occurred_at="2026-11-30T23:30:00+08:00")
    late = make_lookup(occurred_at="2026-11-30T16:00:00Z")
    one, other = read_emitted(places(early, late), Registry()).lookups
    assert one.occurred_at < other.occurred_at


def test_without_thresholds_and_ruleset_nothing_is_claimed() -> None:
    (asked,) = read_emitted(places(make_lookup(thresholds=None)), Registry()).lookups
    assert asked.quality() is None
    assert asked.level() is None
    assert asked.layer(asked.kept[0]) is None
