"""The common lookup, audited in one pass: nothing is missing, nothing deviates.

The full rule book looks at each candidate once a rule. Most events pass every check, and for them
one pass over the candidates says the same. Whatever is unusual is left to the full rules, whose
word is final: this module only ever answers "everything passes", or nothing
(``tests/unit/schemas/test_plain.py`` compares both).
"""

from collections.abc import Sequence
from typing import NamedTuple

from lookup_audit.schemas.checks import (
    TOLERANCE,
    disagreement,
    ruleset_finding,
)
from lookup_audit.schemas.layer import layer_of
from lookup_audit.schemas.level import has_l0_hit, level_of
from lookup_audit.schemas.names import NO_LEVEL, Layer, Level, QualityBasis
from lookup_audit.schemas.quality import MAX_UNIT_L2, could_be_squared, rank_quality
from lookup_audit.schemas.records import Candidate, LookupResult, Projection
from lookup_audit.schemas.ruleset import Registry, Ruleset, stated_ruleset
from lookup_audit.schemas.selection import budget_finding, citation
from lookup_audit.schemas.timeliness import is_storable_time


class Plain(NamedTuple):
    """What the full rules would find of a lookup whose every check passes.

    Only the ruleset check may have something to say: without a registry it cannot be verified.
    """

    stated: Ruleset | None
    ruleset: Ruleset
    ruleset_reason: str | None
    level: Level
    quality: float
    basis: QualityBasis
    qualities: list[float | None]
    layers: list[Layer | None]


def plain(record: LookupResult, registry: Registry) -> Plain | None:
    """Audit a lookup in one pass, or leave it to the full rules (``None``)."""
    service = record.service.name if record.service is not None else None
    registered = registry.in_force(service or "", record.mode, record.occurred_at)
    stated = stated_ruleset(record.thresholds) if record.thresholds is not None else None
    ruleset = registered or stated
    if ruleset is None or ruleset.distance_metric != "l2" or record.degradations:
        return None
    about_ruleset = ruleset_finding(record.thresholds, registered, stated)
    if about_ruleset is not None and (about_ruleset.status == "fail" or about_ruleset.where):
        return None
    found = _candidates(record, ruleset)
    if found is None:
        return None
    kept, qualities, layers, best, quality, basis = found
    level = level_of(quality, has_l0_hit(best), ruleset)
    top = record.quality_score
    if (
        level != (record.relevance_level or NO_LEVEL)
        or (top is not None and abs(top - quality) > TOLERANCE)
        or not _is_shown(record, kept)
        or not _is_selected(record, kept)
        or not _is_reranked(record, kept)
    ):
        return None
    reason = about_ruleset.reason if about_ruleset is not None else None
    return Plain(stated, ruleset, reason, level, quality, basis, qualities, layers)


_Found = tuple[
    dict[str, tuple[Candidate, Layer]],
    list[float | None],
    list[Layer | None],
    Candidate,
    float,
    QualityBasis,
]


def _candidates(record: LookupResult, ruleset: Ruleset) -> _Found | None:
    """Kept candidates by chunk and what is recomputed of all, if all are in order."""
    mode, candidates = record.mode, record.candidates
    if mode != "dense" and mode != "hybrid":
        return None
    near: QualityBasis = "dense_l2" if mode == "dense" else "hybrid_l2"
    farthest = ruleset.max_l2_distance
    kept: dict[str, tuple[Candidate, Layer]] = {}
    dropped: set[str] = set()
    qualities: list[float | None] = []
    layers: list[Layer | None] = []
    first: tuple[Candidate, float, QualityBasis] | None = None
    last = 0
    for candidate in candidates:
        chunk, rank = candidate.chunk_id, candidate.original_rank
        similarity, reported = candidate.similarity_score, candidate.quality_score
        if chunk is None or rank is None or similarity is None:
            return None
        if chunk in kept or chunk in dropped:
            return None
        distance = candidate.dense_distance
        basis = near
        if distance is not None:
            if not 0.0 <= distance <= MAX_UNIT_L2 or could_be_squared(distance, similarity):
                return None
            quality = 1.0 - distance / farthest
            quality = 0.0 if quality < 0.0 else 1.0 if quality > 1.0 else quality
        elif mode == "hybrid":
            basis = "hybrid_rank"
            quality = rank_quality(rank, len(candidates), ruleset.rank_fallback)
        else:
            return None
        layer = layer_of(similarity, candidate.source_url, ruleset)
        updated = candidate.document_updated_at
        if layer is None or layer != candidate.layer:
            return None
        if updated is not None and not is_storable_time(updated):
            return None
        if candidate.kept or (candidate.kept is None and not candidate.drop_reason):
            if rank <= last or reported is None or abs(reported - quality) > TOLERANCE:
                return None
            last = rank
            kept[chunk] = candidate, layer
            if first is None:
                first = candidate, quality, basis
        else:
            dropped.add(chunk)
        qualities.append(quality)
        layers.append(layer)
    if first is None:
        return None
    return kept, qualities, layers, *first


_Kept = dict[str, tuple[Candidate, Layer]]


def _is_shown(record: LookupResult, kept: _Kept) -> bool:
    """Whether evidence and projection pass: what the agent saw is what the event says."""
    seen = record.projection
    if seen is None or not seen.evidence or record.evidence_status != "EVIDENCE_FOUND":
        return False
    count = len(seen.evidence)
    if record.returned_count != count or seen.returned_count not in (None, count):
        return False
    return disagreement(record, seen) is None and _is_cited(seen, kept)


def _is_cited(seen: Projection, kept: _Kept) -> bool:
    for item in seen.evidence or ():
        found = kept.get(item.document_id or "")
        if found is None:
            return False
        excerpt, text = item.excerpt, found[0].excerpt
        if excerpt is not None and (text is None or excerpt not in text):
            return False
    return True


def _is_selected(record: LookupResult, kept: _Kept) -> bool:
    chunks: Sequence[str] | None = record.selected_chunk_ids
    if chunks is None:
        return False
    seen: set[object] = set()
    selected: list[Candidate] = []
    for chunk in chunks:
        found = kept.get(chunk)
        if found is None or found[1] == "low":
            return False
        source = citation(found[0])
        if chunk in seen or source in seen:
            return False
        seen.add(chunk)
        if source is not None:
            seen.add(source)
        selected.append(found[0])
    return budget_finding(record.context_budget, selected) is None


def _is_reranked(record: LookupResult, kept: _Kept) -> bool:
    trace = record.rerank_trace
    if trace is None or trace.moves is None:
        return True
    return {move.chunk_id for move in trace.moves} == kept.keys() and len(trace.moves) == len(kept)
