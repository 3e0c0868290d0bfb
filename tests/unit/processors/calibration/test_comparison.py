from pathlib import Path

import pytest

from lookup_audit.processors.calibration.asked import AnswerGiven
from lookup_audit.processors.calibration.comparison import (
    COVERAGE,
    SUPPOSED,
    TWO_RULERS,
    Comparison,
    Figure,
    compare,
)
from lookup_audit.processors.calibration.matching import StratumTrials, Trial
from lookup_audit.processors.calibration.strategies import (
    Strategy,
    pair_strata,
    parse_strategy,
    refuse_pooling,
)
from lookup_audit.schemas.errors import ConfigError
from lookup_audit.schemas.ruleset import Ruleset
from tests.support.trials import make_asked, make_stratum, make_trial

STRICT = Ruleset(highly_relevant_threshold=0.95, reference_threshold=0.9)


def load(path: Path) -> Ruleset:
    assert path == Path("strict,er.json")
    return STRICT


def figure(found: Comparison, name: str) -> Figure:
    return next(f for f in found.figures if f.name == name)


def trials(hits: str, *, mode: str = "dense", refused: str = "") -> list[Trial]:
    """One answerable question a letter: ``1`` right at once, ``2`` second, ``0`` not found."""
    return [
        make_trial(
            make_asked(
                f"q{line}",
                (0.8, 0.7),
                mode=mode,
                answer=AnswerGiven(bool(refused) and refused[line] == "r", 2, 1),
            ),
            {"1": "c1", "2": "c2", "0": "elsewhere"}[hit],
            line=line,
        )
        for line, hit in enumerate(hits)
    ]


def stratum(
    hits: str, mode: str = "dense", version: str = "m@1", refused: str = ""
) -> StratumTrials:
    return make_stratum(trials(hits, mode=mode, refused=refused), mode, version)


STORED = Strategy("stored")


def test_shares_differences_and_discordant_pairs_by_hand() -> None:
    found = compare((STORED, stratum("1112200")), (STORED, stratum("1000012")))
    first = figure(found, "Recall@1")
    assert first.n == 7
    assert (first.a, first.b) == pytest.approx((3 / 7, 2 / 7))
    assert (first.only_a, first.only_b) == (2, 1)
    assert first.difference == pytest.approx(1 / 7)
    assert first.p == 1.0
    all_kept = figure(found, "Recall@top_k")
    assert (all_kept.only_a, all_kept.only_b) == (4, 2)
    # Binomial(6, 1/2): twice the chance of at most 2.
    assert all_kept.p == pytest.approx(2 * (1 + 6 + 15) / 64)


def test_a_question_that_one_side_lacks_is_in_no_figure() -> None:
    found = compare((STORED, stratum("111")), (STORED, stratum("11111")))
    assert (found.questions, found.one_sided) == (3, 2)


def test_two_modes_are_compared_in_what_needs_no_ruler_alone() -> None:
    found = compare((STORED, stratum("12")), (STORED, stratum("11", "hybrid")))
    compared = {f.name for f in found.figures if f.n}
    assert compared == {
        "gold chunk selected",
        "Recall@1",
        "Recall@3",
        "Recall@5",
        "Recall@top_k",
    }
    assert {f.no_value for f in found.figures if not f.n} == {TWO_RULERS}
    names = {name for example in found.examples for name in example.differs_in}
    assert names <= compared


def test_a_supposed_ruleset_moves_levels_and_claims_no_answers() -> None:
    side = stratum("110")
    found = compare((STORED, side), (Strategy("strict", ruleset=STRICT), side))
    errors = figure(found, "PRECISE and top chunk wrong")
    assert (errors.a, errors.b) == pytest.approx((1 / 3, 0.0))
    assert figure(found, "NONE where both have evidence").b == 1.0
    assert figure(found, COVERAGE).no_value == SUPPOSED
    assert figure(found, "refused where evidence lacks").no_value == SUPPOSED


def test_refusals_are_told_apart_by_whether_there_was_evidence() -> None:
    lacking = [
        make_trial(make_asked(f"u{i}", answer=AnswerGiven(i == 0, 0, 0)), line=50 + i)
        for i in range(2)
    ]
    a = make_stratum([*trials("11", refused="r-"), *lacking])
    b = make_stratum([*trials("11", refused="--"), *lacking])
    found = compare((STORED, a), (STORED, b))
    over = figure(found, "refused where both have evidence")
    assert (over.n, over.a, over.b) == (2, 0.5, 0.0)
    assert figure(found, "refused where evidence lacks").a == 0.5


