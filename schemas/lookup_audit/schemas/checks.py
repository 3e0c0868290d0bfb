"""The checks on one lookup: each passes, fails, or cannot be verified and says why.

A check looks at the recorded numbers alone. It reports the first thing wrong it meets, with the
place in the event; a failure outweighs a missing input.
"""

import math
import re
from collections.abc import Callable
from functools import lru_cache

from lookup_audit.schemas.case import NO_THRESHOLDS, LookupCase
from lookup_audit.schemas.finding import Finding
from lookup_audit.schemas.finding import fail as _fail
from lookup_audit.schemas.finding import unverifiable as _unverifiable
from lookup_audit.schemas.level import has_l0_hit, is_kept, level_of
from lookup_audit.schemas.names import (
    NO_LEVEL,
    CheckName,
    Level,
    LevelMismatch,
    SourceDegradation,
)
from lookup_audit.schemas.quality import NO_RULE_FOR_MODE
from lookup_audit.schemas.records import (
    Candidate,
    LookupResult,
    Projection,
    Thresholds,
)
from lookup_audit.schemas.ruleset import Ruleset, stated_differences
from lookup_audit.schemas.selection import check_selection

TOLERANCE = 1e-6

# What stays inside the service, as a name without underscores in lower case.
_INTERNAL = re.compile(
    r"distance|rrf|threshold|score$|traces?$"
    r"|^(?:l2|cosine|topsimilarity|originalrank|hitreasons|layer|dropreason|routes|fusion"
    r"|candidates|evidenceblocks|contextbudget)$"
)


_REDACTED_EXCERPTS = frozenset(
    {"redacted:candidates.*.excerpt", "redacted:projection.evidence.*.excerpt"}
)


def recomputed_level(case: LookupCase) -> Level | Finding:
    """The level by the ruleset in force, or why it cannot be recomputed.

    Without a kept candidate it is ``NONE`` under every ruleset, known or not.
    """
    if case.record.mode not in ("dense", "hybrid"):
        return _unverifiable(NO_RULE_FOR_MODE)
    stated = case.record.degradations or ()
    if SourceDegradation.CANDIDATES_UNKNOWN in stated:
        return _unverifiable(SourceDegradation.CANDIDATES_UNKNOWN)
    if not case.kept:
        return NO_LEVEL
    if case.ruleset is None:
        return _unverifiable(NO_THRESHOLDS)
    quality = case.best_quality
    if quality is None or case.best is None:
        return _unverifiable("unknown_rank")
    if isinstance(quality, str):
        return _unverifiable(quality)
    if stated:
        # The best that arrived need not be the best there was.
        if SourceDegradation.DOCUMENTS_MISSING in stated and case.best.original_rank != 1:
            return _unverifiable(SourceDegradation.DOCUMENTS_MISSING)
        # A guessed mode is no ground for a rank to stand in for a distance.
        if SourceDegradation.MODE_INFERRED in stated and quality[1] == "hybrid_rank":
            return _unverifiable(SourceDegradation.MODE_INFERRED)
    return level_of(quality[0], has_l0_hit(case.best), case.ruleset)


def check_level(case: LookupCase) -> Finding | None:
    """Reported level against the recomputed one; a failure's reason is the mismatch class."""
    level = recomputed_level(case)
    if isinstance(level, Finding):
        return level
    reported = case.record.relevance_level or NO_LEVEL
    if case.record.relevance_level is None and (
        SourceDegradation.LEVEL_UNKNOWN in (case.record.degradations or ())
    ):
        return _unverifiable("level_not_reported")
    if reported == level:
        return None
    return _fail(_mismatch(case, reported))


def _mismatch(case: LookupCase, reported: Level) -> LevelMismatch:
    best, ruleset = case.best, case.ruleset
    if best is None or ruleset is None:
        return "level_without_evidence"
    quality = case.best_quality
    assert isinstance(quality, tuple), "only a recomputed level can mismatch"
    value, hit = quality[0], has_l0_hit(best)
    for threshold in (ruleset.highly_relevant_threshold, ruleset.reference_threshold):
        beyond = threshold if value < threshold else math.nextafter(threshold, -math.inf)
        if abs(value - threshold) <= TOLERANCE and level_of(beyond, hit, ruleset) == reported:
            return "rounding"
    legacy = ruleset.model_copy(update={"rule": "l0-hint/1"})
    known = case.registry.rulesets + ((case.stated,) if case.stated else ())
    for other in known:
        if other not in (ruleset, legacy):
            under = case.quality_under(best, other)
            if isinstance(under, tuple) and level_of(under[0], hit, other) == reported:
                return "stale_threshold"
    for candidate, under in zip(case.record.candidates, case.qualities, strict=True):
        if (
            candidate is not best
            and isinstance(under, tuple)
            and level_of(under[0], has_l0_hit(candidate), ruleset) == reported
        ):
            return "wrong_top"
    if level_of(value, hit, legacy) == reported:
        return "legacy_rule"
    return "rule"


