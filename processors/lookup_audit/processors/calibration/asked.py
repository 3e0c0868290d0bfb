"""One lookup as calibration sees it: what was kept, in which order, and what became of it.

Quality and level are worked out by the rules of :mod:`lookup_audit.schemas`, so that they can be
had under any ruleset, the stored one or another.
"""

from dataclasses import dataclass

from lookup_audit.schemas.layer import layer_of
from lookup_audit.schemas.level import has_l0_hit, level_of
from lookup_audit.schemas.names import NO_LEVEL, Level, QualityBasis
from lookup_audit.schemas.quality import candidate_quality
from lookup_audit.schemas.records import Candidate
from lookup_audit.schemas.ruleset import Ruleset


@dataclass(frozen=True, slots=True)
class AnswerGiven:
    """What an agent did with a lookup: its newest outcome.

    Args:
        refused: It gave no answer.
        claims: Claims of the answer.
        supported_claims: Claims with a cited chunk that was selected and has a source_url.
    """

    refused: bool
    claims: int
    supported_claims: int

    @property
    def coverage(self) -> float | None:
        """Citation coverage; no value for a refusal or without claims."""
        return self.supported_claims / self.claims if self.claims and not self.refused else None


@dataclass(frozen=True, slots=True)
class Asked:
    """One lookup.

    Args:
        event_id: Its id.
        tenant: Whose it is.
        service: Name of the service, ``""`` if unknown.
        occurred_at: When; any text that sorts by time.
        mode: Retrieval mode.
        model_version: Retrieval model bundle.
        query_text: What was asked.
        top_k: As requested, ``None`` if unknown.
        ruleset: What its verdict was computed by, ``None`` if unknown.
        candidate_count: All candidates of the event.
        kept: The kept ones by rank, each chunk once.
        has_order: The best of the kept ones is known.
        selected: Chunks given to the caller; ``None`` if the event does not say.
        answer: Of the agent, ``None`` without an outcome.
    """

    event_id: str
    tenant: str
    service: str
    occurred_at: str
    mode: str
    model_version: str
    query_text: str
    top_k: int | None
    ruleset: Ruleset | None
    candidate_count: int
    kept: tuple[Candidate, ...]
    has_order: bool
    selected: tuple[str, ...] | None
    answer: AnswerGiven | None = None

    @property
    def given(self) -> tuple[str, ...]:
        """Chunks given to the caller: the selected ones, else, unsaid, all that were kept."""
        if self.selected is not None:
            return self.selected
        return tuple(c.chunk_id for c in self.kept if c.chunk_id is not None)

    @property
    def top(self) -> Candidate | None:
        """The kept candidate that decides the level, or none."""
        return self.kept[0] if self.kept and self.has_order else None

    def quality(self, ruleset: Ruleset | None = None) -> tuple[float, QualityBasis] | None:
        """Quality of the top candidate with its basis, under the lookup's own ruleset by default.

        None without evidence, and where an input is missing; :attr:`kept` tells which.
        """
        rules = ruleset or self.ruleset
        if self.top is None or rules is None:
            return None
        found = candidate_quality(self.top, self.mode, self.candidate_count, rules)
        return None if isinstance(found, str) else found

    def level(self, ruleset: Ruleset | None = None) -> Level | None:
        """The level of the whole call; ``None`` where it cannot be verified."""
        if self.mode not in ("dense", "hybrid"):
            return None
        if not self.kept:
            return NO_LEVEL
        rules, found, top = ruleset or self.ruleset, self.quality(ruleset), self.top
        if rules is None or found is None or top is None:
            return None
        return level_of(found[0], has_l0_hit(top), rules)

    def layer(self, candidate: Candidate, ruleset: Ruleset | None = None) -> str | None:
        """The confidence layer of one candidate, ``None`` where it cannot be verified."""
        rules = ruleset or self.ruleset
        if rules is None:
            return None
        return layer_of(candidate.similarity_score, candidate.source_url, rules)


def in_order(kept: list[Candidate]) -> tuple[tuple[Candidate, ...], bool]:
    """Kept candidates by rank, each chunk once, and whether the best one is known.

    One candidate without a rank, of several, could be the best.
    """
    has_order = len(kept) <= 1 or all(c.original_rank is not None for c in kept)
    ranked = sorted(kept, key=lambda c: c.original_rank or 0) if has_order else kept
    seen: set[str] = set()
    unique = []
    for candidate in ranked:
        if candidate.chunk_id is not None:
            if candidate.chunk_id in seen:
                continue
            seen.add(candidate.chunk_id)
        unique.append(candidate)
    return tuple(unique), has_order
