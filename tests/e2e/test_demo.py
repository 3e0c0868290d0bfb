import json
import re
from pathlib import Path

import pytest

from tests.e2e.conftest import run_command


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    pytest.importorskip("onnxruntime")
    data_dir = tmp_path_factory.mktemp("demo") / "data"
    done = run_command("demo", "--data-dir", data_dir)
    assert done.returncode == 0, done.stderr
    return done.stdout, data_dir


def test_the_demo_ends_with_the_headline_of_two_models_in_two_modes(
    demo: tuple[str, Path],
) -> None:
    output, _ = demo
    rows = re.findall(r"^minilm-l6-int8@(\d+)\s+(dense|hybrid)\s.*\d/\d", output, re.M)
    assert sorted(set(rows)) == sorted(
        (m, mode) for m in ("384", "64") for mode in ("dense", "hybrid")
    )
    assert output.count("--- example ") == 3


def test_the_weaker_model_has_the_higher_share_of_high_score_errors(
    demo: tuple[str, Path],
) -> None:
    _, data_dir = demo
    sql = (
        "SELECT mode, model_version, countIf(cell = 'high_score_error') / "
        "countIf(level = 'PRECISE' AND answer IN ('wrong', 'partly', 'right')) AS rate "
        "FROM cells GROUP BY mode, model_version"
    )
    rows = json.loads(run_command("query", sql, "--json", "--data-dir", data_dir).stdout)
    rate = {(row["mode"], row["model_version"].split("@")[1]): row["rate"] for row in rows}
    for mode in ("dense", "hybrid"):
        assert rate[mode, "64"] > rate[mode, "384"]


def test_the_audit_finds_the_demo_services_bug_and_nothing_else(demo: tuple[str, Path]) -> None:
    _, data_dir = demo
    sql = "SELECT model_version, level_mismatch FROM lookups WHERE notEmpty(failed_checks)"
    rows = json.loads(run_command("query", sql, "--json", "--data-dir", data_dir).stdout)
    assert rows
    assert {row["model_version"].split("@")[1] for row in rows} == {"64"}
    assert {row["level_mismatch"] for row in rows} == {"stale_threshold"}


def test_nothing_of_the_demo_is_refused_dead_lettered_or_doubled(demo: tuple[str, Path]) -> None:
    _, data_dir = demo
    sql = (
        "SELECT (SELECT count() FROM dead_letters) + (SELECT count() FROM duplicates) "
        "+ (SELECT count() FROM id_conflicts) AS n"
    )
    rows = json.loads(run_command("query", sql, "--json", "--data-dir", data_dir).stdout)
    assert [int(row["n"]) for row in rows] == [0]


def test_the_demos_gold_set_calibrates_and_compares_its_models(demo: tuple[str, Path]) -> None:
    _, data_dir = demo
    gold = ("--gold", data_dir / "gold.jsonl", "--data-dir", data_dir, "--json")
    calibrated = json.loads(run_command("calibrate", *gold).stdout)
    assert calibrated["never_asked"] == []
    assert [(s["mode"], s["questions"]) for s in calibrated["strata"]] == [
        ("dense", 112),
        ("hybrid", 112),
    ] * 2
    sides = ("--a", "model=minilm-l6-int8@384", "--b", "model=minilm-l6-int8@64")
    compared = json.loads(run_command("compare", *gold, *sides).stdout)
    for comparison in compared["comparisons"]:
        recall = next(f for f in comparison["figures"] if f["name"] == "Recall@1")
        assert recall["interval"][0] > 0.1
        assert recall["p_holm"] < 0.001
