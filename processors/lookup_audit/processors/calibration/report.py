"""Calibration of one model version and mode, put together: figures, advice, and plain sentences."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from lookup_audit.processors.calibration.layers import (
    LayerAdvice,
    LayerCut,
    layer_advice,
    layer_curve,
    pieces,
)
from lookup_audit.processors.calibration.matching import StratumTrials, Trial
from lookup_audit.processors.calibration.operating import Cut, Scored, operating_curve, scored
from lookup_audit.processors.calibration.rate import Interval, Rate
from lookup_audit.processors.calibration.recommend import (
    Choice,
    Optimism,
    choose,
    closest,
    optimism,
    reference_cut,
)
from lookup_audit.processors.calibration.reliability import Reliability, reliability
from lookup_audit.processors.calibration.retrieval import Retrieval, retrieval_of
from lookup_audit.processors.statistics.proportions import Z_95
from lookup_audit.processors.statistics.separation import auc, auc_interval, best_cut_p
from lookup_audit.schemas.ruleset import DEFAULT_RULESET, Ruleset

_ALPHA = 0.05
_BELOW_ALL = -1.0


@dataclass(frozen=True, slots=True)
class Separation:
    """Whether the top quality tells answerable from unanswerable questions.

    Args:
        answerable: How many of the first.
        unanswerable: How many of the second.
        auc: Area under the ROC curve; no value where a group is empty.
        interval: Of the AUC.
        best_cut_p: Exact p that chance would give a cut as good.
        separates: The interval lies above 0.5 and the best cut beats chance; ``None`` unknown.
        sentence: The reading in words.
    """

    answerable: int
    unanswerable: int
    auc: float | None
    interval: Interval | None
    best_cut_p: float | None
    separates: bool | None
    sentence: str


@dataclass(frozen=True, slots=True)
class BasisReport:
    """What depends on one ruler: lookups of one mode and one quality basis.

    Args:
        basis: ``dense_l2``, ``hybrid_l2`` or ``hybrid_rank``.
        lookups: Gold questions in it, those without evidence included.
        without_evidence: Of these, lookups that kept nothing: below every threshold.
        curve: All cuts.
        separation: Answerable against unanswerable.
        reliability: Quality against right.
    """

    basis: str
    lookups: int
    without_evidence: int
    curve: list[Cut]
    separation: Separation
    reliability: Reliability


@dataclass(frozen=True, slots=True)
class Recommendation:
    """The advice for one error budget.

    Args:
        budget: Highest high-score-error rate that is accepted.
        ruleset: What to put in force; ``None`` where no threshold keeps the budget.
        choice: The threshold with its counts.
        nearest: Without a choice, the cut that comes nearest.
        optimism: What to expect on new questions.
        layers: New layer cut-offs, ``None`` where the old ones stay.
        sentences: The advice, and everything that weakens it, in words.
    """

    budget: float
    ruleset: Ruleset | None
    choice: Choice | None
    nearest: Cut | None
    optimism: Optimism | None
    layers: LayerAdvice | None
    sentences: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class StratumReport:
    """Everything about one model version and mode.

    Args:
        model_version: Of all its lookups.
        mode: Of all its lookups.
        current: Ruleset of the newest lookup, the default one if none is known.
        questions: Gold questions that it answered.
        unverifiable: Of these, lookups whose top quality cannot be recomputed; in no curve.
        formulas: Different formulas of quality among their rulesets: more than one is no one ruler.
        retrieval: Figures that need no threshold.
        bases: One a ruler.
        high_layer: Cut-offs of ``high``, over linked candidates.
        middle_layer: Cut-offs of ``middle``, over all candidates.
        recommendation: For the error budget.
        source: The trials and what was left out.
    """

    model_version: str
    mode: str
    current: Ruleset
    questions: int
    unverifiable: int
    formulas: int
    retrieval: Retrieval
    bases: list[BasisReport]
    high_layer: list[LayerCut]
    middle_layer: list[LayerCut]
    recommendation: Recommendation
    source: StratumTrials


def calibrate(stratum: StratumTrials, budget: float, *, seed: int = 1) -> StratumReport:
    """Calibrate one model version and mode.

    Args:
        stratum: Its trials.
        budget: Error budget of ``PRECISE``, 0..1.
        seed: Of the bootstrap.
    """
    trials = stratum.trials
    current = _current(trials)
    groups, unverifiable = _by_basis(trials)
    cuts = (current.highly_relevant_threshold, current.reference_threshold)
    candidates = pieces(trials)
    bases = [
        BasisReport(
            basis=basis,
            lookups=len(lookups),
            without_evidence=sum(x.quality is None for x in lookups),
            curve=operating_curve(lookups, cuts),
            separation=separation(lookups),
            reliability=reliability(lookups),
        )
        for basis, lookups in sorted(groups.items())
    ]
    on_distance = next((g for b, g in groups.items() if b.endswith("_l2")), [])
    advice = layer_advice(candidates)
    recommendation = _recommend(
        on_distance, groups.get("hybrid_rank", []), current, budget, advice, seed
    )
    return StratumReport(
        model_version=stratum.model_version,
        mode=stratum.mode,
        current=current,
        questions=len(trials),
        unverifiable=unverifiable,
        formulas=len({_formula(t.asked.ruleset) for t in trials if t.asked.ruleset is not None}),
        retrieval=retrieval_of(trials),
        bases=bases,
        high_layer=layer_curve(
            candidates, linked_only=True, more_cuts=[current.high_layer_similarity]
        ),
        middle_layer=layer_curve(
            candidates, linked_only=False, more_cuts=[current.middle_layer_similarity]
        ),
        recommendation=recommendation,
        source=stratum,
    )


def _current(trials: Sequence[Trial]) -> Ruleset:
    known = [(t.asked.occurred_at, t.asked.ruleset) for t in trials if t.asked.ruleset is not None]
    newest = max(known, key=lambda item: item[0], default=None)
    return newest[1] if newest is not None else DEFAULT_RULESET


def _formula(ruleset: Ruleset) -> tuple[object, ...]:
    """What quality depends on; thresholds only part it."""
    return (
        ruleset.max_l2_distance,
        ruleset.distance_metric,
        ruleset.normalized,
        ruleset.rank_fallback,
    )


def _by_basis(trials: Sequence[Trial]) -> tuple[dict[str, list[Scored]], int]:
    """Trials by the ruler of their quality; lookups without evidence go with the distances."""
    groups: dict[str, list[Scored]] = {}
    unverifiable = 0
    for trial in trials:
        found = trial.asked.quality()
        if found is not None:
            groups.setdefault(found[1], []).append(scored(trial))
        elif not trial.asked.kept and trial.asked.mode in ("dense", "hybrid"):
            groups.setdefault(f"{trial.asked.mode}_l2", []).append(scored(trial))
        else:
            unverifiable += 1
    return groups, unverifiable


def separation(lookups: Sequence[Scored]) -> Separation:
    """Answerable against unanswerable questions of one ruler."""

    def of(answerable: bool) -> list[float]:
        return [
            _BELOW_ALL if x.quality is None else x.quality
            for x in lookups
            if x.answerable is answerable
        ]

    high, low = of(True), of(False)
    value, p = auc(high, low), best_cut_p(high, low)
    if value is None or p is None:
        kind = "unanswerable" if high else "answerable"
        said = f"No {kind} question among these: whether a threshold separates cannot be said."
        return Separation(len(high), len(low), None, None, None, None, said)
    interval = auc_interval(value, len(high), len(low))
    figures = (
        f"AUC {value:.2f} ({interval[0]:.2f}-{interval[1]:.2f}), "
        f"best threshold against chance p = {p:.2g}"
    )
    separates = interval[0] > 0.5 and p < _ALPHA
    said = (
        f"Quality separates answerable from unanswerable questions: {figures}."
        if separates
        else f"No threshold separates answerable from unanswerable questions: {figures}."
    )
    return Separation(len(high), len(low), value, interval, p, separates, said)


def fewest_precise(budget: float) -> int:
    """How many PRECISE lookups without an error it takes to show a budget.

    From Wilson's upper end without errors, z^2 / (n + z^2).

    >>> fewest_precise(0.05)
    73
    """
    return math.ceil(Z_95 * Z_95 * (1 - budget) / budget)


def _recommend(
    lookups: list[Scored],
    by_rank: list[Scored],
    current: Ruleset,
    budget: float,
    layers: LayerAdvice | None,
    seed: int,
) -> Recommendation:
    choice = choose(lookups, budget)
    sentences = _rank_sentences(by_rank)
    if choice is None:
        nearest = closest(lookups)
        sentences.insert(0, _no_choice(nearest, budget))
        return Recommendation(budget, None, None, nearest, None, layers, tuple(sentences))
    high = choice.cut.threshold
    reference = reference_cut(lookups, high)
    changed = {
        "highly_relevant_threshold": high,
        "reference_threshold": min(
            high, current.reference_threshold if reference is None else reference
        ),
    }
    if layers is not None:
        changed["high_layer_similarity"] = layers.high
        changed["middle_layer_similarity"] = layers.middle
    ruleset = Ruleset.model_validate(current.model_dump() | changed)
    found = optimism(lookups, budget, seed=seed)
    return Recommendation(
        budget,
        ruleset,
        choice,
        None,
        found,
        layers,
        (*_choice_sentences(choice, budget, found, separation(lookups)), *sentences),
    )


def said(rate: Rate) -> str:
    """A rate in words: value, interval and n.

    >>> said(Rate(1, 4))
    '0.25 (0.05-0.70, n = 4)'
    """
    interval = rate.interval
    if rate.value is None or interval is None:
        return "no value (n = 0)"
    return f"{rate.value:.2f} ({interval[0]:.2f}-{interval[1]:.2f}, n = {rate.n})"


def _no_choice(nearest: Cut | None, budget: float) -> str:
    text = f"No threshold keeps the high-score-error rate within {budget:g}: "
    if nearest is None:
        return text + "no lookup has a quality by distance. No ruleset is recommended."
    text += f"nearest is {nearest.threshold:.4g} with {said(nearest.error_rate)}"
    needed = fewest_precise(budget)
    if nearest.n < needed:
        text += f"; it takes {needed} PRECISE lookups without an error to show it, there are "
        text += f"{nearest.n} in all"
    return text + ". No ruleset is recommended."


def _choice_sentences(
    choice: Choice, budget: float, found: Optimism | None, apart: Separation
) -> list[str]:
    cut = choice.cut
    sentences = [
        f"Threshold {cut.threshold:g} for PRECISE: high-score-error rate {said(cut.error_rate)}, "
        f"upper end within {budget:g}; refusal rate {said(cut.refusal_rate)} if only PRECISE is "
        "answered."
    ]
    if found is not None:
        sentences.append(
            f"It was chosen on these questions. On new ones of the kind expect an error rate of "
            f"about {found.expected_error_rate:.2f} (bootstrap optimism {found.optimism:+.3f}); in "
            f"{found.without_choice:.0%} of {found.resamples} resamples no threshold kept the "
            "budget."
        )
    if apart.separates is False:
        sentences.append(f"{apart.sentence} The budget is met by the mix of the gold set.")
    return sentences


def _rank_sentences(by_rank: list[Scored]) -> list[str]:
    if not by_rank:
        return []
    first = operating_curve(by_rank, [1.0])[-1]
    return [
        f"{len(by_rank)} lookups are scored by rank alone (hybrid_rank), {first.precise} of them "
        "as first of their round, which is PRECISE under any threshold up to 1: error rate "
        f"{said(first.error_rate)}. Thresholds of distance do not reach them."
    ]
