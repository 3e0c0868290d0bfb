"""What retrieval found of the gold set, before any threshold: no level takes part in it."""

from collections.abc import Sequence
from dataclasses import dataclass

from lookup_audit.processors.calibration.matching import Trial
from lookup_audit.processors.calibration.rate import Rate

RECALL_AT = (1, 3, 5)


@dataclass(frozen=True, slots=True)
class Retrieval:
    """Figures of one model version and mode.

    Args:
        recall: By K as text, ``top_k`` last: answerable questions with a supporting chunk among
            the first K kept candidates.
        most_kept: The longest list of kept candidates; recall beyond it cannot grow.
        selected: Answerable questions of which a supporting chunk was given to the caller.
        with_source: Of questions with a supporting chunk kept, those whose best ranked one has a
            source_url.
        refusals: Lookups that the agent refused to answer, of those with an outcome.
        refused_unanswerable: The same, of questions without an answer.
        refused_answerable: The same, of questions of which a supporting chunk was selected.
    """

    recall: dict[str, Rate]
    most_kept: int
    selected: Rate
    with_source: Rate
    refusals: Rate
    refused_unanswerable: Rate
    refused_answerable: Rate


def retrieval_of(trials: Sequence[Trial]) -> Retrieval:
    """Count one model version and mode. A list without an order has no hit at any K."""
    answerable = [t for t in trials if t.gold.answerable]
    hits = [t for t in answerable if t.first_hit is not None]
    recall = {str(k): recall_at(answerable, k) for k in RECALL_AT}
    recall["top_k"] = Rate(len(hits), len(answerable))
    return Retrieval(
        recall=recall,
        most_kept=max((len(t.asked.kept) for t in trials), default=0),
        selected=Rate(sum(t.selected_hit for t in answerable), len(answerable)),
        with_source=Rate(sum(_has_source(t) for t in hits), len(hits)),
        refusals=_refusals(trials),
        refused_unanswerable=_refusals([t for t in trials if not t.gold.answerable]),
        refused_answerable=_refusals([t for t in answerable if t.selected_hit]),
    )


def recall_at(answerable: Sequence[Trial], k: int) -> Rate:
    """Answerable questions with a supporting chunk among the first ``k`` kept candidates."""
    found = sum(t.first_hit is not None and t.first_hit <= k for t in answerable)
    return Rate(found, len(answerable))


def _has_source(trial: Trial) -> bool:
    place = trial.first_hit
    return place is not None and bool(trial.asked.kept[place - 1].source_url)


def _refusals(trials: Sequence[Trial]) -> Rate:
    answers = [t.asked.answer for t in trials if t.asked.answer is not None]
    return Rate(sum(a.refused for a in answers), len(answers))
