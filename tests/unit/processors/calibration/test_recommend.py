import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookup_audit.processors.calibration.operating import Scored, operating_curve
from lookup_audit.processors.calibration.recommend import (
    choose,
    closest,
    optimism,
    reference_cut,
    short_between,
)
from lookup_audit.processors.calibration.report import calibrate, fewest_precise, separation
from lookup_audit.processors.statistics.proportions import wilson
from tests.support.trials import make_asked, make_stratum, make_trial, right, wrong

lookups = st.lists(
    st.builds(
        lambda q, is_right: right(q) if is_right else wrong(q),
        st.sampled_from([i / 40 for i in range(41)]),
        st.booleans(),
    ),
    min_size=1,
    max_size=120,
)


@given(lookups, st.sampled_from([0.05, 0.2, 0.5, 0.9]))
def test_the_chosen_threshold_keeps_the_budget_on_its_data(
    found: list[Scored], budget: float
) -> None:
    choice = choose(found, budget)
    fits = [
        cut.threshold
        for cut in operating_curve(found)
        if cut.error_rate.interval is not None and cut.error_rate.interval[1] <= budget
    ]
    if choice is None:
        assert not fits
        return
    above = [x for x in found if x.quality is not None and x.quality >= choice.cut.threshold]
    interval = wilson(sum(not x.right for x in above), len(above))
    assert interval is not None
    assert interval[1] <= budget
    assert choice.observed == min(fits)
    assert choice.cut.precise == len(above)


def test_a_budget_needs_enough_lookups_whatever_they_say() -> None:
    needed = fewest_precise(0.05)
    assert choose([right(0.9)] * needed, 0.05) is not None
    assert choose([right(0.9)] * (needed - 1), 0.05) is None


def test_without_a_choice_the_nearest_cut_is_told() -> None:
    nearest = closest([right(0.9)] * 10 + [wrong(0.5)] * 10)
    assert nearest is not None
    assert nearest.threshold == 0.9
    assert closest([wrong(None)]) is None


@given(st.floats(0.0, 1.0), st.floats(1e-9, 0.5))
def test_a_short_number_parts_as_the_long_one(below: float, gap: float) -> None:
    at = below + gap
    short = short_between(below, at)
    assert below < short <= at


def test_the_reference_parts_found_from_missed_below_the_upper_threshold() -> None:
    found = [right(0.6 + i / 100) for i in range(10)]
    missed = [wrong(0.3 + i / 100) for i in range(10)]
    assert reference_cut(found + missed, 0.65) == pytest.approx(0.6)
    assert (reference_cut(found + missed, 0.5) or 1.0) <= 0.5
    assert reference_cut(found, 0.65) is None


def test_choosing_among_noise_is_found_to_be_optimistic() -> None:
    rng = np.random.default_rng(2)
    noise = [right(float(q)) if rng.random() < 0.7 else wrong(float(q)) for q in rng.random(150)]
    found = optimism(noise, 0.35)
    assert found is not None
    assert found.optimism > 0.005
    assert found == optimism(noise, 0.35)
    assert optimism(noise, 0.001) is None


def test_the_corrected_rate_is_nearer_to_new_questions_than_the_apparent_one() -> None:
    rng = np.random.default_rng(6)

    def draw() -> list[Scored]:
        scores = rng.random(120)
        chances = rng.random(120)
        return [
            right(float(q)) if c < 0.55 + 0.3 * q else wrong(float(q))
            for q, c in zip(scores, chances, strict=True)
        ]

    apparent_gap, corrected_gap = [], []
    for _ in range(40):
        data = draw()
        choice, found = choose(data, 0.3), optimism(data, 0.3, resamples=100)
        if choice is None or found is None:
            continue
        # True error rate at or above t, for q uniform on t..1.
        true = 1 - (0.55 + 0.3 * (1 + choice.cut.threshold) / 2)
        apparent_gap.append(true - (choice.cut.error_rate.value or 0.0))
        corrected_gap.append(true - found.expected_error_rate)
    assert len(apparent_gap) > 10
    assert np.mean(apparent_gap) > 0
    assert abs(np.mean(corrected_gap)) < abs(np.mean(apparent_gap))


def test_what_nothing_separates_is_said_so() -> None:
    same = [right(i / 50) for i in range(50)] + [wrong(i / 50) for i in range(50)]
    apart = separation(same)
    assert apart.separates is False
    assert apart.sentence.startswith("No threshold separates")
    clear = separation([right(0.8 + i / 500) for i in range(50)] + [wrong(0.2)] * 50)
    assert clear.separates is True
    one_sided = separation([right(0.5)])
    assert one_sided.separates is None
    assert "No unanswerable question" in one_sided.sentence


def test_a_stratum_gets_a_ruleset_that_differs_by_thresholds_alone() -> None:
    trials = [
        make_trial(make_asked(f"r{i}", (0.8 + i / 1000, 0.5)), "c1", line=i) for i in range(90)
    ] + [make_trial(make_asked(f"w{i}", (0.4, 0.3)), line=100 + i) for i in range(30)]
    report = calibrate(make_stratum(trials), 0.05)
    ruleset = report.recommendation.ruleset
    assert ruleset is not None
    assert 0.4 < ruleset.reference_threshold <= ruleset.highly_relevant_threshold <= 0.8
    assert ruleset.middle_layer_similarity <= ruleset.high_layer_similarity
    kept = {"rule", "max_l2_distance", "distance_metric", "normalized", "rank_fallback"}
    assert ruleset.model_dump(include=kept) == report.current.model_dump(include=kept)


def test_without_a_threshold_for_the_budget_there_is_no_ruleset() -> None:
    trials = [make_trial(make_asked(f"r{i}"), "c1", line=i) for i in range(10)]
    advice = calibrate(make_stratum(trials), 0.05).recommendation
    assert advice.ruleset is None
    assert "it takes 73 PRECISE lookups" in advice.sentences[0]


def test_rank_and_distance_are_never_in_one_table() -> None:
    by_distance = [
        make_trial(make_asked(f"d{i}", (0.6,), mode="hybrid"), "c1", line=i) for i in range(3)
    ]
    by_rank = [
        make_trial(make_asked(f"k{i}", (None,), mode="hybrid"), line=10 + i) for i in range(2)
    ]
    empty = make_trial(make_asked("e", (), mode="hybrid"), "c1", line=20)
    report = calibrate(make_stratum([*by_distance, *by_rank, empty], mode="hybrid"), 0.5)
    counted = {b.basis: (b.lookups, b.without_evidence) for b in report.bases}
    assert counted == {"hybrid_l2": (4, 1), "hybrid_rank": (2, 0)}
    assert any("2 lookups are scored by rank alone" in s for s in report.recommendation.sentences)


def test_a_lookup_without_a_known_quality_is_in_no_curve() -> None:
    unknown = make_trial(make_asked("u", (None,)), "c1")
    report = calibrate(make_stratum([unknown]), 0.05)
    assert report.unverifiable == 1
    assert report.bases == []
    assert report.retrieval.recall["1"].value == 1.0
