"""Faults that people reported of this kind of software in public, each as its whole kind.

The groups follow the fault; what is stored, answered or sent because of the decision is tested
with the stage that does it.
"""

import math
import os
import time
from datetime import UTC, datetime, timedelta

import pytest

from lookup_audit.schemas.decode import LOOKUPS, Decoded
from lookup_audit.schemas.fields import parse_instant
from lookup_audit.schemas.names import Degradation, Reason
from lookup_audit.schemas.ruleset import Ruleset
from lookup_audit.schemas.timeliness import is_late, untimely
from tests.support.audits import (
    DEFAULT_REGISTRY,
    NO_REGISTRY,
    accepted,
    audited,
    outcome_of,
    registry_of,
    rejected,
)
from tests.support.events import Event, encode, make_candidate, make_lookup

NORMALIZED = registry_of(Ruleset(normalized=True))
SCORES = [
    "score",
    "dense_distance",
    "rrf_score",
    "rerank_score",
    "similarity_score",
    "quality_score",
]


def of(**candidate: object) -> Event:
    return make_lookup(candidates=[make_candidate(**candidate)])


# --- scores that are no numbers ------------------------------------------------------------


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_score_that_is_not_finite_is_refused_by_name(score: str, value: float) -> None:
    refusal = rejected(make_lookup(candidates=[make_candidate() | {score: value}]))

    assert (refusal.reason, refusal.field) == (Reason.NON_FINITE, f"candidates[0].{score}")


def test_the_neighbours_of_a_refused_event_are_not_harmed() -> None:
    events = [of(), make_lookup(candidates=[make_candidate() | {"score": math.nan}]), of()]

    kinds = [isinstance(LOOKUPS.decode(encode(event)), Decoded) for event in events]

    assert kinds == [True, False, True]


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("value", ["0.8712", "0,82", "", "NaN", True, [0.5], {"value": 0.5}])
def test_a_score_that_is_no_json_number_is_refused_by_name(score: str, value: object) -> None:
    refusal = rejected(make_lookup(candidates=[make_candidate() | {score: value}]))

    assert (refusal.reason, refusal.field) == (Reason.WRONG_TYPE, f"candidates[0].{score}")


# --- scores on another scale ---------------------------------------------------------------


def test_an_undeclared_squared_distance_never_makes_a_level() -> None:
    verdict = audited(of(dense_distance=0.6, similarity_score=0.7), NORMALIZED)

    assert verdict.recomputed_level is None
    assert Degradation.DISTANCE_LOOKS_SQUARED in verdict.degradations


def test_a_declared_squared_distance_is_converted_and_not_flagged() -> None:
    ruleset = Ruleset(normalized=True, distance_metric="l2_squared")

    verdict = audited(of(dense_distance=0.6, similarity_score=0.7), registry_of(ruleset))

    assert verdict.quality_score == 1 - math.sqrt(0.6) / 2
    assert verdict.degradations == []


@pytest.mark.parametrize(
    ("metric", "distance"), [("l2", 2.1), ("l2_squared", 4.2), ("cosine_distance", 2.1)]
)
def test_an_impossible_distance_is_not_clamped_to_the_worst(metric: str, distance: float) -> None:
    ruleset = Ruleset.model_validate({"normalized": True, "distance_metric": metric})

    verdict = audited(of(dense_distance=distance, similarity_score=None), registry_of(ruleset))

    assert (verdict.recomputed_level, verdict.quality_score) == (None, None)


@pytest.mark.parametrize("score", [0.0, 2 / 61, 0.9, 5.0])
def test_a_fused_score_is_never_held_against_a_threshold(score: float) -> None:
    candidate = make_candidate(dense_distance=1.2, rrf_score=score)

    assert audited(make_lookup(mode="hybrid", candidates=[candidate])).recomputed_level == "NONE"


def test_a_fused_score_alone_gives_the_rank_fallback_and_says_so() -> None:
    candidate = make_candidate(dense_distance=None, rrf_score=2 / 61)

    verdict = audited(make_lookup(mode="hybrid", candidates=[candidate]))

    assert (verdict.recomputed_level, verdict.quality_basis) == ("PRECISE", "hybrid_rank")


# --- scores on the edge --------------------------------------------------------------------


def test_an_exact_match_a_hair_above_one_is_taken_as_one_and_flagged() -> None:
    verdict = audited(of(dense_distance=0.0, similarity_score=1.0000001192092896))

    assert verdict.decoded.record.candidates[0].similarity_score == 1.0
    assert verdict.recomputed_level == "PRECISE"
    assert verdict.degradations == [Degradation.SIMILARITY_CLAMPED]


