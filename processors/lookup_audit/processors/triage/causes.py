"""What may have caused a rise: each factor compared, errors with non-errors and day with baseline.

Pure: it takes counted rows of one stratum and gives ranked causes. A factor is called a clear cause
only if it survives Holm's correction over all comparisons that could be made at all, and points
the harmful way.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from lookup_audit.processors.statistics.multiple import holm
from lookup_audit.processors.triage.exact import (
    Interval,
    Values,
    fisher,
    mean_difference,
    permutation_p,
    share_difference,
)

Kind = Literal["errors", "refusals"]
Contrast = Literal["outcome", "day"]
Row = dict[str, Any]

ALPHA = 0.05


@dataclass(frozen=True, slots=True)
class Factor:
    """Something that may make answers wrong or refused.

    Args:
        name: Column of ``factors.sql``.
        title: In words; a share or a mean of it is shown.
        measure: ``share`` of 0/1 values, ``mean``, or ``version``: the share of lookups with
            another value than the baseline's most common one.
        harmful: 1 where more is worse, -1 where less is worse, 0 where either may be.
        errors: Place in the order in which to look when errors rise; ``None``: not looked at.
        refusals: The same for refusals.
        day_only: Only the day against the baseline tells: refused lookups score lower on any day.
    """

    name: str
    title: str
    measure: Literal["share", "mean", "version"]
    harmful: int
    errors: int | None
    refusals: int | None
    day_only: bool = False

    def place(self, kind: Kind) -> int | None:
        """Place in the order of looking; several factors share one."""
        return self.errors if kind == "errors" else self.refusals


# The order is that in which to look: freshness and filters before thresholds where errors rise,
# thresholds and missing fields first where refusals do.
FACTORS = (
    Factor("age_days", "age of the oldest document used, days", "mean", 1, 0, None),
    Factor("old_version", "rests on an old document version", "share", 1, 0, None),
    Factor("category_filter", "category filter used", "share", 0, 0, None),
    Factor("unfiltered_retry", "evidence from an unfiltered retry", "share", 1, 0, None),
    Factor("missing_link", "a chunk without source_url", "share", 1, 1, 0),
    Factor("missing_version", "a chunk without document_version", "share", 1, None, 1),
    Factor("rank_fallback", "quality by rank fallback", "share", 1, 1, 2),
    Factor("quality", "quality_score", "mean", -1, None, 2, day_only=True),
    Factor("index_version", "another index version", "version", 0, 2, 2, day_only=True),
    Factor("chunker_version", "another chunker version", "version", 0, 2, 2, day_only=True),
    Factor("reranker_version", "another reranker version", "version", 0, 2, 2, day_only=True),
    Factor("answer_model", "another answer model", "version", 0, 2, 2, day_only=True),
    Factor("judge", "another judge", "version", 0, 2, None, day_only=True),
    Factor("ruleset", "another ruleset (thresholds)", "version", 0, 3, 0, day_only=True),
    Factor("top_k", "top_k", "mean", 0, None, 3, day_only=True),
)


@dataclass(frozen=True, slots=True)
class Cause:
    """One factor in one comparison.

    Args:
        factor: Name of the factor.
        title: In words.
        contrast: ``outcome``: bad lookups of the day against its others. ``day``: all lookups of
            the day against those of the baseline.
        measure: ``share`` or ``mean``.
        value: Among the bad, or on the day; ``None`` over nothing.
        other: Among the others, or in the baseline.
        n: Lookups of known value behind ``value``.
        n_other: The same behind ``other``.
        effect: ``value - other``.
        interval: 95 % interval of the effect.
        p: Exact or permutation p-value, two-sided; ``None`` where nothing could be compared.
        adjusted_p: After Holm's correction over all that could be compared.
        is_clear: Survives the correction and points the harmful way.
        note: What the values were, or why nothing could be compared.
    """

    factor: str
    title: str
    contrast: Contrast
    measure: Literal["share", "mean"]
    value: float | None = None
    other: float | None = None
    n: int = 0
    n_other: int = 0
    effect: float | None = None
    interval: Interval | None = None
    p: float | None = None
    adjusted_p: float | None = None
    is_clear: bool = False
    note: str = ""


def weigh_causes(
    rows: Sequence[Row], kind: Kind, *, has_baseline: bool = True, resamples: int = 9999
) -> list[Cause]:
    """Compare every factor, correct for their number, and rank.

    Clear causes come first, in the order in which to look at them, then by p-value; what could not
    be compared comes last.

    Args:
        rows: Rows of ``factors.sql`` of one stratum.
        kind: What rose.
        has_baseline: Whether to compare the day with the baseline as well.
        resamples: Draws of a permutation test.
    """
    found: list[tuple[int, Factor, Cause]] = []
    for factor in FACTORS:
        place = factor.place(kind)
        if place is None:
            continue
        contrasts: list[Contrast] = [] if factor.day_only else ["outcome"]
        contrasts += ["day"] if has_baseline else []
        for contrast in contrasts:
            found.append((place, factor, _compare(rows, factor, contrast, resamples)))
    adjusted = holm([cause.p for _, _, cause in found])
    ranked = []
    for (place, factor, cause), value in zip(found, adjusted, strict=True):
        if value is not None:
            harm = (cause.effect or 0.0) * factor.harmful
            is_clear = value <= ALPHA and (factor.harmful == 0 or harm > 0)
            cause = replace(cause, adjusted_p=value, is_clear=is_clear)
        ranked.append((place, cause))
    return [cause for _, cause in sorted(ranked, key=_rank)]


def _rank(placed: tuple[int, Cause]) -> tuple[object, ...]:
    place, cause = placed
    p = 2.0 if cause.p is None else cause.p
    return (not cause.is_clear, cause.p is None, place if cause.is_clear else 0, p, place)


def _compare(rows: Sequence[Row], factor: Factor, contrast: Contrast, resamples: int) -> Cause:
    is_first: Callable[[Row], bool] = _on_day if contrast == "day" else _is_bad
    known = [
        row for row in rows if row[factor.name] is not None and (contrast == "day" or _on_day(row))
    ]
    first = [row for row in known if is_first(row)]
    second = [row for row in known if not is_first(row)]
    measure: Literal["share", "mean"] = "mean" if factor.measure == "mean" else "share"
    cause = Cause(
        factor.name, factor.title, contrast, measure, n=_size(first), n_other=_size(second)
    )
    if not known:
        return replace(cause, note="unknown")
    if not first or not second:
        return replace(cause, note="n is too small: nothing on one side")
    if measure == "mean":
        return _compare_means(cause, _values(first, factor), _values(second, factor), resamples)
    usual = _most_common(second, factor) if factor.measure == "version" else None
    counts = [_found(side, factor, usual) for side in (first, second)]
    cause = _with_shares(cause, counts[0], counts[1])
    if usual is not None and counts[0]:
        unusual = [row for row in first if row[factor.name] != usual]
        return replace(
            cause, note=f"{usual or 'none'} -> {_most_common(unusual, factor) or 'none'}"
        )
    return cause


def _with_shares(cause: Cause, found: int, others_found: int) -> Cause:
    n, others = cause.n, cause.n_other
    varies = 0 < found + others_found < n + others
    value, other = found / n, others_found / others
    return replace(
        cause,
        value=value,
        other=other,
        effect=value - other,
        interval=share_difference(found, n, others_found, others),
        p=fisher(found, n, others_found, others) if varies else None,
        note="" if varies else "the same everywhere",
    )


def _compare_means(cause: Cause, values: Values, others: Values, resamples: int) -> Cause:
    varies = bool(np.ptp(np.concatenate([values, others])) > 0)
    value, other = float(values.mean()), float(others.mean())
    return replace(
        cause,
        value=value,
        other=other,
        effect=value - other,
        interval=mean_difference(values, others),
        p=permutation_p(values, others, resamples=resamples) if varies else None,
        note="" if varies else "the same everywhere",
    )


def _on_day(row: Row) -> bool:
    return bool(row["on_day"])


def _is_bad(row: Row) -> bool:
    return bool(row["bad"])


def _size(rows: Sequence[Row]) -> int:
    return sum(row["n"] for row in rows)


def _found(rows: Sequence[Row], factor: Factor, usual: str | None) -> int:
    if usual is None:
        return sum(row["n"] for row in rows if row[factor.name])
    return sum(row["n"] for row in rows if row[factor.name] != usual)


def _values(rows: Sequence[Row], factor: Factor) -> Values:
    return np.repeat(
        np.array([row[factor.name] for row in rows], dtype=np.float64), [row["n"] for row in rows]
    )


def _most_common(rows: Sequence[Row], factor: Factor) -> str:
    counted: Counter[str] = Counter()
    for row in rows:
        counted[row[factor.name]] += row["n"]
    return max(counted, key=lambda value: (counted[value], value))
