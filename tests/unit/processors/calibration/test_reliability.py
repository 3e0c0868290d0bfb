import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lookup_audit.processors.calibration.fragility import Fragility, read_rows
from lookup_audit.processors.calibration.layers import layer_advice, layer_curve, pieces
from lookup_audit.processors.calibration.reliability import reliability
from tests.support.trials import make_asked, make_trial, right, wrong


def test_a_score_that_means_more_is_monotone() -> None:
    found = [
        right(level / 10 + i / 1000) if i < level * 2 else wrong(level / 10 + i / 1000)
        for level in range(1, 9)
        for i in range(20)
    ]
    table = reliability(found)
    assert table.never_falls
    assert table.sentence.startswith("Monotone")
    assert [b.right.n for b in table.bins] == [20] * 8
    assert [b.right.count for b in table.bins] == [2, 4, 6, 8, 10, 12, 14, 16]


def test_a_score_that_means_nothing_is_said_so() -> None:
    found = [right(i / 100) if i % 2 else wrong(i / 100) for i in range(100)]
    assert reliability(found).sentence.startswith("A higher score does not reliably mean")


def test_a_falling_bin_is_told_beside_the_trend() -> None:
    shares = [1, 2, 3, 9, 5, 10, 12, 14]
    found = [
        right(level + i / 100) if i < share else wrong(level + i / 100)
        for level, share in enumerate(shares)
        for i in range(20)
    ]
    assert "falls once" in reliability(found).sentence


def test_one_score_for_all_is_one_bin() -> None:
    table = reliability([right(1.0)] * 30 + [wrong(1.0)] * 30)
    assert len(table.bins) == 1
    assert table.never_falls is None
    assert "same score" in table.sentence
    assert reliability([]).bins == ()
    assert reliability([wrong(None)]).bins == ()


@settings(deadline=None, max_examples=40)  # ten thousand deals each
@given(st.lists(st.tuples(st.integers(0, 30), st.booleans()), max_size=150))
def test_bins_hold_every_lookup_once_and_never_part_equal_scores(
    drawn: list[tuple[int, bool]],
) -> None:
    table = reliability([right(q / 30) if ok else wrong(q / 30) for q, ok in drawn])
    assert sum(b.right.n for b in table.bins) == len(drawn)
    for lower, upper in zip(table.bins, table.bins[1:], strict=False):
        assert lower.highest < upper.lowest


def fragile(**over: object) -> Fragility:
    row: dict[str, object] = {
        "model_version": "m@1",
        "mode": "dense",
        "basis": "dense_l2",
        "lookups": 100,
        "scored": 100,
        "held": 100,
        "lowest": 0.1,
        "p5": 0.2,
        "p95": 0.8,
        "highest": 0.9,
        "precise": 40,
        "reference": 30,
        "high_up": 1,
        "high_down": 2,
        "low_up": 0,
        "low_down": 1,
        "flips": 4,
        "thresholds": [[0.75, 0.5]],
    }
    return read_rows([row | over], 0.01)[0]


def test_a_wide_band_ranks() -> None:
    found = fragile()
    assert found.switches is False
    assert found.width == pytest.approx(0.6)
    assert found.flips.value == 0.04


def test_a_narrow_band_switches() -> None:
    found = fragile(p5=0.71, p95=0.76, high_up=3)
    assert found.switches is True
    assert found.sentence.startswith("A threshold switches here rather than ranks")


def test_one_move_that_turns_a_tenth_switches() -> None:
    assert fragile(high_up=10, flips=13).switches is True
    assert fragile(high_up=9, flips=13).switches is False


def test_a_threshold_out_of_reach_ranks_nothing() -> None:
    found = fragile(precise=0, reference=0)
    assert found.switches is True
    assert "no lookup is PRECISE" in found.sentence


def test_without_scores_or_with_few_nothing_is_claimed() -> None:
    nothing = fragile(
        basis="", scored=0, held=0, lowest=None, p5=None, p95=None, highest=None, precise=0,
        reference=0, high_up=0, high_down=0, low_up=0, low_down=0, flips=0, thresholds=[],
    )  # fmt: skip
    assert (nothing.band, nothing.width, nothing.switches) == (None, None, None)
    assert nothing.flips.value is None
    assert fragile(held=29).switches is None
    assert fragile(basis="hybrid_rank", p5=1.0, p95=1.0).switches is None


def test_layers_of_a_small_case_by_hand() -> None:
    trials = [
        make_trial(make_asked("a", (0.9, 0.5)), "c1", line=1),
        make_trial(make_asked("b", (0.8, 0.7)), "c2", line=2),
        make_trial(make_asked("c", (0.6, 0.4), linked=False), "c1", line=3),
    ]
    found = pieces(trials)
    (at,) = [
        c for c in layer_curve(found, linked_only=False, more_cuts=[0.65]) if c.similarity == 0.65
    ]
    assert (at.reached, at.supporting, at.all_supporting) == (3, 2, 3)
    assert at.precision[0] == pytest.approx(2 / 3)
    assert at.recall[0] == pytest.approx(2 / 3)
    linked = layer_curve(found, linked_only=True)
    assert max(c.reached for c in linked) == 4


def test_layer_cut_offs_keep_the_supporting_chunks() -> None:
    trials = [
        make_trial(make_asked(f"q{i}", (0.6 + i / 200, 0.3 + i / 200)), "c1", line=i)
        for i in range(40)
    ]
    found = pieces(trials)
    advice = layer_advice(found)
    assert advice is not None
    assert advice.middle <= advice.high
    supporting = [p.similarity for p in found if p.supports]
    assert sum(s >= advice.middle for s in supporting) >= 0.95 * len(supporting)


def test_layers_stay_where_similarity_tells_nothing() -> None:
    trials = [
        make_trial(make_asked(f"q{i}", (0.5, 0.5)), f"c{1 + i % 2}", line=i) for i in range(20)
    ]
    assert layer_advice(pieces(trials)) is None
    assert layer_advice([]) is None
    assert layer_curve([], linked_only=True) == []
