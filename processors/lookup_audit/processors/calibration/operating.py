"""The operating curve: what each cut of highly_relevant_threshold would have done.

A lookup at or above the cut is ``PRECISE``, and right if its top kept candidate, the one that
decides the level, is a supporting chunk. Below the cut an agent that answers on ``PRECISE`` alone
refuses. Lookups without evidence are below every cut.
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lookup_audit.processors.calibration.matching import Trial
from lookup_audit.processors.calibration.rate import Rate


@dataclass(frozen=True, slots=True)
class Scored:
    """One gold question's lookup reduced to what a threshold sees.

    Args:
        quality: Of the top candidate; ``None`` without evidence.
        right: The top candidate is a supporting chunk.
        answerable: The corpus answers the question.
        found: A supporting chunk is among the kept candidates.
    """

    quality: float | None
    right: bool
    answerable: bool
    found: bool


@dataclass(frozen=True, slots=True)
class Cut:
    """Counts at one threshold.

    Args:
        threshold: Inclusive, as the level rule compares.
        n: All lookups of the group.
        precise: Lookups at or above the threshold.
        precise_right: Of these, right ones.
        right: Right ones of all.
        refused_unanswerable: Unanswerable questions below the threshold.
        unanswerable: Unanswerable questions of all.
    """

    threshold: float
    n: int
    precise: int
    precise_right: int
    right: int
    refused_unanswerable: int
    unanswerable: int

    @property
    def precision(self) -> Rate:
        """Right ones among ``PRECISE``."""
        return Rate(self.precise_right, self.precise)

    @property
    def recall(self) -> Rate:
        """``PRECISE`` ones among the right; the rest are over-refusals."""
        return Rate(self.precise_right, self.right)

    @property
    def error_rate(self) -> Rate:
        """Wrong ones among ``PRECISE``: the high-score-error rate."""
        return Rate(self.precise - self.precise_right, self.precise)

    @property
    def refusal_rate(self) -> Rate:
        """Lookups below the threshold."""
        return Rate(self.n - self.precise, self.n)

    @property
    def refused_where_lacking(self) -> Rate:
        """Unanswerable questions below the threshold."""
        return Rate(self.refused_unanswerable, self.unanswerable)


def scored(trial: Trial) -> Scored:
    """A trial reduced, its quality by the lookup's own ruleset."""
    found = trial.asked.quality()
    return Scored(
        quality=None if found is None else found[0],
        right=trial.is_right,
        answerable=trial.gold.answerable,
        found=trial.first_hit is not None,
    )


def operating_curve(lookups: Sequence[Scored], more_cuts: Iterable[float] = ()) -> list[Cut]:
    """The cuts in rising order: every distinct quality, and the further ones asked for."""
    qualities = sorted(x.quality for x in lookups if x.quality is not None)
    of_right = sorted(x.quality for x in lookups if x.right and x.quality is not None)
    lacking = [x for x in lookups if not x.answerable]
    all_right = sum(x.right for x in lookups)
    of_lacking = sorted(x.quality for x in lacking if x.quality is not None)

    def cut_at(threshold: float) -> Cut:
        above = len(of_lacking) - bisect_left(of_lacking, threshold)
        return Cut(
            threshold=threshold,
            n=len(lookups),
            precise=len(qualities) - bisect_left(qualities, threshold),
            precise_right=len(of_right) - bisect_left(of_right, threshold),
            right=all_right,
            refused_unanswerable=len(lacking) - above,
            unanswerable=len(lacking),
        )

    return [cut_at(threshold) for threshold in sorted({*qualities, *more_cuts})]


def readable(curve: Sequence[Cut], keep: Iterable[float], rows: int = 10) -> list[Cut]:
    """A subset to print: evenly spread over the curve, with the named thresholds."""
    if len(curve) <= rows:
        return list(curve)
    places = {round(i * (len(curve) - 1) / (rows - 1)) for i in range(rows)}
    named = set(keep)
    return [cut for place, cut in enumerate(curve) if place in places or cut.threshold in named]
