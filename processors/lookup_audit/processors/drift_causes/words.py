"""A split in plain words: one sentence first, whose figures add up as they are shown."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from lookup_audit.processors.drift_causes.split import REPORTING, REST, RULESET, Part, Split
from lookup_audit.processors.drift_causes.table import MIX_FIELDS, RANK, VERSION_FIELDS, Table

MIX: Final = ("mix",)


@dataclass(frozen=True, slots=True)
class Cause:
    """One cause as it is told.

    Args:
        kind: ``mix``, ``versions``, ``retry``, ``basis``, ``ruleset``, ``reporting`` or ``rest``.
        name: In words, such as ``index kb-2026-11``.
        detail: What moved, such as ``kb-2026-11 0 % -> 100 %``.
        part: Its part.
        members: Of traffic mix, the fields' own parts.
    """

    kind: str
    name: str
    detail: str
    part: Part
    members: tuple["Cause", ...] = ()


def causes(table: Table, found: Split) -> list[Cause]:
    """The parts by name, the largest first and the rest last; traffic mix as one."""
    members = tuple(
        Cause("mix", part.factor[0], _moved(table, part.factor[0]), part)
        for part in found.parts
        if part.factor[0] in MIX_FIELDS
    )
    told = [_cause(table, part) for part in found.parts if part.factor[0] not in MIX_FIELDS]
    if members:
        ranked = sorted(members, key=lambda m: -abs(m.part.change))
        detail = "; ".join(f"{m.name} {m.detail}" for m in ranked[:2])
        told.append(Cause("mix", "traffic mix", detail, found.mix, members))
    return sorted(told, key=lambda c: (c.kind == "rest", -abs(c.part.change), c.name))


def _cause(table: Table, part: Part) -> Cause:
    factor = part.factor
    if factor[0] in VERSION_FIELDS:
        names = [f"{field} {_gained(table, field)}" for field in factor]
        name = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
        if len(factor) > 1:
            name += " (never seen apart)"
        detail = "; ".join(f"{field} {_moved(table, field)}" for field in factor)
        return Cause("versions", name, detail, part)
    if factor[0] == "retry":
        return Cause("retry", _more_or_fewer(table, "retry", "yes", "unfiltered retries"),
                     _moved(table, "retry", "yes"), part)  # fmt: skip
    if factor[0] == "basis":
        return Cause("basis", _more_or_fewer(table, "basis", RANK, "rank-fallback lookups"),
                     _moved(table, "basis", RANK), part)  # fmt: skip
    if factor == (RULESET,):
        before, after = table.ruleset_shares(0), table.ruleset_shares(1)
        gained = _largest_gain(before, after)
        return Cause("ruleset", f"ruleset {gained}" if gained else "rulesets",
                     _shift(before, after, gained) if gained else "unknown", part)  # fmt: skip
    if factor == (REPORTING,):
        return Cause("reporting", "levels reported against the rule", "", part)
    assert factor == (REST,), factor
    return Cause("rest", "rest", "within strata", part)


def _gained(table: Table, field: str) -> str:
    return _largest_gain(table.shares(0, field), table.shares(1, field)) or "(unknown)"


def _largest_gain(before: dict[str, float], after: dict[str, float]) -> str:
    values = sorted({*before, *after})
    return max(values, key=lambda v: after.get(v, 0.0) - before.get(v, 0.0), default="")


def _moved(table: Table, field: str, value: str | None = None) -> str:
    before, after = table.shares(0, field), table.shares(1, field)
    if value is None:
        values = sorted({*before, *after})
        value = max(values, key=lambda v: abs(after.get(v, 0.0) - before.get(v, 0.0)))
    if field == "category" and not value:
        return _shift(before, after, value, unknown="no filter")
    return _shift(before, after, value)


def _shift(
    before: dict[str, float], after: dict[str, float], value: str, *, unknown: str = "(unknown)"
) -> str:
    return f"{value or unknown} {before.get(value, 0.0):.0%} -> {after.get(value, 0.0):.0%}"


def _more_or_fewer(table: Table, field: str, value: str, what: str) -> str:
    grows = table.shares(1, field).get(value, 0.0) >= table.shares(0, field).get(value, 0.0)
    return f"{'more' if grows else 'fewer'} {what}"


def sentence(found: Split, told: Sequence[Cause]) -> str:
    """The split in one sentence, in points; the figures shown add up to the change shown."""
    shown = rounded([cause.part.change for cause in told])
    total = _points(round(found.change.change * 1000))
    named = [
        f"{_points(tenths)} from {cause.name}"
        for cause, tenths in zip(told, shown, strict=True)
        if tenths and cause.kind != "rest"
    ]
    rest = next(
        (tenths for cause, tenths in zip(told, shown, strict=True) if cause.kind == "rest"), 0
    )
    return f"of {total} points: {', '.join(named) or 'nothing from any named cause'}; rest " + (
        _points(rest)
    )


def rounded(changes: Sequence[float]) -> list[int]:
    """Tenths of a point that add up to the rounded sum: largest remainders get what is left.

    >>> rounded([0.00149, 0.00149, 0.00149])
    [2, 1, 1]
    """
    exact = [change * 1000 for change in changes]
    floors = [math.floor(value) for value in exact]
    missing = round(math.fsum(exact)) - sum(floors)
    order = sorted(range(len(exact)), key=lambda i: (floors[i] - exact[i], i))
    for i in order[:missing]:
        floors[i] += 1
    return floors


def _points(tenths: int) -> str:
    return f"{tenths / 10:+.1f}" if tenths else "0.0"
