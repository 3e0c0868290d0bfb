"""Two strategies over the same questions: figures side by side, paired tests, differing questions.

A question counts where both sides answered it. Shares are compared by McNemar's exact test and
Newcombe's interval of a paired difference, means by sign flips and the BCa bootstrap; p values are
adjusted for the number of figures by Holm. Between two modes only what needs no ruler is compared.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from lookup_audit.processors.calibration.matching import StratumTrials, Trial
from lookup_audit.processors.calibration.rate import Interval
from lookup_audit.processors.calibration.strategies import Strategy
from lookup_audit.processors.statistics.multiple import holm
from lookup_audit.processors.statistics.paired import (
    mcnemar_exact,
    mean_difference,
    paired_difference,
    sign_flip_p,
)

TWO_RULERS = "the levels of two modes are on different rulers"
SUPPOSED = "the stored answers were given under another ruleset or selection"


@dataclass(frozen=True, slots=True)
class View:
    """One question under one strategy.

    Args:
        first_hit: Place of the first supporting chunk among the kept, or none.
        selected_hit: A supporting chunk is selected.
        top_right: The top candidate is a supporting chunk.
        level: Of the whole call, ``None`` where it cannot be verified.
        quality: Of the top candidate.
        refused: By the agent, ``None`` without an outcome.
        coverage: Citation coverage of the answer, or none.
    """

    first_hit: int | None
    selected_hit: bool
    top_right: bool
    level: str | None
    quality: float | None
    refused: bool | None
    coverage: float | None


@dataclass(frozen=True, slots=True)
class Pair:
    """One question under both strategies."""

    line: int
    question: str
    answerable: bool
    a: View
    b: View


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure of both sides.

    Args:
        name: What is counted.
        n: Questions it is over; 0 where it has no value.
        a: Share or mean of side a.
        b: … of side b.
        difference: a - b.
        interval: Of the difference, at 95 %.
        only_a: Questions that only a has, for shares.
        only_b: … that only b has.
        p: Of the paired test.
        p_holm: Adjusted for the number of figures.
        no_value: Why there is none, or ``""``.
    """

    name: str
    n: int
    a: float | None = None
    b: float | None = None
    difference: float | None = None
    interval: Interval | None = None
    only_a: int | None = None
    only_b: int | None = None
    p: float | None = None
    p_holm: float | None = None
    no_value: str = ""


@dataclass(frozen=True, slots=True)
class Example:
    """A question on which the sides differ, and in which figures."""

    pair: Pair
    differs_in: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """One table of two strata.

    Args:
        a: Model version and mode of side a.
        b: … of side b.
        questions: Gold questions that both sides answered.
        one_sided: Questions that only one side answered: in no figure.
        figures: In the order they are read.
        examples: Every question that differs, the most telling first.
    """

    a: tuple[str, str]
    b: tuple[str, str]
    questions: int
    one_sided: int
    figures: list[Figure]
    examples: list[Example]


Test = Callable[[View], bool | None]
Among = Callable[[Pair], bool]


@dataclass(frozen=True, slots=True)
class _Share:
    """A share of the questions: what has it, among which, and what it depends on."""

    name: str
    has: Test
    among: Among
    needs: str = ""


def _within(k: int) -> Test:
    return lambda view: view.first_hit is not None and view.first_hit <= k


def _answerable(pair: Pair) -> bool:
    return pair.answerable


def _lacking(pair: Pair) -> bool:
    return not pair.answerable


def _given_to_both(pair: Pair) -> bool:
    return pair.answerable and pair.a.selected_hit and pair.b.selected_hit


def _is_none(view: View) -> bool | None:
    return None if view.level is None else view.level == "NONE"


def _is_high_error(view: View) -> bool | None:
    return None if view.level is None else view.level == "PRECISE" and not view.top_right


SHARES = (
    _Share("gold chunk selected", lambda view: view.selected_hit, _answerable),
    *(_Share(f"Recall@{k}", _within(k), _answerable) for k in (1, 3, 5)),
    _Share("Recall@top_k", lambda view: view.first_hit is not None, _answerable),
    _Share("PRECISE and top chunk wrong", _is_high_error, lambda pair: True, "level"),
    _Share("NONE where evidence lacks", _is_none, _lacking, "level"),
    _Share("NONE where both have evidence", _is_none, _given_to_both, "level"),
    _Share("refused where evidence lacks", lambda view: view.refused, _lacking, "answer"),
    _Share("refused where both have evidence", lambda view: view.refused, _given_to_both, "answer"),
)
COVERAGE = "citation coverage of an answer"


