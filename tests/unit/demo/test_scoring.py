from __future__ import annotations

import pytest

from lookup_audit.deploy.demo.scoring import (
    CURRENT,
    PREVIOUS,
    Thresholds,
    candidate_quality,
    cosine,
    l2_quality,
    layer,
    registry_entries,
    relevance_level,
)

DEFAULT = Thresholds()


@pytest.mark.parametrize(
    ("quality", "level"),
    [
        pytest.param(0.75, "PRECISE", id="inclusive upper"),
        pytest.param(0.7499999999, "REFERENCE", id="just below"),
        pytest.param(0.5, "REFERENCE", id="inclusive lower"),
        pytest.param(0.4999999999, None, id="none"),
        pytest.param(None, None, id="no evidence"),
    ],
)
def test_levels_change_exactly_at_the_thresholds(quality: float | None, level: str | None) -> None:
    assert relevance_level(quality, DEFAULT) == level


def test_quality_comes_from_the_distance_or_else_from_the_rank() -> None:
    assert candidate_quality(0.41, 9, DEFAULT) == pytest.approx(0.795)
    assert candidate_quality(None, 4, DEFAULT) == 0.25
    assert l2_quality(2.0, 2.0) == 0.0


def test_cosine_of_unit_vectors_follows_from_their_distance() -> None:
    assert cosine(0.41) == pytest.approx(0.91595)


@pytest.mark.parametrize(
    ("similarity", "url", "expected"),
    [
        pytest.param(0.82, "https://x.example", "high", id="high"),
        pytest.param(0.9, None, "middle", id="unlinked"),
        pytest.param(0.7, "https://x.example", "middle", id="middle"),
        pytest.param(0.69, "https://x.example", "low", id="low"),
        pytest.param(None, "https://x.example", None, id="unknown"),
    ],
)
def test_layers_need_similarity_and_a_link(
    similarity: float | None, url: str | None, expected: str | None
) -> None:
    assert layer(similarity, url, DEFAULT) == expected


def test_registry_entries_hold_both_rulesets_for_both_modes() -> None:
    entries = registry_entries("handbook-knowledge", "2026-11-30T00:00:00Z")
    assert [(e["mode"], e["highly_relevant_threshold"]) for e in entries] == [
        ("dense", PREVIOUS.highly_relevant_threshold),
        ("hybrid", PREVIOUS.highly_relevant_threshold),
        ("dense", CURRENT.highly_relevant_threshold),
        ("hybrid", CURRENT.highly_relevant_threshold),
    ]
