from pathlib import Path
from typing import Any

import pytest

from lookup_audit.deploy.replay_picture import check_picture_path, sweep_picture, write_picture
from lookup_audit.deploy.replay_report import rate
from lookup_audit.schemas.errors import ConfigError


def points(version: str = "m@1") -> list[dict[str, Any]]:
    return [
        {
            "model_version": version,
            "mode": mode,
            "highly_relevant_threshold": threshold,
            "precise": rate(n, 10),
            "high_score_error_rate": rate(0, 0) if n == 0 else rate(1, n),
        }
        for mode in ("dense", "hybrid")
        for threshold, n in ((0.5, 9), (0.7, 4), (0.9, 0))
    ]


def test_equal_figures_give_equal_bytes() -> None:
    first, second = sweep_picture(points(), 0.75), sweep_picture(points(), 0.75)
    assert first == second
    assert first.startswith(b"<?xml")
    assert b"PRECISE rate, hybrid" in first
    assert sweep_picture(points(), 0.6) != first


@pytest.mark.parametrize("version", ["$", "a$b$c", "模型@1", "<script>", "_hidden", "a" * 300])
def test_any_version_name_can_be_drawn(version: str) -> None:
    assert b"<script>" not in sweep_picture(points(version), 0.75)


def test_nothing_gives_an_empty_picture() -> None:
    assert b"</svg>" in sweep_picture([], 0.75)


def test_a_picture_is_written_whole(tmp_path: Path) -> None:
    write_picture(tmp_path / "grid.svg", b"<svg/>")
    assert [p.name for p in tmp_path.iterdir()] == ["grid.svg"]


def test_what_is_no_svg_file_is_refused_before_the_work(tmp_path: Path) -> None:
    check_picture_path(tmp_path / "grid.svg")
    with pytest.raises(ConfigError, match=r"\.svg"):
        check_picture_path(tmp_path / "grid.png")
    with pytest.raises(ConfigError, match="no directory"):
        check_picture_path(tmp_path / "missing" / "grid.svg")
