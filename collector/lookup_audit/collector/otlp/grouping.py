"""The spans of one trace into retrievals: nested, composite and doubly instrumented ones once.

A retrieval is its outermost retriever span, whatever retrievers run inside it, the reranker that
worked on its documents, the embedding of its query and the tool that called it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from lookup_audit.collector.otlp.dialects import read_span
from lookup_audit.collector.otlp.reading import Reading
from lookup_audit.collector.otlp.roles import Role, classify
from lookup_audit.collector.otlp.spans import Span
from lookup_audit.schemas.names import SOURCE_FORMATS, SourceFormat

# A trace deeper than this is a loop or an attack.
_MAX_DEPTH: Final = 1_000
_RICHEST: Final = {
    name: rank
    for rank, name in enumerate(
        ("otlp/openinference", "otlp/genai", "otlp/openllmetry", "otlp/vector-db")
    )
}


@dataclass(slots=True)
class Trace:
    """The spans of one trace that have been seen, with their parts."""

    spans: Mapping[str, Span]
    roles: Mapping[str, tuple[Role, SourceFormat]]

    @classmethod
    def of(cls, spans: Iterable[Span]) -> "Trace":
        """Lay out spans; of two with one id the first counts."""
        by_id: dict[str, Span] = {}
        for span in spans:
            by_id.setdefault(span.span_id, span)
        return cls(by_id, {key: classify(span) for key, span in by_id.items()})

    def role(self, span_id: str) -> Role:
        """What part a span plays."""
        return self.roles[span_id][0]

    def ancestors(self, span: Span) -> Iterator[Span]:
        """The seen spans above one, the nearest first; a loop ends it."""
        seen = {span.span_id}
        parent = self.spans.get(span.parent_id)
        while parent is not None and parent.span_id not in seen and len(seen) < _MAX_DEPTH:
            yield parent
            seen.add(parent.span_id)
            parent = self.spans.get(parent.parent_id)

    def missing_parent(self, span: Span) -> str:
        """Id of the first ancestor that has not been seen, or ``""`` below a seen root."""
        top = [span, *self.ancestors(span)][-1]
        return "" if top.parent_id in self.spans else top.parent_id


@dataclass(slots=True)
class Retrieval:
    """One lookup's spans.

    Args:
        top: The outermost retriever, or a reranker whose retriever was not seen.
        children: Retrievers directly inside it, by start.
        twins: Other tellings of the same retrieval: another instrumentation, an inner call.
        reranker: The reranker that came last on its documents.
        embedding: The embedding of its query.
        tool: The tool that called it.
        span_ids: Every span that went into it.
        missing_parent: Id of an ancestor that was not seen, or ``""``.
    """

    top: Reading
    children: list[Reading] = field(default_factory=list)
    twins: list[Reading] = field(default_factory=list)
    reranker: Reading | None = None
    embedding: Reading | None = None
    tool: Span | None = None
    ancestors: list[Span] = field(default_factory=list)
    span_ids: set[str] = field(default_factory=set)
    missing_parent: str = ""

    @property
    def end_ns(self) -> int:
        """When the retriever was done."""
        return self.top.span.end_ns


def find_retrievals(trace: Trace) -> list[Retrieval]:
    """Every retrieval of a trace, in the order of their starts."""
    readings = {
        key: read_span(trace.spans[key], role, dialect)
        for key, (role, dialect) in trace.roles.items()
        if role in ("retriever", "reranker", "embedding")
    }
    retrievers = [r for k, r in readings.items() if trace.role(k) == "retriever"]
    outer = {r.span.span_id: _outer(trace, r.span) for r in retrievers}
    tops = sorted((r for r in retrievers if not outer[r.span.span_id]), key=_start)
    found: list[Retrieval] = []
    for reading in tops:
        twin = next((f for f in found if _same_call(f.top, reading)), None)
        if twin is None:
            found.append(Retrieval(reading, span_ids={reading.span.span_id}))
        else:
            _add_twin(twin, reading)
    by_top = {key: f for f in found for key in f.span_ids}
    for reading in sorted(retrievers, key=_start):
        holder = by_top.get(outer[reading.span.span_id])
        if holder is not None:
            _add_inner(trace, holder, reading)
    rerankers = sorted(
        (r for k, r in readings.items() if trace.role(k) == "reranker"), key=lambda r: _start(r)
    )
    for reading in rerankers:
        _attach_reranker(trace, found, reading)
    embeddings = [r for k, r in readings.items() if trace.role(k) == "embedding"]
    for retrieval in found:
        _add_surroundings(trace, retrieval, embeddings)
    return sorted(found, key=lambda f: (f.top.span.start_ns, f.top.span.span_id))


def _start(reading: Reading) -> tuple[int, str]:
    return reading.span.start_ns, reading.span.span_id


def _outer(trace: Trace, span: Span) -> str:
    """The outermost retriever above a span, or ``""``."""
    outermost = ""
    for ancestor in trace.ancestors(span):
        if trace.role(ancestor.span_id) == "retriever":
            outermost = ancestor.span_id
    return outermost


def _same_call(one: Reading, other: Reading) -> bool:
    """Whether two instrumentations told of one call: same parent and query, at the same time."""
    if one.span.source.scope == other.span.source.scope:
        return False
    if one.span.parent_id != other.span.parent_id:
        return False
    overlaps = one.span.start_ns < other.span.end_ns and other.span.start_ns < one.span.end_ns
    return overlaps and (one.query is None or other.query is None or one.query == other.query)


def _add_twin(retrieval: Retrieval, reading: Reading) -> None:
    """Keep the richer telling as the top one."""
    if _rank(reading) < _rank(retrieval.top):
        reading, retrieval.top = retrieval.top, reading
    retrieval.twins.append(reading)
    retrieval.span_ids |= {reading.span.span_id, retrieval.top.span.span_id}


def _rank(reading: Reading) -> tuple[bool, int]:
    return reading.documents is None, _RICHEST.get(reading.dialect, len(SOURCE_FORMATS))


def _add_inner(trace: Trace, retrieval: Retrieval, reading: Reading) -> None:
    """A retriever inside another: a twin, if it found the same or does not say; else a child."""
    retrieval.span_ids.add(reading.span.span_id)
    nearest = next(
        (a for a in trace.ancestors(reading.span) if trace.role(a.span_id) == "retriever"), None
    )
    top = retrieval.top
    is_twin = reading.documents is None or top.documents is None or _same_documents(reading, top)
    if is_twin:
        retrieval.twins.append(reading)
    elif nearest is not None and any(
        nearest.span_id == child.span.span_id for child in retrieval.children
    ):
        # What runs inside a child is the child's affair.
        return
    else:
        retrieval.children.append(reading)


def _same_documents(one: Reading, other: Reading) -> bool:
    mine, theirs = one.documents or [], other.documents or []
    return len(mine) == len(theirs) and all(
        (a.id == b.id if a.id and b.id else a.content == b.content)
        for a, b in zip(mine, theirs, strict=True)
    )


def _attach_reranker(trace: Trace, found: list[Retrieval], reading: Reading) -> None:
    """To the retrieval it runs in, else the last one before it whose documents it was given."""
    span = reading.span
    owner = _outer(trace, span)
    inside = next((f for f in found if owner and owner in f.span_ids), None)
    before = [f for f in found if f.reranker is not reading and f.end_ns <= span.end_ns]
    match = inside or next((f for f in reversed(before) if _fits(f, reading)), None)
    if match is None:
        found.append(Retrieval(reading, reranker=reading, span_ids={span.span_id}))
        return
    match.reranker = reading
    match.span_ids.add(span.span_id)


def _fits(retrieval: Retrieval, reading: Reading) -> bool:
    top = retrieval.top
    if retrieval.reranker is top:
        return False
    if top.query and reading.query and top.query != reading.query:
        return False
    given = {d.id or d.content for d in reading.inputs or reading.documents or []} - {None}
    known = {d.id or d.content for d in top.documents or []} - {None}
    if given and known:
        return not given.isdisjoint(known)
    return bool(top.query and top.query == reading.query)


def _add_surroundings(trace: Trace, retrieval: Retrieval, embeddings: Sequence[Reading]) -> None:
    top = retrieval.top.span
    retrieval.ancestors = list(trace.ancestors(top))
    retrieval.missing_parent = trace.missing_parent(top)
    retrieval.tool = next((a for a in retrieval.ancestors if trace.role(a.span_id) == "tool"), None)
    if retrieval.tool is not None:
        retrieval.span_ids.add(retrieval.tool.span_id)
    inside = [
        e
        for e in embeddings
        if any(a.span_id in retrieval.span_ids for a in trace.ancestors(e.span))
    ]
    beside = [
        e
        for e in embeddings
        if top.parent_id and e.span.parent_id == top.parent_id and e.span.start_ns <= top.start_ns
    ]
    for embedding in inside or beside[-1:]:
        retrieval.span_ids.add(embedding.span.span_id)
        best = retrieval.embedding
        if best is None or (embedding.query and not best.query):
            retrieval.embedding = embedding
