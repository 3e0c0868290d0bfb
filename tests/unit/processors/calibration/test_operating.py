from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookup_audit.processors.calibration.operating import Scored, operating_curve, readable
from lookup_audit.processors.calibration.retrieval import RECALL_AT, recall_at, retrieval_of
from tests.support.trials import make_asked, make_trial, right, wrong

qualities = st.one_of(st.none(), st.sampled_from([i / 20 for i in range(21)]))
lookups = st.lists(
    st.builds(
        lambda q, is_right, answerable: (
            right(q) if is_right and q is not None else wrong(q, answerable=answerable)
        ),
        qualities,
        st.booleans(),
        st.booleans(),
    ),
    min_size=1,
    max_size=40,
)


def test_the_curve_of_a_small_case_by_hand() -> None:
    #          right 0.9  wrong 0.8  right 0.6  wrong 0.6  none
    curve = operating_curve([right(0.9), wrong(0.8), right(0.6), wrong(0.6), wrong(None)], [0.7])
    counted = [(c.threshold, c.precise, c.precise_right) for c in curve]
    assert counted == [(0.6, 4, 2), (0.7, 2, 1), (0.8, 2, 1), (0.9, 1, 1)]
    at = curve[1]
    assert (at.precision.value, at.recall.value) == (0.5, 0.5)
    assert (at.error_rate.value, at.refusal_rate.value) == (0.5, 0.6)
    # Unanswerable: 0.8, 0.6 and the one without evidence; two of three lie below 0.7.
    assert at.refused_where_lacking.value == pytest.approx(2 / 3)


def test_a_threshold_is_inclusive() -> None:
    (cut,) = operating_curve([right(0.75)])
    assert cut.precise == 1


def test_above_every_score_nothing_is_precise_and_there_is_no_error_rate() -> None:
    (_, above) = operating_curve([right(0.5)], [0.9])
    assert above.error_rate.value is None
    assert above.refusal_rate.value == 1.0


@given(lookups)
def test_a_stricter_cut_refuses_no_less_and_recalls_no_more(found: list[Scored]) -> None:
    curve = operating_curve(found)
    for looser, stricter in zip(curve, curve[1:], strict=False):
        assert (stricter.refusal_rate.value or 0) >= (looser.refusal_rate.value or 0)
        if looser.right:
            assert (stricter.recall.value or 0) <= (looser.recall.value or 0)
    for cut in curve:
        for rate in (cut.precision, cut.recall, cut.error_rate, cut.refusal_rate):
            assert rate.value is None or 0.0 <= rate.value <= 1.0
            assert (rate.interval is None) == (rate.n == 0)


@given(lookups)
def test_every_cut_counts_what_a_plain_loop_counts(found: list[Scored]) -> None:
    for cut in operating_curve(found):
        above = [x for x in found if x.quality is not None and x.quality >= cut.threshold]
        assert cut.precise == len(above)
        assert cut.precise_right == sum(x.right for x in above)
        refused = [x for x in found if x.quality is None or x.quality < cut.threshold]
        assert cut.refused_unanswerable == sum(not x.answerable for x in refused)


@given(lookups)
def test_the_order_of_the_questions_changes_nothing(found: list[Scored]) -> None:
    assert operating_curve(found) == operating_curve(list(reversed(found)))


def test_a_readable_subset_keeps_the_ends_and_the_named_threshold() -> None:
    curve = operating_curve([right(i / 100) for i in range(100)])
    shown = readable(curve, [0.37])
    assert (shown[0], shown[-1]) == (curve[0], curve[-1])
    assert 0.37 in {cut.threshold for cut in shown}
    assert len(shown) <= 11


def test_recall_grows_with_k_and_counts_answerable_questions_alone() -> None:
    trials = [
        make_trial(make_asked("a", (0.9, 0.8, 0.7)), "c1"),
        make_trial(make_asked("b", (0.9, 0.8, 0.7)), "c3"),
        make_trial(make_asked("c", (0.9, 0.8, 0.7)), "elsewhere"),
        make_trial(make_asked("d", (0.9, 0.8, 0.7))),
    ]
    found = retrieval_of(trials)
    assert [found.recall[str(k)].count for k in RECALL_AT] == [1, 2, 2]
    assert {rate.n for rate in found.recall.values()} == {3}
    assert found.with_source.value == 1.0
    assert found.most_kept == 3
    assert found.refusals.value is None


@given(st.lists(st.tuples(st.integers(1, 6), st.integers(1, 6)), min_size=1, max_size=12))
def test_recall_never_falls_with_k(kept_and_place: list[tuple[int, int]]) -> None:
    trials = [
        make_trial(make_asked(str(i), [0.5] * kept), f"c{place}")
        for i, (kept, place) in enumerate(kept_and_place)
    ]
    counts = [recall_at(trials, k).count for k in range(1, 8)]
    assert counts == sorted(counts)
    assert counts[-1] == retrieval_of(trials).recall["top_k"].count


def test_a_hit_without_a_link_is_no_hit_with_a_source() -> None:
    linked = make_trial(make_asked("a"), "c1")
    bare = make_trial(make_asked("b", linked=False), "c1")
    assert retrieval_of([linked, bare]).with_source.value == 0.5


def test_an_unordered_list_has_no_hit_at_any_place() -> None:
    trial = make_trial(make_asked("a", (0.9, 0.8)), "c1")
    unordered = replace(trial, asked=replace(trial.asked, has_order=False))
    assert unordered.first_hit is None
    assert not unordered.is_right
