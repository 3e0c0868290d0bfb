import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from opentelemetry.sdk.metrics import MeterProvider
from prometheus_client.parser import text_string_to_metric_families

from lookup_audit.collector.telemetry import IngestMetrics, make_telemetry
from lookup_audit.dashboards.alert_files import api_group, rules_file
from lookup_audit.dashboards.alerts import OF_LEVELS, RULE_GROUPS, Rule, all_rules
from lookup_audit.dashboards.boards import BOARDS
from lookup_audit.dashboards.grafana_json import MAX_UID_LENGTH
from lookup_audit.dashboards.prometheus_rules import METRIC_RULES, metric_rules_file
from lookup_audit.dashboards.provisioning import files
from lookup_audit.processors.drift.telemetry import DriftTelemetry
from lookup_audit.processors.telemetry import ProcessorTelemetry

ROOT = Path(__file__).parents[3]
RUNBOOKS = ROOT / "dashboards" / "runbooks"
SECTIONS = ["What it means", "First three things to look at", "How to silence it"]
RULES = all_rules()


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.uid)
def test_a_rule_is_one_the_server_can_evaluate(rule: Rule) -> None:
    assert len(rule.uid) <= MAX_UID_LENGTH
    assert "${" not in rule.sql
    assert "conditionalAll" not in rule.sql
    assert "Interval(" not in rule.sql.replace("toStartOfInterval(", "")
    assert (
        "FROM audit.drift_alarms" in rule.sql
        or "$__timeFilter" in rule.sql
        or ("$__fromTime" in rule.sql and "$__toTime" in rule.sql)
    )
    assert rule.no_data_because
    assert re.fullmatch(r"\d+[smh]", rule.for_)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.uid)
def test_a_rule_names_its_labels_in_its_summary_and_knows_no_other(rule: Rule) -> None:
    named = set(re.findall(r"\$labels\.(\w+)", rule.summary))

    assert named <= set(rule.labels)
    assert bool(named) == bool(rule.labels)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.uid)
def test_a_rule_of_levels_has_the_mode_as_a_label(rule: Rule) -> None:
    assert ("mode" in rule.labels) == (rule.uid in OF_LEVELS)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.uid)
def test_a_rule_belongs_to_a_panel_that_exists(rule: Rule) -> None:
    board = next(board for board in BOARDS if board.uid == rule.board)

    assert rule.panel in {panel.id for panel in board.panels}


def test_uids_and_titles_are_unique() -> None:
    assert len({rule.uid for rule in RULES}) == len({rule.title for rule in RULES}) == len(RULES)


def test_every_alert_has_a_runbook_and_every_runbook_an_alert() -> None:
    pages = {page.stem for page in RUNBOOKS.glob("*.md")}

    assert pages == {rule.uid for rule in RULES}
    assert {rule.runbook for rule in METRIC_RULES} <= pages


@pytest.mark.parametrize("page", sorted(RUNBOOKS.glob("*.md")), ids=lambda page: page.stem)
def test_a_runbook_says_what_where_and_how_to_silence(page: Path) -> None:
    text = page.read_text("utf-8")

    assert re.findall(r"^## (.+)$", text, re.M) == SECTIONS
    assert len(re.findall(r"^\d\. ", text, re.M)) == 3
    for link in re.findall(r"\]\((\.\./[^)]+)\)", text):
        assert (page.parent / link).is_file(), link


def test_the_file_and_the_api_say_the_same() -> None:
    file_rules = [rule for group in rules_file("F", "ds")["groups"] for rule in group["rules"]]
    api_rules = [rule for group in RULE_GROUPS for rule in api_group(group, "f", "ds")["rules"]]
    shared = ("uid", "condition", "data", "noDataState", "execErrState", "for")

    assert [[r[n] for n in shared] for r in file_rules] == [
        [r[n] for n in shared] for r in api_rules
    ]
    for rule in file_rules:
        assert rule["labels"]["severity"] in ("page", "ticket")
        assert rule["annotations"]["runbook_url"].endswith(rule["uid"])
        assert rule["execErrState"] == "Error"


def test_the_file_leaves_macros_alone_and_doubles_what_grafana_expands() -> None:
    text = dict(files())["provisioning/alerting/lookup-audit.yaml"]
    rules = [rule for group in yaml.safe_load(text)["groups"] for rule in group["rules"]]

    assert any("$__timeFilter" in rule["data"][0]["model"]["rawSql"] for rule in rules)
    assert all("$$" not in rule["data"][0]["model"]["rawSql"] for rule in rules)
    for rule in rules:
        for value in (rule["title"], *rule["labels"].values()):
            assert value.replace("$$", "").count("$") == 0


def registered_metrics() -> set[str]:
    """Every name that ``/metrics`` of our processes can show."""
    telemetry = make_telemetry()
    provider = telemetry.meter_provider
    assert isinstance(provider, MeterProvider)
    IngestMetrics(provider, pending=lambda: 1, capacity=2)
    processor = ProcessorTelemetry(provider.get_meter("p"), "g")
    processor.lag({("t", 0): 1})
    DriftTelemetry(provider.get_meter("d"))
    # Counters show themselves once they have counted.
    for owner in (processor, DriftTelemetry(provider.get_meter("d"))):
        for instrument in vars(owner).values():
            if hasattr(instrument, "add"):
                instrument.add(1)
    IngestMetrics(provider, pending=lambda: 1, capacity=2)._events.add(1)
    shown = text_string_to_metric_families(telemetry.render().decode())
    return {sample.name for family in shown for sample in family.samples}


def test_prometheus_rules_ask_only_for_metrics_that_exist() -> None:
    known = registered_metrics()
    for rule in METRIC_RULES:
        asked = set(re.findall(r"\b(?:lookup_audit|kafka|messaging)_\w+", rule.expression))
        assert asked, rule.name
        assert asked <= known, rule.name


def test_prometheus_rules_have_the_shape_of_a_rule_file() -> None:
    (group,) = metric_rules_file()["groups"]
    rules: list[dict[str, Any]] = group["rules"]

    assert len({rule["alert"] for rule in rules}) == len(rules)
    for rule in rules:
        assert set(rule) == {"alert", "expr", "for", "labels", "annotations"}
        assert re.fullmatch(r"[A-Z][A-Za-z]+", rule["alert"])
        assert re.fullmatch(r"\d+[smh]", rule["for"])
        assert rule["expr"].count("(") == rule["expr"].count(")")
        assert rule["expr"].count("{") == rule["expr"].count("}")


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed")
def test_promtool_takes_the_rules() -> None:
    path = ROOT / "dashboards" / "grafana" / "prometheus" / "lookup-audit-rules.yaml"
    done = subprocess.run(
        ["promtool", "check", "rules", str(path)], capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stdout + done.stderr