def check_quality(case: LookupCase) -> Finding | None:
    """Every kept candidate's reported quality, and the call's own, against the recomputed."""
    missing: Finding | None = None
    for index, candidate in enumerate(case.record.candidates):
        reported = candidate.quality_score
        recomputed = case.qualities[index]
        if not isinstance(recomputed, str):
            if reported is None:
                if missing is None and is_kept(candidate):
                    missing = _unverifiable("no_reported_quality", f"candidates[{index}]")
            elif abs(reported - recomputed[0]) > TOLERANCE and is_kept(candidate):
                return _fail("quality_differs", f"candidates[{index}]")
        elif missing is None and is_kept(candidate):
            missing = _unverifiable(recomputed, f"candidates[{index}]")
    top, best = case.record.quality_score, case.best_quality
    if top is not None and isinstance(best, tuple) and abs(top - best[0]) > TOLERANCE:
        return _fail("quality_differs", "quality_score")
    return missing


def check_order(case: LookupCase) -> Finding | None:
    """Kept candidates unique by chunk and strictly increasing in rank; same chunks reranked."""
    seen: set[str] = set()
    last = 0
    missing: Finding | None = None
    for candidate in case.kept:
        rank, chunk = candidate.original_rank, candidate.chunk_id
        if chunk is None:
            missing = missing or _unverifiable("unidentified_candidate")
        elif chunk in seen:
            return _fail("duplicate_chunk", chunk)
        else:
            seen.add(chunk)
        if rank is None:
            missing = missing or _unverifiable("unknown_rank", chunk or "")
        elif rank <= last:
            return _fail("ranks_not_increasing", chunk or "")
        else:
            last = rank
    return _rerank_finding(case, seen) or missing


def _rerank_finding(case: LookupCase, kept: set[str]) -> Finding | None:
    trace = case.record.rerank_trace
    if trace is None or trace.moves is None:
        return None
    moved = {move.chunk_id for move in trace.moves}
    if None in moved:
        return _unverifiable("unidentified_move", "rerank_trace.moves")
    if len(moved) != len(trace.moves):
        return _fail("chunk_moved_twice", "rerank_trace.moves")
    if not kept <= moved:
        return _fail("kept_chunk_not_reranked", "rerank_trace.moves")
    if len(moved) > len(kept) and not moved <= {c.chunk_id for c in case.record.candidates}:
        return _fail("unknown_chunk_reranked", "rerank_trace.moves")
    return None


def has_rerank_mismatch(case: LookupCase) -> bool:
    """Whether the rerank trace moves other chunks, or ranks that belong to other chunks.

    The latter comes from an index into a de-duplicated list that is applied to the full one.
    """
    finding = _rerank_finding(case, {c.chunk_id for c in case.kept if c.chunk_id is not None})
    if finding is not None and finding.status == "fail":
        return True
    trace = case.record.rerank_trace
    ranks = {(c.chunk_id, c.original_rank) for c in case.record.candidates}
    return any(
        move.rank_before is not None and (move.chunk_id, move.rank_before) not in ranks
        for move in (trace.moves if trace is not None else None) or ()
    )


def check_ruleset(case: LookupCase) -> Finding | None:
    """The event's thresholds against the registry's, and both against sense."""
    return ruleset_finding(case.record.thresholds, case.registered, case.stated)


@lru_cache(maxsize=4096)
def ruleset_finding(
    thresholds: Thresholds | None, registered: Ruleset | None, stated: Ruleset | None
) -> Finding | None:
    """What is wrong with the thresholds an event states, given the registered ones."""
    for ruleset in (registered, stated):
        if ruleset and ruleset.reference_threshold > ruleset.highly_relevant_threshold:
            return _fail("reference_above_highly_relevant")
    if registered is None:
        return _unverifiable("no_registered_ruleset")
    if thresholds is None:
        return _unverifiable(NO_THRESHOLDS)
    differing = stated_differences(thresholds, registered)
    if differing:
        return _fail("differs_from_registry", f"thresholds.{differing[0]}")
    return _unverifiable(NO_THRESHOLDS) if stated is None else None


