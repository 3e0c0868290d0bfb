"""What can be said of the compose files without a container engine."""

import importlib
import re
import subprocess
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest
import yaml

from lookup_audit.dashboards.grafana_json import PLUGIN, PLUGIN_VERSION
from lookup_audit.dashboards.provisioning import DASHBOARDS_PATH, source
from lookup_audit.deploy.cli.main import VERBS
from tests.support.containers import CLICKHOUSE_IMAGE, KAFKA_IMAGE

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "deploy" / "compose"
COMPOSE: dict[str, Any] = yaml.safe_load((FOLDER / "compose.yaml").read_text("utf-8"))
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
OURS = {name: one for name, one in SERVICES.items() if "build" in one}


def code_variables() -> set[str]:
    """Every variable that our code reads."""
    code = "".join(
        file.read_text("utf-8")
        for stage in ("collector", "processors", "deploy")
        for file in (ROOT / stage).rglob("*.py")
    )
    return set(re.findall(r"LOOKUP_AUDIT_[A-Z_]+", code))


def test_every_stage_is_there() -> None:
    verbs = {service["command"][0] for service in OURS.values()}

    assert verbs == {"migrate", "collect", "process", "watch"}
    assert set(SERVICES) - set(OURS) == {"kafka", "clickhouse", "grafana"}


@pytest.mark.parametrize("name", OURS)
def test_a_command_line_is_one_the_verb_takes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    verb, *options = OURS[name]["command"]
    assert verb in VERBS
    for variable, value in OURS[name]["environment"].items():
        monkeypatch.setenv(variable, value)
    monkeypatch.setenv("LOOKUP_AUDIT_STORE", "http://lookup_audit:x@clickhouse:8123")
    parser = importlib.import_module(f"lookup_audit.deploy.cli.{verb}").parser()

    assert parser.parse_args(options).bootstrap == "kafka:9092"


def test_variables_are_those_that_the_code_reads() -> None:
    text = (FOLDER / "compose.yaml").read_text("utf-8")
    used = set(re.findall(r"LOOKUP_AUDIT_[A-Z_]+", text))

    assert used
    assert used <= code_variables()


def test_every_mounted_file_exists_and_every_volume_is_declared() -> None:
    for service in SERVICES.values():
        for volume in service.get("volumes", ()):
            place = volume.split(":")[0]
            if place.startswith("."):
                assert (FOLDER / place).exists(), place
            else:
                assert place in COMPOSE["volumes"]


def test_every_secret_is_declared_and_made(tmp_path: Path) -> None:
    used = {secret for service in SERVICES.values() for secret in service.get("secrets", ())}
    script = tmp_path / "make-secrets.sh"
    script.write_text((FOLDER / "make-secrets.sh").read_text("utf-8"))
    for _ in range(2):
        subprocess.run(["sh", str(script)], check=True, capture_output=True)
    made = {file.name: file.read_text() for file in (tmp_path / "secrets").iterdir()}

    assert used == set(COMPOSE["secrets"]) == set(made)
    assert all(re.fullmatch(r"(la_)?[0-9a-f]{48}\n", text) for text in made.values())
    assert len(set(made.values())) == len(made)


def test_no_secret_is_in_the_repository() -> None:
    assert (FOLDER / "secrets" / ".gitignore").read_text() == "*\n!.gitignore\n"
    assert "deploy/compose/secrets" in (ROOT / ".dockerignore").read_text().splitlines()


def test_images_are_pinned_and_those_of_the_tests() -> None:
    images = {name: service["image"] for name, service in SERVICES.items()}

    assert images["kafka"] == KAFKA_IMAGE
    assert images["clickhouse"] == CLICKHOUSE_IMAGE
    assert all(":" in image and not image.endswith(":latest") for image in images.values())


def test_every_service_has_a_memory_limit_and_servers_a_health_check() -> None:
    assert all("mem_limit" in service for service in SERVICES.values())
    assert all(
        "healthcheck" in SERVICES[name] for name in ("kafka", "clickhouse", "grafana", "collector")
    )


def test_ports_are_published_on_loopback_only() -> None:
    ports = [port for service in SERVICES.values() for port in service.get("ports", ())]

    assert ports
    assert all(port.startswith("127.0.0.1:") for port in ports)


def test_no_topic_is_made_by_accident() -> None:
    assert SERVICES["kafka"]["environment"]["KAFKA_AUTO_CREATE_TOPICS_ENABLE"] == "false"
    assert "LOOKUP_AUDIT_BOOTSTRAP" in SERVICES["migrate"]["environment"]


def test_grafana_gets_what_its_provisioning_asks_for() -> None:
    grafana = SERVICES["grafana"]
    asked = set(re.findall(r"\$([A-Z_]+)", str(source())))
    given = set(grafana["environment"]) | set(re.findall(r"export (\w+)", grafana["entrypoint"][2]))

    assert asked <= given
    assert grafana["environment"]["GF_PLUGINS_PREINSTALL_SYNC"] == f"{PLUGIN}@{PLUGIN_VERSION}"
    assert any(f":{DASHBOARDS_PATH}:ro" in volume for volume in grafana["volumes"])


def test_users_of_clickhouse_are_those_that_are_used() -> None:
    root = ElementTree.parse(FOLDER / "clickhouse" / "users.xml").getroot()
    users = {user.tag: user for user in root.findall("./users/*")}
    profiles = {profile.tag for profile in root.findall("./profiles/*")}
    grafana = SERVICES["grafana"]["environment"]["CLICKHOUSE_GRAFANA_USER"]
    exported = set(re.findall(r"\b(CLICKHOUSE_\w+)=", SERVICES["clickhouse"]["entrypoint"][2]))

    assert set(users) == {"default", "lookup_audit", grafana}
    assert users[grafana].findtext("profile") in profiles
    for name in ("lookup_audit", grafana):
        password = users[name].find("password")
        assert password is not None
        assert password.get("from_env") in exported
    assert "http://lookup_audit:" in OURS["processor"]["entrypoint"][2]


def test_the_image_is_multi_stage_and_does_not_run_as_root() -> None:
    text = (ROOT / "deploy" / "images" / "Dockerfile").read_text("utf-8")
    copied = re.findall(r"^COPY (?!--from)(.+) \S+$", text, re.M)

    assert len(re.findall(r"^FROM \S+:\S+", text, re.M)) == 2
    assert re.search(r"^USER \d+", text, re.M)
    assert all((ROOT / name).exists() for line in copied for name in line.split())
