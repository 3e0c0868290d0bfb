"""A threshold for an error budget, and how much of its promise is owed to having chosen it.

The budget holds the *upper* end of the 95 % Wilson interval of the high-score-error rate. Of the
cuts that keep it the lowest is taken, as it leaves the most questions answered. Choosing the best
looking of many cuts flatters: the bootstrap of Efron and Gong (1983, American Statistician 37:36)
chooses anew on resampled questions and says by how much.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lookup_audit.processors.calibration.operating import Cut, Scored, operating_curve
from lookup_audit.processors.statistics.proportions import Z_95
from lookup_audit.processors.statistics.separation import youden

_BLOCK_CELLS = 4_000_000
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Choice:
    """A chosen ``highly_relevant_threshold``.

    Args:
        cut: Counts on the data it was chosen on; its threshold is the one to write, a short
            number that parts the lookups as the lowest quality above it does.
        observed: That lowest quality.
    """

    cut: Cut
    observed: float


@dataclass(frozen=True, slots=True)
class Optimism:
    """What choosing the threshold on the same questions hides.

    Args:
        expected_error_rate: Error rate to expect on new questions of this kind.
        optimism: How much the rate on the chosen data is too low, on average.
        resamples: Bootstrap resamples.
        without_choice: Share of resamples in which no threshold kept the budget.
    """

    expected_error_rate: float
    optimism: float
    resamples: int
    without_choice: float


def choose(lookups: Sequence[Scored], budget: float) -> Choice | None:
    """The lowest cut whose error rate has its upper end within the budget; ``None`` if none has."""
    curve = operating_curve(lookups)
    for place, cut in enumerate(curve):
        interval = cut.error_rate.interval
        if interval is not None and interval[1] <= budget:
            below = curve[place - 1].threshold if place else cut.threshold - 0.01
            short = short_between(below, cut.threshold)
            return Choice(operating_curve(lookups, [short])[place], cut.threshold)
    return None


def closest(lookups: Sequence[Scored]) -> Cut | None:
    """The cut whose error rate has the lowest upper end: as near as this data comes."""
    reached = [
        (interval[1], cut.threshold, cut)
        for cut in operating_curve(lookups)
        if (interval := cut.error_rate.interval) is not None
    ]
    return min(reached, key=lambda item: item[:2])[2] if reached else None


def short_between(below: float, at: float) -> float:
    """The number with the fewest decimals in (below, at]: a threshold a person can read.

    >>> short_between(0.53712, 0.54201)
    0.54
    >>> short_between(0.4, 0.5)
    0.5
    """
    for digits in range(1, 17):
        scale = 10.0**digits
        short = round(np.floor(at * scale) / scale, digits)
        if below < short <= at:
            return float(short)
    return at


def reference_cut(lookups: Sequence[Scored], highest: float) -> float | None:
    """Where to put ``reference_threshold``, at most at ``highest``.

    The cut that best parts lookups that kept a supporting chunk from those that did not, by
    Youden's J. ``None`` where one of the two groups is empty.
    """
    with_quality = [x for x in lookups if x.quality is not None]
    values = [min(x.quality, highest) for x in with_quality if x.quality is not None]
    found = [q for q, x in zip(values, with_quality, strict=True) if x.found]
    missed = [q for q, x in zip(values, with_quality, strict=True) if not x.found]
    best = youden(found, missed)
    if best is None:
        return None
    lower = [value for value in values if value < best[0]]
    return short_between(max(lower, default=best[0] - 0.01), best[0])


def optimism(
    lookups: Sequence[Scored], budget: float, *, resamples: int = 1_000, seed: int = 1
) -> Optimism | None:
    """How optimistic :func:`choose` is on data of this kind; ``None`` where it chooses nothing.

    Questions are drawn with replacement, a threshold is chosen on each draw, and its error rate
    there is held against the one on all questions. A draw's threshold above every quality errs on
    nothing and is passed over.
    """
    chosen = choose(lookups, budget)
    if chosen is None:
        return None
    rng = np.random.default_rng(seed)
    total = len(lookups)
    used = sorted((x for x in lookups if x.quality is not None), key=lambda x: -(x.quality or 0.0))
    wrong = np.array([not x.right for x in used], dtype=float)
    quality = np.array([x.quality for x in used], dtype=float)
    # The last place of each run of equal qualities: a cut takes all of them.
    ends = np.flatnonzero(np.append(quality[1:] != quality[:-1], True))
    honest = wrong.cumsum()[ends] / (ends + 1)
    gaps: list[float] = []
    block = max(1, _BLOCK_CELLS // total)
    for start in range(0, resamples, block):
        size = min(block, resamples - start)
        weights = rng.multinomial(total, np.full(total, 1 / total), size=size)[:, : len(used)]
        n = weights.cumsum(axis=1)[:, ends].astype(float)
        errors = (weights * wrong).cumsum(axis=1)[:, ends]
        kept = (n > 0) & (_wilson_upper(errors, n) <= budget)
        for row in np.flatnonzero(kept.any(axis=1)):
            place = len(ends) - 1 - int(np.argmax(kept[row, ::-1]))
            gaps.append(float(honest[place] - errors[row, place] / n[row, place]))
    apparent = chosen.cut.error_rate.value
    if not gaps or apparent is None:
        return None
    mean = float(np.mean(gaps))
    expected = min(1.0, max(0.0, apparent + mean))
    return Optimism(expected, mean, resamples, 1 - len(gaps) / resamples)


def _wilson_upper(errors: Floats, n: Floats) -> Floats:
    """The upper end of :func:`wilson` for whole arrays; 1 where n is 0."""
    safe = np.maximum(n, 1.0)
    share = errors / safe
    square = Z_95 * Z_95
    half = Z_95 * np.sqrt(share * (1 - share) / safe + square / (4 * safe * safe))
    upper = (share + square / (2 * safe) + half) / (1 + square / safe)
    return np.where((n <= 0) | (errors >= n), 1.0, np.minimum(1.0, upper))
