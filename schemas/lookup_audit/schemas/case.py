"""One lookup laid out for the checks: what every rule needs, worked out once."""

from lookup_audit.schemas import quality
from lookup_audit.schemas.layer import layer_of
from lookup_audit.schemas.level import best_candidate, is_kept
from lookup_audit.schemas.names import Layer, QualityBasis
from lookup_audit.schemas.records import Candidate, LookupResult
from lookup_audit.schemas.ruleset import Registry, Ruleset, stated_ruleset

# Why a candidate has no recomputed quality, where there is no ruleset to compute it by.
NO_THRESHOLDS = "no_thresholds"

Quality = tuple[float, QualityBasis] | str


class LookupCase:
    """A lookup with the ruleset in force and everything recomputed per candidate.

    Args:
        record: The lookup.
        registry: Which rulesets should be in force.
        unknown_fields: Paths of fields the schema does not know.

    Attributes:
        registered: The registry's ruleset for this lookup, or ``None``.
        stated: The ruleset the event states of itself, or ``None``.
        ruleset: The one to recompute by: registered, else stated.
        kept: Candidates that survived, in the event's order.
        best: The kept candidate that decides the level, or ``None``.
        best_quality: Its quality or the reason for none; ``None`` without a best candidate.
        qualities: Per candidate of the event, its quality or the reason for none.
        layers: Per candidate of the event, its recomputed layer or ``None``.
    """

    __slots__ = (
        "best",
        "best_quality",
        "kept",
        "layers",
        "qualities",
        "record",
        "registered",
        "registry",
        "ruleset",
        "stated",
        "unknown_fields",
    )

    def __init__(
        self, record: LookupResult, registry: Registry, unknown_fields: tuple[str, ...] = ()
    ):
        self.record = record
        self.registry = registry
        self.unknown_fields = unknown_fields
        service = record.service.name if record.service is not None else None
        self.registered = registry.in_force(service or "", record.mode, record.occurred_at)
        self.stated = stated_ruleset(record.thresholds) if record.thresholds is not None else None
        self.ruleset = self.registered or self.stated
        candidates = record.candidates
        self.kept = [c for c in candidates if is_kept(c)]
        self.best: Candidate | None = best_candidate(self.kept)
        self.qualities: list[Quality]
        self.layers: list[Layer | None]
        ruleset = self.ruleset
        if ruleset is None:
            self.qualities = [NO_THRESHOLDS] * len(candidates)
            self.layers = [None] * len(candidates)
        else:
            mode, count = record.mode, len(candidates)
            of = quality.candidate_quality
            self.qualities = [of(c, mode, count, ruleset) for c in candidates]
            self.layers = [layer_of(c.similarity_score, c.source_url, ruleset) for c in candidates]
        self.best_quality: Quality | None = None
        for candidate, value in zip(candidates, self.qualities, strict=True):
            if candidate is self.best:
                self.best_quality = value
                break

    def quality_under(self, candidate: Candidate, ruleset: Ruleset) -> Quality:
        """The candidate's quality if another ruleset were in force."""
        record = self.record
        return quality.candidate_quality(candidate, record.mode, len(record.candidates), ruleset)
