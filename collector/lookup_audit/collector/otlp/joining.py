"""Traces whose spans come in several exports: held for a short while, then let go as they are.

Children end before their parents, so a batch often holds a retrieval without the tool call above
it. Such a trace waits here, bounded in time and bytes. What has been acknowledged is on disk too
(:mod:`lookup_audit.collector.otlp.spool`); without a disk nothing waits.
"""

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from lookup_audit.collector.otlp.evaluations import tells_answer
from lookup_audit.collector.otlp.grouping import Trace
from lookup_audit.collector.otlp.mapping import Past
from lookup_audit.collector.otlp.spans import Span

# Remembered of published traces, so that what comes late makes no second lookup: about 100 bytes a
# span id.
MAX_PAST_SPANS: Final = 200_000
# Of a span that is no part of a retrieval, only these are of use to one below it.
_CONTEXT: Final = (
    "openinference.span.kind",
    "gen_ai.operation.name",
    "gen_ai.conversation.id",
    "metadata",
    "session.id",
)


@dataclass(slots=True)
class Held:
    """A trace that waits.

    Args:
        since: When its first span came, in seconds of a steady clock.
        spans: By span id.
        size: Bytes, about.
        leaving: It is being published.
    """

    since: float
    spans: dict[str, Span] = field(default_factory=dict)
    size: int = 0
    leaving: bool = False


@dataclass(slots=True)
class Taken:
    """What became of the spans of one request.

    Args:
        ready: Traces to publish now, with everything seen of them.
        held: Spans of this request that wait, by trace.
        uninteresting: Spans of traces without any part of a retrieval.
    """

    ready: dict[str, list[Span]] = field(default_factory=dict)
    held: dict[str, list[Span]] = field(default_factory=dict)
    uninteresting: int = 0


class Joiner:
    """Holds incomplete traces; used from the event loop only.

    Args:
        join_seconds: Longest time a trace waits; 0 holds nothing.
        max_bytes: Most bytes of waiting spans; beyond, traces are let go as they are.
    """

    def __init__(self, *, join_seconds: float, max_bytes: int):
        self._join_seconds = join_seconds
        self._max_bytes = max_bytes
        self._held: dict[str, Held] = {}
        self._bytes = 0
        self._past: OrderedDict[str, Past] = OrderedDict()
        self._past_spans = 0
        self._traces_of_file: dict[str, set[str]] = {}
        self._files_of_trace: dict[str, set[str]] = {}

    @property
    def spans(self) -> int:
        """Spans that wait now."""
        return sum(len(held.spans) for held in self._held.values())

    @property
    def bytes(self) -> int:
        """Bytes of the spans that wait, about."""
        return self._bytes

    def take(self, spans: Iterable[Span], now: float) -> Taken:
        """Sort a request's spans into what can be published and what has to wait."""
        taken = Taken()
        by_trace: dict[str, list[Span]] = {}
        for span in spans:
            by_trace.setdefault(span.trace_id, []).append(span)
        for trace_id, new in by_trace.items():
            held = self._held.get(trace_id)
            if held is None and trace_id not in self._past and not _is_interesting(new):
                taken.uninteresting += len(new)
                continue
            known = list(held.spans.values()) if held is not None else []
            merged = [*known, *new]
            if self._join_seconds > 0 and not _is_complete(merged):
                waiting = [prune(span) for span in new]
                size = sum(map(size_of, waiting))
                if self._bytes + size <= self._max_bytes:
                    self._hold(trace_id, waiting, size, now)
                    taken.held[trace_id] = waiting
                    continue
            taken.ready[trace_id] = merged
            if held is not None:
                held.leaving = True
        return taken

    def restore(self, spans: Iterable[Span], file: str, now: float) -> None:
        """Hold again what a spool file kept over a restart."""
        by_trace: dict[str, list[Span]] = {}
        for span in spans:
            by_trace.setdefault(span.trace_id, []).append(span)
        for trace_id, found in by_trace.items():
            self._hold(trace_id, found, sum(map(size_of, found)), now)
        self.note_file(by_trace, file)

    def note_file(self, trace_ids: Iterable[str], file: str) -> None:
        """Remember which spool file holds parts of these traces."""
        for trace_id in trace_ids:
            if trace_id in self._held:
                self._traces_of_file.setdefault(file, set()).add(trace_id)
                self._files_of_trace.setdefault(trace_id, set()).add(file)

    def due(self, now: float) -> dict[str, list[Span]]:
        """Traces that have waited long enough; each is named once until it is put back."""
        found = {}
        for trace_id, held in self._held.items():
            if not held.leaving and now - held.since >= self._join_seconds:
                held.leaving = True
                found[trace_id] = list(held.spans.values())
        return found

    def past(self, trace_id: str) -> Past:
        """What was published of a trace."""
        return self._past.get(trace_id) or Past()

    def done(self, trace_id: str, past: Past, spans: Sequence[Span]) -> set[str]:
        """A trace is published; returns the spool files that no waiting trace needs any more."""
        before = self._past.pop(trace_id, None)
        self._past_spans -= len(before.span_ids) if before else 0
        if past.span_ids:
            self._past[trace_id] = past
            self._past_spans += len(past.span_ids)
        while self._past_spans > MAX_PAST_SPANS and self._past:
            _, oldest = self._past.popitem(last=False)
            self._past_spans -= len(oldest.span_ids)
        held = self._held.get(trace_id)
        if held is None:
            return set()
        for span in spans:
            if held.spans.pop(span.span_id, None) is not None and not held.spans:
                break
        self._bytes -= held.size
        held.size = sum(map(size_of, held.spans.values()))
        self._bytes += held.size
        held.leaving = False
        if held.spans:
            # More of it came while it was being published.
            return set()
        del self._held[trace_id]
        return self._release_files(trace_id)

    def _release_files(self, trace_id: str) -> set[str]:
        free = set()
        for file in self._files_of_trace.pop(trace_id, ()):
            traces = self._traces_of_file[file]
            traces.discard(trace_id)
            if not traces:
                del self._traces_of_file[file]
                free.add(file)
        return free

    def put_back(self, trace_ids: Iterable[str]) -> None:
        """Publishing failed: the traces wait on."""
        for trace_id in trace_ids:
            if trace_id in self._held:
                self._held[trace_id].leaving = False

    def flush(self) -> None:
        """From now on everything is due at once."""
        self._join_seconds = 0.0

    def _hold(self, trace_id: str, spans: Sequence[Span], size: int, now: float) -> None:
        held = self._held.setdefault(trace_id, Held(now))
        for span in spans:
            if span.span_id not in held.spans:
                held.spans[span.span_id] = span
        self._bytes += size
        held.size += size