def compare(
    a: tuple[Strategy, StratumTrials], b: tuple[Strategy, StratumTrials], *, seed: int = 1
) -> Comparison:
    """Hold two strata against each other, each under its strategy.

    Args:
        a: Strategy and trials of one side.
        b: … of the other.
        seed: Of the bootstrap and the sign flips.
    """
    pairs, one_sided = _pairs(a, b)
    two_modes = a[1].mode != b[1].mode
    supposed = not (a[0].is_as_stored and b[0].is_as_stored)
    reasons = {
        "level": TWO_RULERS if two_modes else "",
        "answer": TWO_RULERS if two_modes else SUPPOSED if supposed else "",
    }
    figures = [_share_figure(share, pairs, reasons.get(share.needs, "")) for share in SHARES]
    figures.append(_coverage_figure(pairs, reasons["answer"], seed))
    adjusted = holm([figure.p for figure in figures])
    figures = [replace(f, p_holm=p) for f, p in zip(figures, adjusted, strict=True)]
    shown = [share for share in SHARES if not reasons.get(share.needs, "")]
    return Comparison(
        a=(a[1].model_version, a[1].mode),
        b=(b[1].model_version, b[1].mode),
        questions=len(pairs),
        one_sided=one_sided,
        figures=figures,
        examples=_examples(pairs, shown),
    )


def _pairs(
    a: tuple[Strategy, StratumTrials], b: tuple[Strategy, StratumTrials]
) -> tuple[list[Pair], int]:
    of_a = {trial.gold.line: trial for trial in a[1].trials}
    of_b = {trial.gold.line: trial for trial in b[1].trials}
    pairs = [
        Pair(
            line=line,
            question=trial.gold.question,
            answerable=trial.gold.answerable,
            a=view(a[0], trial),
            b=view(b[0], of_b[line]),
        )
        for line, trial in of_a.items()
        if line in of_b
    ]
    return pairs, len(of_a.keys() ^ of_b.keys())


def view(strategy: Strategy, trial: Trial) -> View:
    """One trial as a strategy sees it."""
    asked = trial.asked
    quality = asked.quality(strategy.ruleset)
    return View(
        first_hit=trial.first_hit,
        selected_hit=not trial.supporting.isdisjoint(strategy.selects(asked)),
        top_right=trial.is_right,
        level=asked.level(strategy.ruleset),
        quality=None if quality is None else quality[0],
        refused=None if asked.answer is None else asked.answer.refused,
        coverage=None if asked.answer is None else asked.answer.coverage,
    )


def _share_figure(share: _Share, pairs: Sequence[Pair], reason: str) -> Figure:
    if reason:
        return Figure(share.name, 0, no_value=reason)
    known = [
        (bool(in_a), bool(in_b))
        for pair in pairs
        if share.among(pair)
        and (in_a := share.has(pair.a)) is not None
        and (in_b := share.has(pair.b)) is not None
    ]
    n = len(known)
    if not n:
        return Figure(share.name, 0, no_value="no question with both values")
    both = known.count((True, True))
    only_a, only_b = known.count((True, False)), known.count((False, True))
    return Figure(
        name=share.name,
        n=n,
        a=(both + only_a) / n,
        b=(both + only_b) / n,
        difference=(only_a - only_b) / n,
        interval=paired_difference(both, only_a, only_b, n - both - only_a - only_b),
        only_a=only_a,
        only_b=only_b,
        p=mcnemar_exact(only_a, only_b),
    )


def _coverage_figure(pairs: Sequence[Pair], reason: str, seed: int) -> Figure:
    if reason:
        return Figure(COVERAGE, 0, no_value=reason)
    known = [
        (pair.a.coverage, pair.b.coverage)
        for pair in pairs
        if pair.a.coverage is not None and pair.b.coverage is not None
    ]
    n = len(known)
    if not n:
        return Figure(COVERAGE, 0, no_value="no question that both sides answered with claims")
    differences = [in_a - in_b for in_a, in_b in known]
    return Figure(
        name=COVERAGE,
        n=n,
        a=sum(in_a for in_a, _ in known) / n,
        b=sum(in_b for _, in_b in known) / n,
        difference=sum(differences) / n,
        interval=mean_difference(differences, seed=seed),
        p=sign_flip_p(differences, seed=seed),
    )


def _examples(pairs: Sequence[Pair], shares: Sequence[_Share]) -> list[Example]:
    """Differing questions, those that differ in an earlier figure first."""
    found: list[tuple[int, Example]] = []
    for pair in pairs:
        differs = [
            number
            for number, share in enumerate(shares)
            if share.among(pair)
            and None not in (share.has(pair.a), share.has(pair.b))
            and share.has(pair.a) != share.has(pair.b)
        ]
        if differs:
            names = tuple(shares[number].name for number in differs)
            found.append((differs[0], Example(pair, names)))
    return [example for _, example in sorted(found, key=lambda item: item[0])]
