import json
import re
import xml.etree.ElementTree
from pathlib import Path

import pytest

from lookup_audit.deploy.calibration.picture import check_picture_name, operating_picture
from lookup_audit.deploy.calibration.plain import plain
from lookup_audit.deploy.calibration.text import print_stratum
from lookup_audit.processors.calibration.report import StratumReport, calibrate
from lookup_audit.schemas.errors import ConfigError
from tests.support.trials import make_asked, make_stratum, make_trial


def report(version: str = "m@1", budget: float = 0.3) -> StratumReport:
    trials = [make_trial(make_asked(f"r{i}", (0.6 + i / 200,)), "c1", line=i) for i in range(40)]
    trials += [make_trial(make_asked(f"w{i}", (0.4 + i / 100,)), line=100 + i) for i in range(30)]
    return calibrate(make_stratum(trials, model_version=version), budget)


@pytest.mark.parametrize("suffix", [".svg", ".png"])
def test_the_same_figures_give_the_same_bytes(suffix: str) -> None:
    assert operating_picture([report()], suffix) == operating_picture([report()], suffix)


def test_a_picture_names_its_strata_whatever_their_letters() -> None:
    drawn = operating_picture([report("模型$x_2$<b>"), report("m@2")], ".svg")
    root = xml.etree.ElementTree.fromstring(drawn)
    text = " ".join(root.itertext())
    assert "模型$x_2$<b>, dense" in text
    assert "m@2, dense" in text
    assert b"<dc:date>" not in drawn


def test_nothing_to_draw_is_said_so() -> None:
    empty = calibrate(make_stratum([]), 0.05)
    with pytest.raises(ConfigError, match="no curve to draw"):
        operating_picture([empty], ".svg")
    with pytest.raises(ConfigError, match=r"\.svg or \.png"):
        check_picture_name(Path("curve.pdf"))


def test_a_report_is_json_without_nan() -> None:
    value = plain([report(), calibrate(make_stratum([]), 0.05)])
    text = json.dumps(value, allow_nan=False)
    first, second = json.loads(text)
    assert first["recommendation"]["ruleset"]["ruleset_id"].startswith("rs-")
    assert len(first["bases"][0]["curve"]) >= 60
    assert second["retrieval"]["recall"]["1"] == {
        "count": 0, "n": 0, "value": None, "low": None, "high": None
    }  # fmt: skip


def test_the_tables_mark_the_thresholds_and_never_print_nan(
    capsys: pytest.CaptureFixture[str],
) -> None:
    print_stratum(report())
    print_stratum(calibrate(make_stratum([]), 0.05))
    shown = capsys.readouterr().out
    assert "recommended" in shown
    assert "highly_relevant now" in shown
    assert "no value" in shown
    assert not re.search(r"\bnan\b", shown, re.I)
