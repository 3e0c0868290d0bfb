"""relevance_level: the coarse label of a whole call, from the quality of its best candidate.

Thresholds are inclusive and compared in IEEE double without tolerance, here, in SQL and in every
dashboard.
"""

import re
from collections.abc import Iterable

from lookup_audit.schemas.names import NO_LEVEL, Level
from lookup_audit.schemas.records import Candidate
from lookup_audit.schemas.ruleset import Ruleset

# What the services call a hit of the domain or keyword list (level 0 of their index).
_IS_L0 = re.compile(r"l0:").match


def level_of(quality: float | None, has_l0_hit: bool, ruleset: Ruleset) -> Level:
    """The level under the ruleset's rule; no usable evidence (``None``) gives ``NONE``.

    >>> level_of(0.75, False, Ruleset())
    'PRECISE'
    >>> level_of(0.75, False, Ruleset(rule="l0-hint/1"))
    'HIGHLY_RELEVANT'
    >>> level_of(0.5, False, Ruleset())
    'REFERENCE'
    """
    if quality is None:
        return NO_LEVEL
    if quality >= ruleset.highly_relevant_threshold:
        return "HIGHLY_RELEVANT" if ruleset.rule == "l0-hint/1" and not has_l0_hit else "PRECISE"
    return "REFERENCE" if quality >= ruleset.reference_threshold else NO_LEVEL


def has_l0_hit(candidate: Candidate) -> bool:
    """Whether the candidate was found through a domain or keyword hit."""
    reasons = candidate.hit_reasons
    return bool(reasons) and any(map(_IS_L0, reasons or ()))


def is_kept(candidate: Candidate) -> bool:
    """Whether the candidate survived; one that does not say so counts as kept."""
    if candidate.kept is None:
        return not candidate.drop_reason
    return candidate.kept


def best_candidate(kept: Iterable[Candidate]) -> Candidate | None:
    """The kept candidate with the smallest ``original_rank``, the first of equals.

    A single candidate is the best one even where its rank is unknown; of several, one with an
    unknown rank could be any, so there is none to name.
    """
    candidates = list(kept)
    if len(candidates) == 1:
        return candidates[0]
    best: Candidate | None = None
    best_rank = 0
    for candidate in candidates:
        rank = candidate.original_rank
        if rank is None:
            return None
        if best is None or rank < best_rank:
            best, best_rank = candidate, rank
    return best
