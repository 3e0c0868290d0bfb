"""Retrieval over one cut of the corpus: exact dense search, BM25, and their fusion by RRF.

Pure functions and two small indexes. Nothing here knows thresholds, levels or events.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import bm25s
import numpy as np
import numpy.typing as npt

from lookup_audit.deploy.demo.corpus import Chunk
from lookup_audit.deploy.demo.embedding import Matrix, Vector

# The library reports each step at DEBUG through a handler of its own.
logging.getLogger("bm25s").setLevel(logging.WARNING)

RRF_K = 60


@dataclass(frozen=True, slots=True)
class Hit:
    """A chunk found by one route, with that route's score (an L2 distance or a BM25 score)."""

    position: int
    score: float


@dataclass(frozen=True, slots=True)
class RouteResult:
    """What one route found, best first, and how long it took."""

    name: str
    hits: tuple[Hit, ...]
    latency_ms: float


@dataclass(frozen=True, slots=True)
class Ranked:
    """A chunk in the final order; a score is None where that route did not find it."""

    position: int
    original_rank: int
    dense_distance: float | None
    rrf_score: float | None
    keyword_rank: int | None


class DenseIndex:
    """Exact L2 search over unit vectors."""

    def __init__(self, vectors: Matrix) -> None:
        # float64: the auditor recomputes from the stored distance, and float32 sums would differ
        # in the seventh digit from one BLAS build to the next.
        self._vectors = vectors.astype(np.float64)

    def search(self, query: Vector, limit: int, allowed: npt.NDArray[np.bool_]) -> list[Hit]:
        """The nearest allowed chunks; equal distances in corpus order."""
        distances = np.sqrt(((self._vectors - query.astype(np.float64)) ** 2).sum(axis=1))
        order = np.argsort(distances, kind="stable")
        chosen = [int(position) for position in order if allowed[position]][:limit]
        return [Hit(position, float(distances[position])) for position in chosen]


class KeywordIndex:
    """BM25 over the chunks' words."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._index = bm25s.BM25()
        self._index.index(_words(texts), show_progress=False)

    def search(self, query: str, limit: int, allowed: npt.NDArray[np.bool_]) -> list[Hit]:
        """The best allowed chunks that share at least one word with the query."""
        words = _words([query])[0]
        if not words:
            return []
        scores = np.asarray(self._index.get_scores(words), dtype=np.float64)
        order = np.argsort(-scores, kind="stable")
        chosen = [int(p) for p in order if allowed[p] and scores[p] > 0.0][:limit]
        return [Hit(position, float(scores[position])) for position in chosen]


def _words(texts: Sequence[str]) -> list[list[str]]:
    words: list[list[str]] = bm25s.tokenize(
        list(texts), stopwords="en", return_ids=False, show_progress=False
    )
    return words


def timed_route(
    name: str, search: Callable[[], list[Hit]], clock: Callable[[], float] = time.perf_counter
) -> RouteResult:
    """Run one route and note its latency."""
    start = clock()
    hits = search()
    return RouteResult(name, tuple(hits), round((clock() - start) * 1000, 3))


def rank_dense(dense: Sequence[Hit]) -> list[Ranked]:
    """The order of a purely dense lookup: by distance."""
    return [
        Ranked(hit.position, rank, hit.score, None, None) for rank, hit in enumerate(dense, start=1)
    ]


def fuse(dense: Sequence[Hit], keyword: Sequence[Hit], *, k: int = RRF_K) -> list[Ranked]:
    """Reciprocal rank fusion: each route gives 1 / (k + rank).

    >>> [r.position for r in fuse([Hit(7, 0.4), Hit(3, 0.6)], [Hit(3, 9.0), Hit(5, 2.0)])]
    [3, 7, 5]
    """
    distance = {hit.position: hit.score for hit in dense}
    keyword_rank = {hit.position: rank for rank, hit in enumerate(keyword, start=1)}
    fused: dict[int, float] = {}
    for route in (dense, keyword):
        for rank, hit in enumerate(route, start=1):
            fused[hit.position] = fused.get(hit.position, 0.0) + 1.0 / (k + rank)
    # Where the routes share nothing near the top their first hits tie exactly. The word match
    # goes first: readers ask for column names and reason codes, which vectors blur. On the gold
    # set it is right a little more often than the other way round, and rarely either way.
    last = len(fused) + 1
    order = sorted(fused, key=lambda p: (-fused[p], keyword_rank.get(p, last), p))
    return [
        Ranked(position, rank, distance.get(position), fused[position], keyword_rank.get(position))
        for rank, position in enumerate(order, start=1)
    ]


def category_mask(chunks: Sequence[Chunk], category: str | None) -> npt.NDArray[np.bool_]:
    """Which chunks a category filter lets through; all of them without one."""
    return np.array([category is None or c.page.category == category for c in chunks], dtype=bool)