def test_coverage_is_compared_where_both_answered() -> None:
    a = make_stratum(
        [
            make_trial(make_asked(f"q{i}", answer=AnswerGiven(False, 2, 2)), "c1", line=i)
            for i in range(4)
        ]
    )
    b = stratum("1111", refused="--rr")
    found = figure(compare((STORED, a), (STORED, b)), COVERAGE)
    assert (found.n, found.a, found.b, found.difference) == (2, 1.0, 0.5, 0.5)
    assert found.interval is None  # nothing varies


def test_without_outcomes_there_is_no_value_and_no_nan() -> None:
    bare = make_stratum([make_trial(make_asked("q"), "c1")])
    found = compare((STORED, bare), (STORED, bare))
    assert figure(found, COVERAGE).no_value
    assert figure(found, "refused where both have evidence").a is None


def test_the_questions_that_differ_are_named_with_the_figures() -> None:
    found = compare((STORED, stratum("121")), (STORED, stratum("111")))
    (example,) = found.examples
    assert example.pair.question == "q1"
    assert example.differs_in == ("Recall@1", "PRECISE and top chunk wrong")


def test_turning_the_sides_turns_the_differences() -> None:
    one, other = stratum("1112200"), stratum("1000012")
    for there, back in zip(
        compare((STORED, one), (STORED, other)).figures,
        compare((STORED, other), (STORED, one)).figures,
        strict=True,
    ):
        assert there.p == back.p
        if there.difference is not None:
            assert there.difference == -(back.difference or 0.0)


@pytest.mark.parametrize(
    ("selection", "chosen"),
    [
        ("stored", ("c2",)),
        ("kept", ("c1", "c2", "c3")),
        ("top:2", ("c1", "c2")),
        ("layer:high", ("c1",)),
        ("layer:middle", ("c1", "c2")),
    ],
)
def test_each_selection_gives_its_chunks(selection: str, chosen: tuple[str, ...]) -> None:
    asked = make_asked("q", (0.9, 0.75, 0.5), selected=("c2",))
    assert Strategy("s", selection=selection).selects(asked) == chosen


def test_a_side_is_read_with_commas_in_its_values() -> None:
    side = parse_strategy("model=a,b@1,mode=dense,ruleset=strict,er.json,selection=top:3", load)
    assert (side.model_version, side.mode, side.selection) == ("a,b@1", "dense", "top:3")
    assert side.ruleset == STRICT
    assert not side.is_as_stored


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is no strategy"),
        ("minilm@2", "is no strategy"),
        ("x,model=a", "is no strategy"),
        ("model=", "model= is empty"),
        ("model=a,model=b", "comes twice"),
        ("selection=best", "selection=best is not known"),
        ("selection=top:0", "is not known"),
        ("mode=all", "modes are never pooled"),
        ("mode=dense+hybrid", "modes are never pooled"),
    ],
)
def test_a_wrong_side_is_refused_with_the_part(text: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said.replace("+", r"\+")):
        parse_strategy(text, load)


def test_modes_that_exist_are_no_pooling() -> None:
    for mode in ("dense", "hybrid", "lexical", "unknown", ""):
        refuse_pooling(mode)


STRATA = [stratum("1", mode, version) for version in ("m@1", "m@2") for mode in ("dense", "hybrid")]


def paired(a: Strategy, b: Strategy) -> list[tuple[str, str, str, str]]:
    return [
        (one.model_version, one.mode, other.model_version, other.mode)
        for one, other in pair_strata(a, b, STRATA)
    ]


def test_what_a_side_leaves_out_holds_as_on_the_other() -> None:
    versions = paired(Strategy("a", "m@1"), Strategy("b", "m@2"))
    assert versions == [("m@1", "dense", "m@2", "dense"), ("m@1", "hybrid", "m@2", "hybrid")]
    modes = paired(Strategy("a", "m@1", "dense"), Strategy("b", "", "hybrid"))
    assert modes == [("m@1", "dense", "m@1", "hybrid")]
    supposed = paired(Strategy("a"), Strategy("b", ruleset=STRICT))
    assert len(supposed) == 4
    assert all((a, b) == (c, d) for a, b, c, d in supposed)


def test_the_same_thing_on_both_sides_is_refused() -> None:
    with pytest.raises(ConfigError, match="are the same thing"):
        paired(Strategy("a", "m@1"), Strategy("b", "m@1"))
    with pytest.raises(ConfigError, match="asked were: m@1"):
        paired(Strategy("a", "m@9"), Strategy("b", "m@1"))
