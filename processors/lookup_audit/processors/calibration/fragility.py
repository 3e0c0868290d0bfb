"""Fragility, without any gold set: how much of the labels hangs on the last digit of a threshold.

A threshold ranks where scores spread; where they all lie within a few hundredths it only switches:
moved by a hair, it turns the label of a large part of the traffic.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any

from lookup_audit.processors.calibration.rate import Rate
from lookup_audit.processors.calibration.stored import Scope
from lookup_audit.processors.reading import Reader, rows

SHIFT = 0.01
# Users of vector stores report whole corpora inside a band of this width.
NARROW_BAND = 0.06
# One move of 0.01 turns a tenth where scores spread evenly over a tenth of the scale.
MANY_FLIPS = 0.10
_FEW = 30
MOVES = ("high_up", "high_down", "low_up", "low_down")


@dataclass(frozen=True, slots=True)
class Fragility:
    """One model version, mode and basis.

    Args:
        model_version: Of all its lookups.
        mode: Of all its lookups.
        basis: Quality basis; ``""`` for lookups without a quality.
        lookups: All of them.
        scored: Those with a quality.
        band: Lowest, 5th percentile, 95th percentile and highest quality, or none.
        thresholds: Pairs of highly_relevant and reference in force, up to eight.
        shift: By how much a threshold is moved, up or down.
        precise: Lookups at or above highly_relevant.
        reference: Lookups between the two.
        high_up: Level changes if highly_relevant rises by the shift.
        high_down: … if it falls.
        low_up: … if reference rises.
        low_down: … if it falls.
        flips: Level changes under at least one of the four moves.
        switches: A threshold switches here rather than ranks; ``None`` where it cannot be said.
        sentence: The reading in words.
    """

    model_version: str
    mode: str
    basis: str
    lookups: int
    scored: int
    band: tuple[float, float, float, float] | None
    thresholds: tuple[tuple[float, float], ...]
    shift: float
    precise: Rate
    reference: Rate
    high_up: Rate
    high_down: Rate
    low_up: Rate
    low_down: Rate
    flips: Rate
    switches: bool | None
    sentence: str

    @property
    def width(self) -> float | None:
        """From the 5th to the 95th percentile."""
        return self.band[2] - self.band[1] if self.band else None


def fragility(reader: Reader, scope: Scope, *, shift: float = SHIFT) -> list[Fragility]:
    """Fragility of every model version, mode and basis, all counted in the store.

    Raises:
        QueryRefusedError: The tables are not there, or of another version.
        UnavailableError: Nothing answers.
    """
    sql = resources.files(__package__).joinpath("fragility.sql").read_text("utf-8")
    return read_rows(rows(reader, sql, {**scope.parameters(), "shift": shift}), shift)


def read_rows(found: Iterable[dict[str, Any]], shift: float) -> list[Fragility]:
    """Counted rows with their reading."""
    return [_read(row, shift) for row in found]


def _read(row: dict[str, Any], shift: float) -> Fragility:
    held = row["held"]
    names = ("precise", "reference", "flips", *MOVES)
    rates = {name: Rate(row[name], held) for name in names}
    band = None
    if row["scored"]:
        band = (row["lowest"], row["p5"], row["p95"], row["highest"])
    switches, sentence = _reading(row["basis"], band, rates, shift)
    return Fragility(
        model_version=row["model_version"],
        mode=row["mode"],
        basis=row["basis"],
        lookups=row["lookups"],
        scored=row["scored"],
        band=band,
        thresholds=tuple((high, low) for high, low in row["thresholds"]),
        shift=shift,
        switches=switches,
        sentence=sentence,
        **rates,
    )


def _reading(
    basis: str,
    band: tuple[float, float, float, float] | None,
    rates: Mapping[str, Rate],
    shift: float,
) -> tuple[bool | None, str]:
    if band is None:
        return None, "No quality score: there is nothing that a threshold could part."
    if basis == "hybrid_rank":
        return None, (
            "The score says the place in the round, not nearness: no threshold ranks these lookups."
        )
    width = band[2] - band[1]
    flips, precise = rates["flips"], rates["precise"]
    if flips.value is None:
        return None, f"Nine in ten scores lie within {width:.3f}; no thresholds are known."
    if flips.n < _FEW:
        return None, f"Only {flips.n} lookups: too few to tell switching from ranking."
    worst = max(rates[move].value or 0.0 for move in MOVES)
    figures = (
        f"nine in ten scores lie within {width:.3f}, {flips.value:.0%} of the levels hang on "
        f"{shift:g} of a threshold, and one such move turns up to {worst:.0%}"
    )
    if width <= NARROW_BAND or worst >= MANY_FLIPS:
        return True, f"A threshold switches here rather than ranks: {figures}."
    if precise.value in (0.0, 1.0):
        which = "every lookup" if precise.value else "no lookup"
        return True, f"A threshold ranks nothing here: {which} is PRECISE; {figures}."
    return False, f"A threshold ranks here: {figures}."
