from __future__ import annotations

import math
import random

import numpy as np
import pytest

from lookup_audit.deploy.demo.corpus import Chunk
from lookup_audit.deploy.demo.embedding import MiniLm, stack
from lookup_audit.deploy.demo.search import (
    DenseIndex,
    Hit,
    KeywordIndex,
    category_mask,
    fuse,
    rank_dense,
    timed_route,
)

ALL_THREE = np.array([True, True, True])


def test_dense_search_finds_exactly_what_brute_force_finds(
    model: MiniLm, sections: list[Chunk]
) -> None:
    vectors = [model.embed_once(chunk.indexed_text) for chunk in sections]
    query = model.embed("how is a quality computed from a rank")
    by_hand = sorted(
        (math.dist([float(x) for x in vector], [float(x) for x in query]), position)
        for position, vector in enumerate(vectors)
    )
    hits = DenseIndex(stack(vectors)).search(query, 10, np.ones(len(vectors), dtype=bool))
    assert [hit.position for hit in hits] == [position for _, position in by_hand[:10]]
    assert [hit.score for hit in hits] == pytest.approx([d for d, _ in by_hand[:10]], abs=1e-9)


def test_filtered_chunks_are_found_by_no_route() -> None:
    mask = np.array([True, False, True])
    dense = DenseIndex(np.eye(3, dtype=np.float32))
    assert {h.position for h in dense.search(np.eye(3, dtype=np.float32)[1], 3, mask)} == {0, 2}
    keyword = KeywordIndex(["lag rises", "lag of a partition", "broker"])
    assert [h.position for h in keyword.search("lag", 3, mask)] == [0]


def test_keyword_search_needs_a_shared_word() -> None:
    index = KeywordIndex(["consumer lag", "dead letters", "id conflicts"])
    assert [h.position for h in index.search("dead letters rise", 3, ALL_THREE)] == [1]
    assert index.search("weather", 3, ALL_THREE) == []
    assert index.search("of the", 3, ALL_THREE) == []


def test_fusion_adds_the_reciprocal_ranks_of_both_routes() -> None:
    ranked = fuse([Hit(7, 0.4), Hit(3, 0.6)], [Hit(3, 9.0), Hit(5, 2.0)], k=60)
    assert [(r.position, r.original_rank) for r in ranked] == [(3, 1), (7, 2), (5, 3)]
    assert ranked[0].rrf_score == pytest.approx(1 / 62 + 1 / 61)
    assert ranked[2].dense_distance is None


def test_fusion_does_not_depend_on_scores_but_on_ranks() -> None:
    source = random.Random(3)
    dense = [Hit(p, 0.1 * n) for n, p in enumerate(source.sample(range(50), 10))]
    keyword = [Hit(p, 9.0 - n) for n, p in enumerate(source.sample(range(50), 10))]
    scaled = [Hit(h.position, h.score * 100) for h in keyword]
    assert [r.position for r in fuse(dense, keyword)] == [r.position for r in fuse(dense, scaled)]


def test_equal_fused_scores_put_the_word_match_first() -> None:
    assert [r.position for r in fuse([Hit(1, 0.2)], [Hit(2, 5.0)])] == [2, 1]


def test_dense_ranks_count_from_one() -> None:
    assert [(r.position, r.original_rank) for r in rank_dense([Hit(4, 0.1), Hit(2, 0.3)])] == [
        (4, 1),
        (2, 2),
    ]


def test_category_mask_without_category_lets_all_through(sections: list[Chunk]) -> None:
    assert category_mask(sections, None).all()
    mask = category_mask(sections, "operations")
    assert {sections[int(i)].page.category for i in np.flatnonzero(mask)} == {"operations"}


def test_a_route_reports_its_latency() -> None:
    ticks = iter([1.0, 1.0125])
    route = timed_route("dense", lambda: [Hit(0, 0.5)], lambda: next(ticks))
    assert (route.name, route.latency_ms) == ("dense", 12.5)