def check_evidence(case: LookupCase) -> Finding | None:
    """``evidence_status`` and ``returned_count`` against the evidence there is."""
    record = case.record
    projection = record.projection
    shown = projection.evidence if projection is not None else None
    returned = record.returned_count
    if shown is not None:
        count = len(shown)
        if returned is not None and returned != count:
            return _fail("returned_count_differs", "returned_count")
        if projection is not None and projection.returned_count not in (None, count):
            return _fail("returned_count_differs", "projection.returned_count")
    elif returned is not None and returned > len(case.kept):
        return _fail("returned_count_differs", "returned_count")
    elif record.selected_chunk_ids is not None:
        count = len(record.selected_chunk_ids)
    else:
        count = len(case.kept)
    status = record.evidence_status
    if status == "NO_EVIDENCE":
        if count:
            return _fail("no_evidence_with_evidence", "evidence_status")
        if (record.relevance_level or NO_LEVEL) != NO_LEVEL:
            return _fail("level_on_no_evidence", "relevance_level")
    elif status is None:
        return _unverifiable("no_evidence_status")
    elif not count:
        return _fail("evidence_found_without_evidence", "evidence_status")
    if returned is None:
        return _unverifiable("no_returned_count")
    return _unverifiable("no_projection") if shown is None else None


def check_projection(case: LookupCase) -> Finding | None:
    """What the agent saw against the event: same facts, real excerpts, no internals."""
    record = case.record
    projection = record.projection
    for path in case.unknown_fields:
        if path.startswith("projection.") and _is_internal(path):
            return _fail("leaks_internal", path)
    if projection is None:
        return _unverifiable("no_projection")
    return disagreement(case.record, projection) or _evidence_finding(case, projection)


def _is_internal(path: str) -> bool:
    name = path.rsplit(".", 1)[-1].split("[", 1)[0]
    return _INTERNAL.search(name.replace("_", "").replace("-", "").lower()) is not None


def disagreement(record: LookupResult, seen: Projection) -> Finding | None:
    """What a projection says otherwise than its event."""
    if (seen.relevance_level or NO_LEVEL) != (record.relevance_level or NO_LEVEL):
        return _fail("disagrees", "projection.relevance_level")
    for name, mine, theirs in (
        ("evidence_status", record.evidence_status, seen.evidence_status),
        ("returned_count", record.returned_count, seen.returned_count),
        ("truncated", record.truncated, seen.truncated),
        ("tool_call_id", record.tool_call_id, seen.tool_call_id),
        ("query", record.query.text if record.query is not None else None, seen.query),
        ("completeness_hint", record.completeness_hint, seen.completeness_hint),
    ):
        if mine is not None and theirs is not None and mine != theirs:
            return _fail("disagrees", f"projection.{name}")
    return None


def _evidence_finding(case: LookupCase, seen: Projection) -> Finding | None:
    if seen.evidence is None:
        return _unverifiable("no_projected_evidence", "projection.evidence")
    missing: Finding | None = None
    # Two texts that were redacted need not contain one another any more.
    hidden = not _REDACTED_EXCERPTS.isdisjoint(case.record.degradations or ())
    for index, item in enumerate(seen.evidence):
        where = f"projection.evidence[{index}]"
        cited = item.document_id
        if cited is None:
            missing = missing or _unverifiable("unidentified_evidence", where)
            continue
        chunks = _cited(case.kept, cited)
        if not chunks:
            known = _cited(case.record.candidates, cited)
            return _fail("dropped_evidence" if known else "unknown_evidence", where)
        excerpt = item.excerpt
        texts = [chunk.excerpt for chunk in chunks]
        if excerpt is None or any(text is not None and excerpt in text for text in texts):
            continue
        if None not in texts and not hidden:
            return _fail("excerpt_not_in_chunk", where)
        missing = missing or _unverifiable("no_chunk_text", where)
    return missing


def _cited(candidates: list[Candidate], cited: str) -> list[Candidate]:
    """What an evidence item may cite: the chunk of that id, else any chunk of that document."""
    chunks = [candidate for candidate in candidates if candidate.chunk_id == cited]
    return chunks or [candidate for candidate in candidates if candidate.document_id == cited]


def check_layer(case: LookupCase) -> Finding | None:
    """Every candidate's reported confidence layer against the recomputed one."""
    if case.ruleset is None:
        return _unverifiable(NO_THRESHOLDS)
    missing: Finding | None = None
    for index, candidate in enumerate(case.record.candidates):
        reported, recomputed = candidate.layer, case.layers[index]
        if recomputed is None:
            missing = missing or _unverifiable("no_similarity", f"candidates[{index}]")
        elif reported is None:
            missing = missing or _unverifiable("no_reported_layer", f"candidates[{index}]")
        elif reported != recomputed:
            return _fail("layer_differs", f"candidates[{index}]")
    return missing


CHECK_FUNCTIONS: dict[CheckName, Callable[[LookupCase], Finding | None]] = {
    "level": check_level,
    "quality": check_quality,
    "order": check_order,
    "ruleset": check_ruleset,
    "evidence": check_evidence,
    "projection": check_projection,
    "selection": check_selection,
    "layer": check_layer,
}