def _is_interesting(spans: Sequence[Span]) -> bool:
    trace = Trace.of(spans)
    if any(role in ("retriever", "reranker", "embedding") for role, _ in trace.roles.values()):
        return True
    return any(tells_answer(span) or _tells_evaluation(span) for span in spans)


def _tells_evaluation(span: Span) -> bool:
    return bool(span.events) or any(
        ".annotation." in key or ".evaluation." in key for key in span.attributes
    )


def _is_complete(spans: Sequence[Span]) -> bool:
    """Whether every part of a retrieval has been seen up to its root."""
    trace = Trace.of(spans)
    return not any(
        trace.missing_parent(span)
        for span_id, span in trace.spans.items()
        if trace.role(span_id) in ("retriever", "reranker", "embedding")
    )


def prune(span: Span) -> Span:
    """Leave of a span that is no part of a retrieval only what one below it needs."""
    role, _ = Trace.of([span]).roles[span.span_id]
    if role != "other":
        return span
    kept = {
        key: value
        for key, value in span.attributes.items()
        if key in _CONTEXT
        or key.startswith(("lookup_audit.", "traceloop.association.properties."))
        or ".annotation." in key
        or ".evaluation." in key
    }
    return Span(
        span.trace_id,
        span.span_id,
        span.parent_id,
        span.name,
        span.start_ns,
        span.end_ns,
        kept,
        span.source,
        links=span.links,
        events=[event for event in span.events if event.name.startswith("gen_ai.evaluation")],
    )


def size_of(span: Span) -> int:
    """About how many bytes a span holds."""
    size = 400
    for key, value in span.attributes.items():
        size += len(key) + (len(value) if isinstance(value, str) else 64)
    for event in span.events:
        size += 100 + sum(len(str(value)) for value in event.attributes.values())
    return size