def test_the_raw_value_of_an_overshoot_stays_readable() -> None:
    event = of(dense_distance=0.0, similarity_score=1.0000001192092896)

    assert b"1.0000001192092896" in accepted(event).raw


@pytest.mark.parametrize("value", [1.02, -1.02])
def test_a_similarity_beyond_rounding_is_refused_by_name(value: float) -> None:
    refusal = rejected(of(similarity_score=value, layer="high"))

    assert (refusal.reason, refusal.field) == (
        Reason.OUT_OF_RANGE,
        "candidates[0].similarity_score",
    )


@pytest.mark.parametrize(
    ("distance", "level"),
    [
        pytest.param(0.5, "PRECISE", id="on-it"),
        pytest.param(math.nextafter(0.5, 0), "PRECISE", id="one-ulp-nearer"),
        pytest.param(0.5000000000000002, "REFERENCE", id="quality-one-ulp-below"),
        pytest.param(1.0, "REFERENCE", id="on-the-lower"),
        pytest.param(math.nextafter(1.0, 2), "NONE", id="one-ulp-farther-than-the-lower"),
    ],
)
def test_a_score_on_the_limit_is_decided_by_the_last_ulp(distance: float, level: str) -> None:
    assert audited(of(dense_distance=distance)).recomputed_level == level


@pytest.mark.parametrize(
    ("similarity", "layer"),
    [(0.82, "high"), (math.nextafter(0.82, 0), "middle"), (math.nextafter(0.7, 0), "low")],
)
def test_a_layer_on_the_limit_is_decided_by_the_last_ulp(similarity: float, layer: str) -> None:
    assert audited(of(similarity_score=similarity)).layers == [layer]


# --- scores and ids that are missing -------------------------------------------------------


def sparse() -> Event:
    return make_lookup(
        candidates=[
            {"chunk_id": "c-101", "original_rank": 1},
            {"original_rank": 2, "dense_distance": None, "similarity_score": None},
            make_candidate(chunk_id="c-103", original_rank=3, dense_distance=1.0),
            {"original_rank": 4},
        ]
    )


def test_a_missing_score_stays_unknown() -> None:
    candidates = accepted(sparse()).record.candidates

    assert [c.dense_distance for c in candidates] == [None, None, 1.0, None]


def test_a_missing_score_of_the_best_makes_the_level_unverifiable() -> None:
    verdict = audited(sparse())

    assert (verdict.recomputed_level, verdict.level_check) == (None, "unverifiable")
    assert verdict.qualities == [None, None, 0.5, None]


def test_candidates_without_an_id_are_counted_and_never_merged() -> None:
    verdict = audited(sparse())

    assert len(verdict.decoded.record.candidates) == 4
    assert verdict.duplicates == [False] * 4
    assert Degradation.UNIDENTIFIED_CANDIDATE in verdict.degradations


# --- one chunk twice -----------------------------------------------------------------------


def reranked_after_dedup() -> Event:
    """The reranker saw a list without the copy; its ranks do not fit the full list."""
    distances = [("c-101", 1, 0.9), ("c-101", 2, 0.9), ("c-102", 3, 0.7), ("c-103", 4, 1.0)]
    moves = [("c-102", 2, 1), ("c-101", 1, 2), ("c-103", 3, 3)]
    return make_lookup(
        candidates=[
            make_candidate(chunk_id=chunk, original_rank=rank, dense_distance=distance)
            for chunk, rank, distance in distances
        ],
        rerank_trace={
            "model": "ce-1",
            "moves": [
                {"chunk_id": chunk, "rank_before": before, "rank_after": after, "index": before - 1}
                for chunk, before, after in moves
            ],
        },
    )


def test_a_rerank_of_a_deduplicated_list_is_flagged_beside_the_duplicate() -> None:
    degradations = audited(reranked_after_dedup()).degradations

    assert {Degradation.DUPLICATE_CANDIDATE, Degradation.RERANK_MISMATCH} <= set(degradations)


def test_ids_win_over_indexes_when_the_rerank_is_read() -> None:
    # By index, move 1 would be the second c-101; by id every kept chunk is accounted for.
    assert "rerank_trace" not in outcome_of(audited(reranked_after_dedup()), "order")


def test_a_rerank_by_the_true_ranks_is_not_flagged_for_the_duplicate() -> None:
    event = reranked_after_dedup()
    for move, rank in zip(event["rerank_trace"]["moves"], (3, 1, 4), strict=True):
        move["rank_before"] = rank

    assert Degradation.RERANK_MISMATCH not in audited(event).degradations


