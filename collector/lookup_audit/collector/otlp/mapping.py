"""The spans of one trace into events, each span ending up in exactly one count.

What was published of the trace before is passed in: a parent or reranker that comes after its
lookup changes nothing any more, and must not make a second one.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from lookup_audit.collector.otlp.evaluations import (
    Evaluation,
    make_judgement,
    make_outcome,
    of_span,
    tells_answer,
)
from lookup_audit.collector.otlp.grouping import Retrieval, Trace, find_retrievals
from lookup_audit.collector.otlp.lookup import lookup_id, make_lookup
from lookup_audit.collector.otlp.spans import Span
from lookup_audit.schemas.names import EventType

NATIVE_EVENT = "lookup_audit.event.id"


@dataclass(slots=True)
class Past:
    """What was published of a trace.

    Args:
        span_ids: Spans that went into events.
        awaited: Parents that had not come.
        lookup_ids: Its lookups.
    """

    span_ids: set[str] = field(default_factory=set)
    awaited: set[str] = field(default_factory=set)
    lookup_ids: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Mapped:
    """What the spans of one trace came to.

    Args:
        events: Events with the number of spans in each.
        used: How many spans went into events.
        ignored: How many did not, by reason.
        past: The trace's past once the events are published.
    """

    events: list[tuple[EventType, dict[str, Any], int]] = field(default_factory=list)
    used: int = 0
    ignored: Counter[str] = field(default_factory=Counter)
    past: Past = field(default_factory=Past)


def map_trace(spans: Iterable[Span], past: Past) -> Mapped:
    """Map what has been seen of a trace; pure, and the same for the same spans and past."""
    trace = Trace.of(spans)
    mapped = Mapped(
        past=Past(set(past.span_ids), set(past.awaited), list(past.lookup_ids)),
    )
    counted: dict[str, str] = {}
    for retrieval in find_retrievals(trace):
        reason = _objection(trace, retrieval, past)
        for span_id in retrieval.span_ids:
            counted[span_id] = reason
        mapped.past.span_ids |= retrieval.span_ids
        if retrieval.missing_parent:
            mapped.past.awaited.add(retrieval.missing_parent)
        if not reason:
            mapped.past.lookup_ids.append(lookup_id(retrieval))
            event = make_lookup(retrieval)
            mapped.events.append((EventType.LOOKUP, event, len(retrieval.span_ids)))
    for span_id, span in trace.spans.items():
        if span_id in mapped.past.awaited and span.parent_id:
            mapped.past.awaited.add(span.parent_id)
    _add_answers(trace, mapped, counted)
    for span_id in trace.spans:
        role = trace.role(span_id)
        default = "not_retrieval" if role == "other" else f"{role}_without_retrieval"
        reason = counted.get(span_id, "duplicate" if span_id in past.span_ids else default)
        if reason:
            mapped.ignored[reason] += 1
        else:
            mapped.used += 1
    return mapped


def map_evaluations(evaluations: Iterable[Evaluation], mapped: Mapped) -> set[str]:
    """Add the Judgements of evaluations; returns the spans that told them."""
    tellers = set()
    for evaluation in evaluations:
        judgement = make_judgement(evaluation)
        if isinstance(judgement, str):
            mapped.ignored[judgement] += 1
        else:
            mapped.events.append((EventType.JUDGEMENT, judgement, 1))
            tellers.add(evaluation.span_id)
    return tellers


def _objection(trace: Trace, retrieval: Retrieval, past: Past) -> str:
    """Why a retrieval makes no event of its own, or ``""``."""
    span = retrieval.top.span
    if span.span_id in past.span_ids:
        return "duplicate"
    tellers = [trace.spans[key] for key in retrieval.span_ids]
    if any(NATIVE_EVENT in teller.attributes for teller in tellers):
        return "native_event"
    if past.lookup_ids:
        if span.span_id in past.awaited or not past.awaited.isdisjoint(retrieval.span_ids):
            return "late_parent"
        above = {span.parent_id, *(a.span_id for a in retrieval.ancestors)}
        if not above.isdisjoint(past.span_ids):
            return "late_child"
        if retrieval.reranker is retrieval.top:
            return "late_reranker"
    return ""


def _add_answers(trace: Trace, mapped: Mapped, counted: dict[str, str]) -> None:
    spans = list(trace.spans.values())
    tellers = [span for span in spans if tells_answer(span)]
    if tellers and mapped.past.lookup_ids:
        outcome = make_outcome(tellers, mapped.past.lookup_ids)
        if outcome is not None:
            mapped.events.append((EventType.OUTCOME, outcome, 1))
            counted.setdefault(tellers[-1].span_id, "")
    for span in spans:
        found = list(of_span(span))
        if found and map_evaluations(found, mapped):
            counted.setdefault(span.span_id, "")
