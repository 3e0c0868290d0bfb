"""Confidence layers against the gold set: what the two cut-offs of similarity let through.

Unit is the kept candidate. Candidates of one question hang together, so intervals are taken on the
effective number. ``high`` also needs a source_url, so only linked candidates count for it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from lookup_audit.processors.calibration.matching import Trial
from lookup_audit.processors.calibration.rate import Interval
from lookup_audit.processors.calibration.recommend import short_between
from lookup_audit.processors.statistics.clustered import clustered_wilson
from lookup_audit.processors.statistics.separation import auc, auc_interval, youden

# The share of supporting chunks that may fall below ``middle``.
LOST = 0.05


@dataclass(frozen=True, slots=True)
class Piece:
    """One kept candidate with a similarity.

    Args:
        question: Number of its question.
        similarity: Its cosine.
        linked: It has a source_url.
        supports: It is a supporting chunk.
    """

    question: int
    similarity: float
    linked: bool
    supports: bool


@dataclass(frozen=True, slots=True)
class LayerCut:
    """One cut-off: how many candidates reach it, how many of these support an answer.

    Args:
        similarity: The cut-off, inclusive.
        reached: Candidates at or above it.
        supporting: Of these, supporting chunks.
        all_supporting: Supporting chunks among all candidates.
        precision: supporting / reached, with its interval.
        recall: supporting / all_supporting, with its interval.
    """

    similarity: float
    reached: int
    supporting: int
    all_supporting: int
    precision: tuple[float | None, Interval | None]
    recall: tuple[float | None, Interval | None]


@dataclass(frozen=True, slots=True)
class LayerAdvice:
    """Cut-offs for the ruleset, or none where similarity does not tell supporting chunks apart."""

    middle: float
    high: float


def pieces(trials: Sequence[Trial]) -> list[Piece]:
    """Every kept candidate that has a similarity."""
    return [
        Piece(
            question=number,
            similarity=candidate.similarity_score,
            linked=bool(candidate.source_url),
            supports=candidate.chunk_id in trial.supporting,
        )
        for number, trial in enumerate(trials)
        for candidate in trial.asked.kept
        if candidate.similarity_score is not None
    ]


def layer_curve(
    candidates: Sequence[Piece],
    *,
    linked_only: bool,
    more_cuts: Sequence[float] = (),
    rows: int = 6,
) -> list[LayerCut]:
    """Cut-offs in rising order: an even spread of the similarities seen, and those asked for."""
    used = [c for c in candidates if c.linked or not linked_only]
    seen = sorted({c.similarity for c in used})
    last = len(seen) - 1
    spread = {seen[round(i * last / (rows - 1))] for i in range(rows)} if seen else set()
    return [_layer_cut(used, cut) for cut in sorted({*spread, *more_cuts})]


def _layer_cut(used: Sequence[Piece], cut: float) -> LayerCut:
    reached: dict[int, list[int]] = {}
    supporting: dict[int, list[int]] = {}
    for piece in used:
        above = piece.similarity >= cut
        if above:
            counts = reached.setdefault(piece.question, [0, 0])
            counts[0] += piece.supports
            counts[1] += 1
        if piece.supports:
            counts = supporting.setdefault(piece.question, [0, 0])
            counts[0] += above
            counts[1] += 1

    def share(counts: dict[int, list[int]]) -> tuple[float | None, Interval | None]:
        clusters = [(hits, n) for hits, n in counts.values()]
        total = sum(n for _, n in clusters)
        value = sum(hits for hits, _ in clusters) / total if total else None
        return value, clustered_wilson(clusters)

    return LayerCut(
        similarity=cut,
        reached=sum(n for _, n in reached.values()),
        supporting=sum(hits for hits, _ in reached.values()),
        all_supporting=sum(n for _, n in supporting.values()),
        precision=share(reached),
        recall=share(supporting),
    )


def layer_advice(candidates: Sequence[Piece], *, lost: float = LOST) -> LayerAdvice | None:
    """Cut-offs for the ruleset.

    ``middle`` is the highest that keeps all but the share ``lost`` of the supporting chunks, since
    a chunk below it may not be selected. ``high`` is the best by Youden's J among linked
    candidates, at or above ``middle``. None where the interval of the AUC reaches 0.5.
    """
    supporting = sorted(c.similarity for c in candidates if c.supports)
    others = [c.similarity for c in candidates if not c.supports]
    value = auc(supporting, others)
    if value is None or auc_interval(value, len(supporting), len(others))[0] <= 0.5:
        return None
    lowest_kept = supporting[min(len(supporting) - 1, int(lost * len(supporting)))]
    middle = _rounded(lowest_kept, candidates)
    linked = [c for c in candidates if c.linked and c.similarity >= middle]
    best = youden(
        [c.similarity for c in linked if c.supports],
        [c.similarity for c in linked if not c.supports],
    )
    high = max(middle, _rounded(best[0], candidates)) if best else middle
    return LayerAdvice(middle=middle, high=high)


def _rounded(cut: float, candidates: Sequence[Piece]) -> float:
    below = max((c.similarity for c in candidates if c.similarity < cut), default=cut - 0.01)
    return short_between(below, cut)