@pytest.mark.parametrize("second_rank", [1, 2], ids=["byte-identical", "with-a-rank-of-its-own"])
def test_a_chunk_found_by_two_routes_counts_once(second_rank: int) -> None:
    event = make_lookup(
        mode="hybrid",
        candidates=[
            make_candidate(chunk_id="c-101", rrf_score=2 / 61),
            make_candidate(chunk_id="c-101", rrf_score=2 / 61, original_rank=second_rank),
            make_candidate(chunk_id="c-102", original_rank=3, dense_distance=0.8),
        ],
    )

    verdict = audited(event)

    assert verdict.duplicates == [False, True, False]
    assert verdict.recomputed_level == "PRECISE"
    assert outcome_of(verdict, "order") == "fail:duplicate_chunk@c-101"


def test_the_full_list_stays_readable_beside_the_flag() -> None:
    event = make_lookup(candidates=[make_candidate(), make_candidate()])

    assert len(audited(event).decoded.record.candidates) == 2


# --- nothing found -------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["dense", "hybrid"])
@pytest.mark.parametrize(
    "rest",
    [
        pytest.param({}, id="all-lists-empty"),
        pytest.param({"rerank_trace": {"moves": []}}, id="rerank-of-nothing"),
        pytest.param({"retrieval_trace": {"routes": []}}, id="no-routes"),
        pytest.param({"selected_chunk_ids": None, "projection": None}, id="no-lists"),
    ],
)
def test_an_empty_result_is_a_none_without_a_score(mode: str, rest: Event) -> None:
    verdict = audited(make_lookup(mode=mode, candidates=[]) | rest)

    assert (verdict.recomputed_level, verdict.level_check) == ("NONE", "pass")
    assert verdict.quality_score is None
    assert verdict.failed_checks == []


# --- broken and whole text -----------------------------------------------------------------


@pytest.mark.parametrize("half", [rb"\ud83d", rb"\ude00", rb"\ud83dx", rb"\ude00\ud83d"])
def test_half_an_emoji_is_refused_and_never_emptied(half: bytes) -> None:
    refusal = rejected(encode(make_lookup(query="warranty @ terms")).replace(b"@", half))

    assert (refusal.reason, refusal.field) == (Reason.INVALID_TEXT, "query")


def test_half_an_emoji_as_raw_bytes_is_refused() -> None:
    assert rejected(make_lookup(query="\ud83d")).reason == Reason.INVALID_TEXT


@pytest.mark.parametrize(
    "text", ["保证期 🛡️ garantía", "a\0b", "\u202eback", "e\u0301 is not é", "👩‍👩‍👧", "\ufeff"]
)
def test_whole_text_is_kept_code_point_for_code_point(text: str) -> None:
    for event in (make_lookup(query=text), make_lookup(query={"text": text})):
        query = accepted(event).record.query
        assert query is not None
        assert query.text == text


def test_an_escaped_pair_is_one_whole_character() -> None:
    raw = encode(make_lookup(query={"text": "@"})).replace(b'"@"', rb'"\ud83d\ude00"')
    query = accepted(raw).record.query

    assert query is not None
    assert query.text == "😀"


# --- ids beyond 53 bits --------------------------------------------------------------------


@pytest.mark.parametrize("value", [2**53 + 1, 1234567890123456789, 2**64 + 1, 10**30])
def test_a_large_id_is_one_text_as_a_number_and_as_a_string(value: int) -> None:
    records = [
        audited(
            make_lookup(
                candidates=[make_candidate(chunk_id=chunk)], selected_chunk_ids=[str(value)]
            )
        )
        for chunk in (value, str(value))
    ]

    assert {r.decoded.record.candidates[0].chunk_id for r in records} == {str(value)}
    assert {outcome_of(record, "selection") for record in records} == {"pass"}


def test_an_id_that_is_no_uuid_stays_text() -> None:
    assert accepted(make_lookup(event_id="c-17")).record.event_id == "c-17"


# --- times without a zone, numbers as times ------------------------------------------------


@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Asia/Tokyo"])
def test_a_time_means_the_same_on_every_machine(zone: str) -> None:
    before = os.environ.get("TZ")
    try:
        os.environ["TZ"] = zone
        time.tzset()
        naive = rejected(make_lookup(occurred_at="2026-11-30T12:00:00"))
        aware = accepted(make_lookup(occurred_at="2026-11-30T12:00:00.0000000Z"))
    finally:
        os.environ.pop("TZ", None) if before is None else os.environ.update(TZ=before)
        time.tzset()

    assert (naive.reason, naive.field) == (Reason.INVALID_VALUE, "occurred_at")
    assert aware.record.occurred_at == "2026-11-30T12:00:00.000000Z"


