"""One lookup of the demo's knowledge base: from a request to the full event and its projection.

The order of work is that of the field: routes, fusion, de-duplication, truncation to ``top_k``,
confidence layers, selection within the context budget, then one level for the whole call. What
is dropped on the way stays in the event with the reason.

The bundle ``BASELINE`` (service 1.9.4) carries one bug on purpose, of a kind common in the
field: its unfiltered retry still computes the level with the thresholds that were in force
before the current ones (``stale_retry_thresholds``). The event reports the current thresholds
all the same, as the service believes that it uses them. Only lookups that retried without the
category filter, and whose quality lies between an old and a new threshold, are affected: about
three in a hundred.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lookup_audit.deploy.demo.corpus import Chunk
from lookup_audit.deploy.demo.embedding import MiniLm, Vector, shortened, stack
from lookup_audit.deploy.demo.scoring import (
    CURRENT,
    PREVIOUS,
    Thresholds,
    candidate_quality,
    cosine,
    layer,
    relevance_level,
)
from lookup_audit.deploy.demo.search import (
    DenseIndex,
    KeywordIndex,
    Ranked,
    RouteResult,
    category_mask,
    fuse,
    rank_dense,
    timed_route,
)

ROUTE_DEPTH = 8
CONTEXT_BUDGET_TOKENS = 420


@dataclass(frozen=True, slots=True)
class Bundle:
    """One deployed model version: model, dimensions, chunker and the service that runs them."""

    model_version: str
    chunker: str
    dimensions: int
    service_version: str
    index: str
    stale_retry_thresholds: Thresholds | None = None


# The full vectors, over chunks that follow the headings and carry them.
CANDIDATE = Bundle(
    model_version="minilm-l6-int8@384",
    chunker="sections-180@2",
    dimensions=384,
    service_version="2.0.1",
    index="handbook-sections",
)
# A sixth of the vectors' size, over blind windows. The model was not trained to be cut short, and a
# window loses the heading that says what it is about. Chosen as the weaker one among 24 pairs of
# cut and size that were tried, so the demo shows a known difference and is no benchmark of either:
# windows of 110 words with 96 dimensions, for one, missed no more often above 0.54.
BASELINE = Bundle(
    model_version="minilm-l6-int8@64",
    chunker="windows-60@1",
    dimensions=64,
    service_version="1.9.4",
    index="handbook-windows",
    stale_retry_thresholds=PREVIOUS,
)


@dataclass(frozen=True, slots=True)
class Query:
    """What a caller asks for."""

    text: str
    mode: str
    top_k: int
    category: str | None = None


@dataclass(frozen=True, slots=True)
class Candidate:
    """One retrieved chunk with its scores and what became of it."""

    chunk: Chunk
    ranked: Ranked
    quality: float
    similarity: float | None
    layer: str | None
    drop_reason: str | None
    selected: bool


@dataclass(frozen=True, slots=True)
class Found:
    """Everything one lookup found and decided, before it is written as an event."""

    query: Query
    routes: tuple[RouteResult, ...]
    unfiltered_retry: bool
    candidates: tuple[Candidate, ...]
    level: str | None

    @property
    def kept(self) -> list[Candidate]:
        """The candidates that survived de-duplication and truncation."""
        return [candidate for candidate in self.candidates if candidate.drop_reason is None]

    @property
    def selected(self) -> list[Candidate]:
        """The candidates given to the caller as evidence."""
        return [candidate for candidate in self.candidates if candidate.selected]

    @property
    def truncated(self) -> bool:
        """Whether a budget cut the list."""
        return any(c.drop_reason == "context_budget" for c in self.candidates)


class KnowledgeBase:
    """One bundle's index over the corpus, ready to be asked."""

    def __init__(
        self,
        bundle: Bundle,
        chunks: Sequence[Chunk],
        model: MiniLm,
        *,
        thresholds: Thresholds = CURRENT,
        budget_tokens: int = CONTEXT_BUDGET_TOKENS,
    ) -> None:
        self.bundle = bundle
        self.chunks = tuple(chunks)
        self.thresholds = thresholds
        self.budget_tokens = budget_tokens
        self._model = model
        self._dense = DenseIndex(stack([self.vector(c.indexed_text) for c in self.chunks]))
        self._keyword = KeywordIndex([c.indexed_text for c in self.chunks])

    def vector(self, text: str) -> Vector:
        """A text's unit vector in this bundle's dimensions."""
        return shortened(self._model.embed_once(text), self.bundle.dimensions)

    def look_up(self, query: Query) -> Found:
        """Answer a query, once more without the category filter if that gave too little."""
        found = self._attempt(query, query.category, self.thresholds, retried=False)
        best = found.kept[0].quality if found.kept else 0.0
        if query.category is None or best >= self.thresholds.reference_threshold:
            return found
        level_thresholds = self.bundle.stale_retry_thresholds or self.thresholds
        return self._attempt(query, None, level_thresholds, retried=True)

    def _attempt(
        self, query: Query, category: str | None, level_thresholds: Thresholds, *, retried: bool
    ) -> Found:
        allowed = category_mask(self.chunks, category)
        routes = [
            timed_route(
                "dense",
                lambda: self._dense.search(self.vector(query.text), ROUTE_DEPTH, allowed),
            )
        ]
        if query.mode == "hybrid":
            routes.append(
                timed_route(
                    "keyword", lambda: self._keyword.search(query.text, ROUTE_DEPTH, allowed)
                )
            )
            ranked = fuse(routes[0].hits, routes[1].hits)
        else:
            ranked = rank_dense(routes[0].hits)
        candidates = self._decide(ranked, query.top_k)
        kept = [c for c in candidates if c.drop_reason is None]
        usable = any(c.selected for c in candidates)
        quality = kept[0].quality if usable else None
        return Found(
            query=query,
            routes=tuple(routes),
            unfiltered_retry=retried,
            candidates=tuple(candidates),
            level=relevance_level(quality, level_thresholds),
        )

    def _decide(self, ranked: Sequence[Ranked], top_k: int) -> list[Candidate]:
        """De-duplicate, cut to ``top_k``, give layers, and select within the budget."""
        decided: list[Candidate] = []
        cited: set[tuple[str, str, str | None]] = set()
        kept = 0
        left_tokens = self.budget_tokens
        for entry in ranked:
            chunk = self.chunks[entry.position]
            distance = entry.dense_distance
            similarity = None if distance is None else cosine(distance)
            level = layer(similarity, chunk.source_url, self.thresholds)
            drop_reason = None
            if chunk.citation_key in cited:
                drop_reason = "duplicate"
            elif kept >= top_k:
                drop_reason = "top_k"
            elif level != "low" and chunk.tokens > left_tokens:
                drop_reason = "context_budget"
            selected = drop_reason is None and level != "low"
            if drop_reason is None:
                cited.add(chunk.citation_key)
                kept += 1
            if selected:
                left_tokens -= chunk.tokens
            decided.append(
                Candidate(
                    chunk=chunk,
                    ranked=entry,
                    quality=candidate_quality(distance, entry.original_rank, self.thresholds),
                    similarity=similarity,
                    layer=level,
                    drop_reason=drop_reason,
                    selected=selected,
                )
            )
        return decided
