r"""How likely each lookup of a day is drawn: strata, weights, and probabilities that only rise.

A stratum h of N_h lookups has the weight a_h = w_class \* max(floor, sqrt(N_h)), the power
allocation of Bankier (1988, The American Statistician 42:174) with exponent 1/2: a small stratum is
never without answers, a large one does not take all. Its lookups are drawn with probability
p_h = min(1, c \* a_h / N_h). The one constant c is solved so that the expected number drawn is the
size asked for. It grows with the size, hence so does every p_h, and a larger sample holds the
smaller.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, get_args

from lookup_audit.schemas.errors import ConfigError

LookupClass = Literal["mismatch", "near_threshold", "plain"]
CLASSES: Final[tuple[LookupClass, ...]] = get_args(LookupClass)
CLASS_WEIGHTS: Final[Mapping[str, float]] = {"mismatch": 3.0, "near_threshold": 2.0, "plain": 1.0}
# In lookups' square roots: a stratum of fewer than 9 lookups counts like one of 9.
WEIGHT_FLOOR: Final = 3.0
# How near a quality score is to a threshold of its ruleset to count as near, inclusive.
NEAR: Final = 0.02
DEFAULT_SIZE: Final = 200


@dataclass(frozen=True, slots=True, order=True)
class Stratum:
    """Lookups that are drawn alike.

    Args:
        mode: Modes are different rulers and never share a stratum.
        model_version: Of the retrieval model.
        level: As reported, ``NONE`` for null.
        lookup_class: ``mismatch`` where the level check fails, else ``near_threshold`` where the
            quality is within :data:`NEAR` of a threshold, else ``plain``.
    """

    mode: str
    model_version: str
    level: str
    lookup_class: str

    @property
    def parts(self) -> tuple[str, str, str, str]:
        """The four values in order."""
        return self.mode, self.model_version, self.level, self.lookup_class


@dataclass(frozen=True, slots=True)
class StratumPlan:
    """What is stored of one stratum.

    Args:
        population: Its lookups when it was planned.
        probability: Of each to be drawn, in (0, 1].
        size: The size that was asked for.
        scale: The constant c of that size.
    """

    population: int
    probability: float
    size: int
    scale: float


@dataclass(frozen=True, slots=True)
class DayPlan:
    """The rule of one tenant's day.

    Args:
        seed: Fixed by the first draw.
        size: The largest size asked for.
        scale: The constant c of that size, for strata seen later.
        strata: The rule in force for each.
        added: Those of ``strata`` that are not stored yet.
    """

    seed: str
    size: int
    scale: float
    strata: Mapping[Stratum, StratumPlan]
    added: frozenset[Stratum] = field(default=frozenset())


def weight(stratum: Stratum, population: int) -> float:
    """The allocation weight a_h.

    >>> weight(Stratum("dense", "m", "NONE", "near_threshold"), 100)
    20.0
    """
    return CLASS_WEIGHTS[stratum.lookup_class] * max(WEIGHT_FLOOR, math.sqrt(population))


def probability(stratum: Stratum, population: int, scale: float) -> float:
    """p_h = min(1, c * a_h / N_h)."""
    return min(1.0, scale * weight(stratum, population) / population)


def solve_scale(populations: Mapping[Stratum, int], size: int) -> float:
    """The constant c with which the expected number drawn is ``size``, or all there are.

    The expected number is sum(min(N_h, c * a_h)): strata are filled in the order in which they
    become exhausted, until the rest shares what is left in proportion to a_h.

    Args:
        populations: Lookups a stratum, each at least 1.
        size: At least 1.
    """
    ordered = sorted(
        (population / weight(stratum, population), population, weight(stratum, population))
        for stratum, population in populations.items()
    )
    rest = math.fsum(a for _, _, a in ordered)
    full = 0
    for exhausted_at, population, a in ordered:
        if full + exhausted_at * rest >= size:
            return (size - full) / rest
        full += population
        rest -= a
    return ordered[-1][0] if ordered else 0.0


def plan_day(
    populations: Mapping[Stratum, int],
    *,
    size: int | None,
    seed: str | None,
    default_seed: str,
    stored: DayPlan | None = None,
) -> DayPlan:
    """The rule for a day, given what was planned before.

    The first draw fixes the seed. A size not above the stored one keeps every stored probability;
    a stratum that was not there then gets the one that the stored constant c gives to its lookups
    of now. A larger size plans all strata anew and lowers no probability.

    Args:
        populations: Lookups a stratum now, each at least 1.
        size: Expected number to draw; ``None`` for the stored one or :data:`DEFAULT_SIZE`.
        seed: To be used, or ``None``.
        default_seed: Where neither a seed is given nor stored.
        stored: What was planned before.

    Raises:
        ConfigError: The size is not positive, or the day was drawn with another seed.
    """
    if size is not None and size < 1:
        raise ConfigError("the size of a sample must be at least 1")
    if stored is None:
        size = size or DEFAULT_SIZE
        scale = solve_scale(populations, size)
        strata = _planned(populations, size, scale)
        chosen = default_seed if seed is None else seed
        return DayPlan(chosen, size, scale, strata, frozenset(strata))
    if seed is not None and seed != stored.seed:
        raise ConfigError(
            f"this day was drawn with the seed {stored.seed!r} and keeps it; leave --seed out"
        )
    if size is None or size <= stored.size:
        unseen = {s: n for s, n in populations.items() if s not in stored.strata}
        added = _planned(unseen, stored.size, stored.scale)
        return DayPlan(
            stored.seed, stored.size, stored.scale, {**stored.strata, **added}, frozenset(added)
        )
    scale = solve_scale(populations, size)
    raised = {
        stratum: StratumPlan(
            new.population, max(new.probability, _before(stored, stratum)), size, scale
        )
        for stratum, new in _planned(populations, size, scale).items()
    }
    return DayPlan(stored.seed, size, scale, {**stored.strata, **raised}, frozenset(raised))


def _planned(
    populations: Mapping[Stratum, int], size: int, scale: float
) -> dict[Stratum, StratumPlan]:
    return {
        stratum: StratumPlan(population, probability(stratum, population, scale), size, scale)
        for stratum, population in populations.items()
    }


def _before(stored: DayPlan, stratum: Stratum) -> float:
    found = stored.strata.get(stratum)
    return found.probability if found else 0.0


def in_force(seed: str, rows: Iterable[tuple[Stratum, StratumPlan]]) -> DayPlan | None:
    """The rule that stored plan rows give: of each stratum the highest probability."""
    strata: dict[Stratum, StratumPlan] = {}
    largest: StratumPlan | None = None
    for stratum, one in rows:
        if stratum not in strata or one.probability > strata[stratum].probability:
            strata[stratum] = one
        if largest is None or one.size > largest.size:
            largest = one
    return DayPlan(seed, largest.size, largest.scale, strata) if largest else None