@pytest.mark.parametrize(
    "value",
    [1796040000, 1796040000123, 1796040000123456, 1796040000123456789, 1796040000.5, "1796040000"],
    ids=["seconds", "millis", "micros", "nanos", "fraction", "text"],
)
@pytest.mark.parametrize("place", ["event", "candidate"])
def test_a_numeric_time_is_refused_with_the_form_expected(value: object, place: str) -> None:
    event = make_lookup(occurred_at=value) if place == "event" else of(document_updated_at=value)

    refusal = rejected(event)

    assert refusal.field.endswith(("occurred_at", "document_updated_at"))
    assert "RFC 3339" in refusal.message


@pytest.mark.parametrize("digits", range(1, 13))
def test_a_long_fraction_is_cut_and_never_rounded_up(digits: int) -> None:
    text = f"2026-11-30T12:00:59.{'9' * digits}Z"

    instant = parse_instant(accepted(make_lookup(occurred_at=text)).record.occurred_at)

    assert instant.replace(microsecond=0) == datetime(2026, 11, 30, 12, 0, 59, tzinfo=UTC)


# --- clocks that run wrong -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("ahead", "refused", "late"),
    [
        pytest.param(timedelta(seconds=-5), None, False, id="now"),
        pytest.param(timedelta(hours=27), Reason.FUTURE_TIME, False, id="a-day-ahead"),
        pytest.param(timedelta(hours=-26), None, True, id="a-day-behind"),
        pytest.param(timedelta(days=45_000), Reason.FUTURE_TIME, False, id="next-century"),
        pytest.param(timedelta(days=-400), Reason.EXPIRED, True, id="beyond-the-retention"),
    ],
)
def test_a_wrong_clock_is_refused_or_flagged(
    ahead: timedelta, refused: Reason | None, late: bool
) -> None:
    now = datetime(2026, 11, 30, 12, 0, 5, tzinfo=UTC)

    refusal = untimely(now + ahead, now=now, retention=timedelta(days=365), event_id="e")

    assert (refusal.reason if refusal else None) == refused
    assert is_late(now + ahead, now=now) is late


# --- producers that are ahead --------------------------------------------------------------


def renamed() -> Event:
    candidate = make_candidate() | {"initial_rank": 1}
    del candidate["original_rank"]
    return make_lookup(
        schema_version="1.1",
        candidates=[candidate],
        rerank_latency_ms=12,
        experiment={"arm": "B"},
    )


def test_a_field_renamed_by_a_newer_producer_costs_no_event() -> None:
    verdict = audited(renamed())

    assert verdict.decoded.record.candidates[0].original_rank is None
    assert verdict.recomputed_level == "PRECISE"


def test_what_a_newer_producer_added_is_counted_by_field() -> None:
    decoded = accepted(renamed())

    assert decoded.unknown_fields == (
        "candidates[0].initial_rank",
        "experiment",
        "rerank_latency_ms",
    )
    assert decoded.record.schema_version == "1.1"


def test_events_of_both_versions_are_read_side_by_side() -> None:
    versions = [accepted(event).record.schema_version for event in (of(), renamed(), of())]

    assert versions == ["1.0", "1.1", "1.0"]


# --- nulls ---------------------------------------------------------------------------------


def test_no_list_of_candidates_is_refused_whether_null_or_absent() -> None:
    absent = {key: value for key, value in make_lookup().items() if key != "candidates"}

    fields = {rejected(event).field for event in (absent, make_lookup() | {"candidates": None})}

    assert fields == {"candidates"}


@pytest.mark.parametrize("name", ["selected_chunk_ids", "projection", "rerank_trace", "service"])
def test_a_null_part_is_unknown(name: str) -> None:
    assert getattr(accepted(make_lookup(**{name: None})).record, name) is None


def test_a_null_flag_is_unknown_and_not_false() -> None:
    assert accepted(make_lookup(truncated=None)).record.truncated is None


def test_null_thresholds_are_never_compared_as_zero() -> None:
    event = make_lookup(thresholds=None)

    assert audited(event, NO_REGISTRY).level_check == "unverifiable"
    assert audited(event, DEFAULT_REGISTRY).level_check == "pass"


@pytest.mark.parametrize("name", ["highly_relevant_threshold", "reference_threshold"])
def test_a_null_threshold_is_never_compared_as_zero(name: str) -> None:
    event = make_lookup()
    event["thresholds"][name] = None

    assert audited(event, NO_REGISTRY).recomputed_level is None


@pytest.mark.parametrize("name", ["hit_reasons", "kept", "drop_reason", "layer", "tokens"])
def test_a_null_member_of_a_candidate_costs_no_level(name: str) -> None:
    assert audited(of(**{name: None})).recomputed_level == "PRECISE"
