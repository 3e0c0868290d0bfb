"""Reliability: does a higher quality score really mean more often right?

Only lookups of one model version, mode and basis stand in one table: a ``hybrid_rank`` score says
"first of this round" and shares no ruler with a distance.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from lookup_audit.processors.calibration.operating import Scored
from lookup_audit.processors.calibration.rate import Rate
from lookup_audit.processors.statistics.separation import trend_p

MOST_BINS = 8
LEAST_PER_BIN = 10
_ALPHA = 0.05


@dataclass(frozen=True, slots=True)
class Bin:
    """Lookups of neighbouring quality, and how many of them were right."""

    lowest: float
    highest: float
    right: Rate


@dataclass(frozen=True, slots=True)
class Reliability:
    """The table with its reading.

    Args:
        bins: In rising order of quality.
        never_falls: No bin is less often right than the one below it; ``None`` with one bin.
        trend_p: One-sided permutation p over the scores themselves, not the bins.
        sentence: The reading in words.
    """

    bins: tuple[Bin, ...]
    never_falls: bool | None
    trend_p: float | None
    sentence: str


def reliability(lookups: Sequence[Scored]) -> Reliability:
    """Bin lookups of one basis by quality, about equally many in each, equal scores together."""
    ranked = sorted((x.quality, x.right) for x in lookups if x.quality is not None)
    bins = tuple(_bins(ranked))
    shares = [b.right.value or 0.0 for b in bins]
    falls = [i for i in range(1, len(shares)) if shares[i] < shares[i - 1]]
    p = trend_p([q for q, _ in ranked], [right for _, right in ranked])
    never_falls = not falls if len(bins) > 1 else None
    return Reliability(bins, never_falls, p, _sentence(bins, len(falls), p))


def _bins(ranked: Sequence[tuple[float, bool]]) -> list[Bin]:
    count = max(1, min(MOST_BINS, len(ranked) // LEAST_PER_BIN))
    bins: list[Bin] = []
    start = 0
    for number in range(1, count + 1):
        end = max(start, round(number * len(ranked) / count))
        while 0 < end < len(ranked) and ranked[end][0] == ranked[end - 1][0]:
            end += 1
        if end > start:
            part = ranked[start:end]
            right = Rate(sum(is_right for _, is_right in part), len(part))
            bins.append(Bin(part[0][0], part[-1][0], right))
            start = end
    return bins


def _sentence(bins: Sequence[Bin], falls: int, p: float | None) -> str:
    if not bins:
        return "No lookup has a quality score."
    if len(bins) == 1:
        few = bins[0].lowest != bins[0].highest
        why = "too few lookups to bin" if few else "all lookups have the same score"
        return f"One bin only ({why}): nothing can be said about a trend."
    if p is None:
        return "All lookups are right, or none is: the score has nothing to tell apart."
    if p >= _ALPHA:
        return (
            f"A higher score does not reliably mean more often right (permutation p = {p:.3g}): "
            "chance alone would order the lookups as well."
        )
    if not falls:
        return f"Monotone: more often right in each higher bin (permutation p = {p:.2g})."
    times = "once" if falls == 1 else f"{falls} times"
    return (
        f"Right more often with a higher score on the whole (permutation p = {p:.2g}), but not "
        f"monotone: the share falls {times} from one bin to the next."
    )
