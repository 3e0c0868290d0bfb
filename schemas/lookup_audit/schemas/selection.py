"""The check of what was selected for the context: chunks that may stand there, within budget."""

from lookup_audit.schemas.case import LookupCase
from lookup_audit.schemas.finding import Finding, fail, unverifiable
from lookup_audit.schemas.level import is_kept
from lookup_audit.schemas.records import Candidate, ContextBudget


def check_selection(case: LookupCase) -> Finding | None:
    """Selected chunks are known, kept, not of layer low, not duplicates, and within budget."""
    record = case.record
    if record.selected_chunk_ids is None:
        return unverifiable("no_selection")
    by_chunk: dict[str, int] = {}
    for index, candidate in enumerate(record.candidates):
        if candidate.chunk_id is not None:
            # Of a chunk listed twice, the copy that was kept is the one selected.
            other = by_chunk.setdefault(candidate.chunk_id, index)
            if other != index and is_kept(candidate) and not is_kept(record.candidates[other]):
                by_chunk[candidate.chunk_id] = index
    seen: set[object] = set()
    missing: Finding | None = None
    selected: list[Candidate] = []
    for chunk in record.selected_chunk_ids:
        found = by_chunk.get(chunk)
        if found is None:
            return fail("unknown_chunk", chunk)
        candidate = record.candidates[found]
        if not is_kept(candidate):
            return fail("dropped_chunk", chunk)
        layer = case.layers[found]
        if layer == "low" or (layer is None and candidate.layer == "low"):
            return fail("low_layer", chunk)
        if layer is None:
            missing = missing or unverifiable("unknown_layer", chunk)
        source = citation(candidate)
        if chunk in seen or source in seen:
            return fail("duplicate", chunk)
        seen.add(chunk)
        if source is not None:
            seen.add(source)
        selected.append(candidate)
    budget = budget_finding(record.context_budget, selected)
    return budget if budget is not None and budget.status == "fail" else missing or budget


def citation(candidate: Candidate) -> tuple[str | None, ...] | None:
    """What a reader is pointed to: two chunks with the same one say the same thing twice."""
    if candidate.document_id is None or not (candidate.source_url or candidate.breadcrumb):
        return None
    # Empty text and none mean the same: unknown.
    return (
        candidate.document_id,
        candidate.document_version or None,
        candidate.source_url or None,
        candidate.breadcrumb or None,
    )


def budget_finding(budget: ContextBudget | None, selected: list[Candidate]) -> Finding | None:
    """Whether what was selected fits the context budget."""
    if not selected:
        return None
    if budget is None or budget.limit_tokens is None:
        return unverifiable("no_budget")
    tokens = [candidate.tokens for candidate in selected]
    at_least = max(sum(filter(None, tokens)), budget.used_tokens or 0)
    if at_least > budget.limit_tokens:
        return fail("over_budget", "context_budget")
    if None in tokens and budget.used_tokens is None:
        return unverifiable("no_tokens")
    return None
