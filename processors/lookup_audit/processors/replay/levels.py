"""What levels would have been: counts per model version and mode, and the lookups that flip."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from lookup_audit.processors.reading import Reader, rows
from lookup_audit.processors.replay.scope import UNVERIFIABLE, Scope, judged_sql
from lookup_audit.schemas.ruleset import Ruleset

_EXAMPLES = 3


@dataclass(frozen=True, slots=True)
class Move:
    """How many lookups of one stratum go from one level to another (or stay).

    Args:
        model_version: Model version.
        mode: Retrieval mode.
        was: Level by the ruleset that judged it then, or ``unverifiable``.
        becomes: Level by the ruleset replayed, or ``unverifiable``.
        lookups: How many.
        hashes: ``id_hash`` of a few of them where the level flips.
    """

    model_version: str
    mode: str
    was: str
    becomes: str
    lookups: int
    hashes: tuple[int, ...] = ()

    @property
    def is_flip(self) -> bool:
        """Whether the level changes."""
        return self.was != self.becomes


@dataclass(frozen=True, slots=True)
class Example:
    """One lookup that flips.

    Args:
        event_id: Its id.
        tenant: Its tenant.
        occurred_at: When, UTC.
        was: Level then.
        becomes: Level by the ruleset replayed.
        quality_was: Quality of its best candidate then, where known.
        quality: The same by the ruleset replayed.
    """

    event_id: str
    tenant: str
    occurred_at: str
    was: str
    becomes: str
    quality_was: float | None
    quality: float | None


# The smallest hashes: the same examples at every run, and neither the oldest nor the newest.
_MOVES = """
SELECT
    model_version, mode, was, becomes, count() AS lookups,
    groupArraySortedIf({examples:UInt8})(id_hash, was != becomes) AS hashes
FROM ({judged})
GROUP BY model_version, mode, was, becomes
ORDER BY model_version, mode, was, becomes
"""

_FLIPPED = """
SELECT id_hash, event_id, tenant, occurred_at, was, becomes, quality_was, quality
FROM ({judged})
WHERE id_hash IN ({hashes:Array(UInt64)})
ORDER BY id_hash
"""


def read_moves(reader: Reader, ruleset: Ruleset, scope: Scope) -> list[Move]:
    """Every lookup of the scope counted by stratum, level then and level under the ruleset."""
    sql = _MOVES.replace("{judged}", judged_sql()).replace("{examples:UInt8}", str(_EXAMPLES))
    return [
        Move(**row | {"hashes": tuple(row["hashes"])})
        for row in rows(reader, sql, scope.parameters(ruleset))
    ]


def read_examples(
    reader: Reader, ruleset: Ruleset, scope: Scope, moves: Iterable[Move]
) -> dict[int, Example]:
    """The lookups that moves name as examples, by ``id_hash``."""
    hashes = sorted({h for move in moves if move.is_flip for h in move.hashes})
    if not hashes:
        return {}
    parameters = scope.parameters(ruleset) | {"hashes": hashes}
    found = rows(reader, _FLIPPED.replace("{judged}", judged_sql()), parameters)
    return {row.pop("id_hash"): Example(**row) for row in found}


@dataclass(frozen=True, slots=True)
class LevelCounts:
    """One stratum's levels, then and under the ruleset replayed.

    Args:
        model_version: Model version.
        mode: Retrieval mode.
        lookups: All of the stratum.
        known_was: Those with a level then: what a rate then is over.
        known_becomes: Those with a level under the ruleset replayed.
        precise_was: ``PRECISE`` then.
        precise_becomes: ``PRECISE`` under the ruleset replayed.
        flips: Lookups whose level changes.
    """

    model_version: str
    mode: str
    lookups: int
    known_was: int
    known_becomes: int
    precise_was: int
    precise_becomes: int
    flips: int


def level_counts(moves: Sequence[Move]) -> list[LevelCounts]:
    """Moves summed per model version and mode, in their order; modes are never pooled."""
    strata = sorted({(m.model_version, m.mode) for m in moves})
    return [
        _counted(*key, [m for m in moves if (m.model_version, m.mode) == key]) for key in strata
    ]


def _counted(model_version: str, mode: str, moves: Sequence[Move]) -> LevelCounts:
    def total(**wanted: Any) -> int:
        return sum(
            m.lookups for m in moves if all(getattr(m, name) == v for name, v in wanted.items())
        )

    everything = total()
    return LevelCounts(
        model_version=model_version,
        mode=mode,
        lookups=everything,
        known_was=everything - total(was=UNVERIFIABLE),
        known_becomes=everything - total(becomes=UNVERIFIABLE),
        precise_was=total(was="PRECISE"),
        precise_becomes=total(becomes="PRECISE"),
        flips=total(is_flip=True),
    )
