from __future__ import annotations

from dataclasses import replace

import pytest

from lookup_audit.deploy.demo.corpus import Chunk
from lookup_audit.deploy.demo.embedding import MiniLm
from lookup_audit.deploy.demo.lookup import BASELINE, CANDIDATE, Found, KnowledgeBase, Query
from lookup_audit.deploy.demo.scoring import PREVIOUS, relevance_level

PORT = "What is the default port of the collector?"
BREAD = "How do I bake bread without yeast?"


def test_a_question_of_the_handbook_finds_its_page(candidate: KnowledgeBase) -> None:
    found = candidate.look_up(Query(PORT, "dense", 4))
    assert found.level == "PRECISE"
    assert found.selected[0].chunk.page.slug == "collector-settings"


def test_a_foreign_question_gets_no_level_and_no_evidence(candidate: KnowledgeBase) -> None:
    found = candidate.look_up(Query(BREAD, "dense", 4))
    assert found.level is None
    assert found.selected == []


@pytest.mark.parametrize("mode", ["dense", "hybrid"])
def test_kept_candidates_are_unique_ordered_and_within_all_limits(
    mode: str, candidate: KnowledgeBase, baseline: KnowledgeBase
) -> None:
    for base in (candidate, baseline):
        found = base.look_up(Query("rank fallback in hybrid mode", mode, 3))
        ranks = [c.ranked.original_rank for c in found.kept]
        assert ranks == sorted(set(ranks))
        assert ranks[0] == 1
        assert len(found.kept) <= 3
        assert len({c.chunk.citation_key for c in found.kept}) == len(found.kept)
        assert sum(c.chunk.tokens for c in found.selected) <= base.budget_tokens
        assert all(c.layer != "low" for c in found.selected)


def test_a_small_budget_cuts_the_list_and_says_so(model: MiniLm, sections: list[Chunk]) -> None:
    best = KnowledgeBase(CANDIDATE, sections, model).look_up(Query(PORT, "dense", 4)).kept[0]
    tight = KnowledgeBase(CANDIDATE, sections, model, budget_tokens=best.chunk.tokens)
    found = tight.look_up(Query(PORT, "dense", 4))
    assert [c.chunk.chunk_id for c in found.selected] == [best.chunk.chunk_id]
    assert found.truncated
    assert "context_budget" in {c.drop_reason for c in found.candidates}


def test_a_useless_category_filter_leads_to_an_unfiltered_retry(candidate: KnowledgeBase) -> None:
    filtered = candidate.look_up(Query(PORT, "dense", 4, "no such category"))
    assert filtered.unfiltered_retry
    assert filtered.level == "PRECISE"
    assert not candidate.look_up(Query(PORT, "dense", 4, "operations")).unfiltered_retry


def _with_quality(base: KnowledgeBase, found: Found) -> tuple[str | None, str | None]:
    quality = found.kept[0].quality if found.selected else None
    return relevance_level(quality, base.thresholds), relevance_level(quality, PREVIOUS)


def test_only_the_retry_of_the_baseline_uses_the_previous_thresholds(
    baseline: KnowledgeBase,
) -> None:
    questions = ("port", "levels", "emitter memory", "topics", "alarms", "tokens", "rank", "mode")
    for text in questions:
        first = baseline.look_up(Query(text, "dense", 4))
        again = baseline.look_up(Query(text, "dense", 4, "no such category"))
        assert first.level == _with_quality(baseline, first)[0]
        assert again.level == _with_quality(baseline, again)[1]


def test_without_the_bug_the_retry_uses_the_current_thresholds(
    model: MiniLm, baseline: KnowledgeBase
) -> None:
    mended = KnowledgeBase(replace(BASELINE, stale_retry_thresholds=None), baseline.chunks, model)
    for text in ("port", "levels", "emitter memory", "alarms"):
        found = mended.look_up(Query(text, "dense", 4, "no such category"))
        assert found.level == _with_quality(mended, found)[0]
