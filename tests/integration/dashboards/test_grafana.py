"""Boards and rules in a real Grafana that reads a real ClickHouse; skipped without an engine.

Files are not enough to know that Grafana takes them: here each board is stored and read back, each
panel's statement is asked through the plugin, and each rule group is put and evaluated.
"""

import json
import time
import urllib.error
import urllib.request
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from lookup_audit.dashboards.alerts import RULE_GROUPS, all_rules
from lookup_audit.dashboards.boards import BOARDS
from lookup_audit.dashboards.grafana import Grafana, GrafanaConfig
from lookup_audit.dashboards.grafana_json import PLUGIN, PLUGIN_VERSION
from lookup_audit.dashboards.macros import percent_encode
from lookup_audit.dashboards.provisioning import SOURCE_UID
from lookup_audit.dashboards.publishing import Target, publish
from lookup_audit.processors.migrate import migrate
from lookup_audit.processors.store import open_store
from tests.support.containers import CLICKHOUSE_IMAGE, docker_unavailable

pytestmark = [pytest.mark.docker, pytest.mark.timeout(900)]

GRAFANA_IMAGE = "grafana/grafana:13.0.1"
PASSWORD = "for-this-test-only"
READY_SECONDS = 240.0
TARGET = Target("lookup-audit", "Lookup Audit", SOURCE_UID)


@dataclass
class Running:
    """Grafana with its data source, and a token for it."""

    url: str
    token: str

    def call(self, method: str, path: str, body: object = None, *, basic: bool = False) -> Any:
        return _call(self.url, method, path, body, "" if basic else self.token)


def _call(url: str, method: str, path: str, body: object, token: str) -> Any:
    secret = b64encode(f"admin:{PASSWORD}".encode()).decode()
    request = urllib.request.Request(
        url + path,
        None if body is None else json.dumps(body).encode(),
        {
            "Content-Type": "application/json",
            "Authorization": f"Bearer {token}" if token else f"Basic {secret}",
        },
        method=method,
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        text = answer.read()
    return json.loads(text) if text else None


@pytest.fixture(scope="module")
def grafana() -> Iterator[Running]:
    if reason := docker_unavailable():
        pytest.skip(reason)
    from testcontainers.core.container import DockerContainer
    from testcontainers.core.network import Network

    with (
        Network() as network,
        DockerContainer(CLICKHOUSE_IMAGE)
        .with_env("CLICKHOUSE_USER", "audit")
        .with_env("CLICKHOUSE_PASSWORD", PASSWORD)
        .with_exposed_ports(8123)
        .with_network(network)
        .with_network_aliases("clickhouse") as clickhouse,
        DockerContainer(GRAFANA_IMAGE)
        .with_env("GF_SECURITY_ADMIN_PASSWORD", PASSWORD)
        .with_env("GF_PLUGINS_PREINSTALL_SYNC", f"{PLUGIN}@{PLUGIN_VERSION}")
        .with_exposed_ports(3000)
        .with_network(network) as server,
    ):
        host = clickhouse.get_container_host_ip()
        address = f"http://audit:{PASSWORD}@{host}:{clickhouse.get_exposed_port(8123)}"
        _migrate(address)
        url = f"http://{server.get_container_host_ip()}:{server.get_exposed_port(3000)}"
        _wait(url)
        yield Running(url, _prepare(url))


def _migrate(address: str) -> None:
    give_up = time.monotonic() + READY_SECONDS
    while True:
        try:
            store = open_store(address)
            migrate(store)
            store.close()
            return
        except Exception:
            if time.monotonic() > give_up:
                raise
            time.sleep(1)


def _wait(url: str) -> None:
    give_up = time.monotonic() + READY_SECONDS
    while True:
        try:
            _call(url, "GET", f"/api/plugins/{PLUGIN}/settings", None, "")
            return
        except (urllib.error.URLError, OSError):
            if time.monotonic() > give_up:
                raise
            time.sleep(1)


def _prepare(url: str) -> str:
    """Make the data source and a service account; returns its token."""
    source = {
        "name": "ClickHouse", "uid": SOURCE_UID, "type": PLUGIN, "access": "proxy",
        "jsonData": {"host": "clickhouse", "port": 9000, "protocol": "native",
                     "defaultDatabase": "audit", "username": "audit"},
        "secureJsonData": {"password": PASSWORD},
    }  # fmt: skip
    _call(url, "POST", "/api/datasources", source, "")
    account = _call(url, "POST", "/api/serviceaccounts", {"name": "la", "role": "Editor"}, "")
    path = f"/api/serviceaccounts/{account['id']}/tokens"
    return str(_call(url, "POST", path, {"name": "publish"}, "")["key"])


@pytest.fixture(scope="module")
def published(grafana: Running) -> Running:
    port = Grafana(GrafanaConfig(grafana.url, grafana.token))
    assert {change.action for change in publish(port, TARGET, dry_run=False)} == {"create"}
    return grafana


def test_the_data_source_is_healthy(grafana: Running) -> None:
    health = grafana.call("GET", f"/api/datasources/uid/{SOURCE_UID}/health", basic=True)

    assert health["status"] == "OK"


def test_boards_are_stored_and_a_second_publish_keeps_them(published: Running) -> None:
    port = Grafana(GrafanaConfig(published.url, published.token))
    again = {change.what: change.action for change in publish(port, TARGET, dry_run=True)}

    for board in BOARDS:
        found = published.call("GET", f"/api/dashboards/uid/{board.uid}")
        shown = {panel["id"]: panel["title"] for panel in found["dashboard"]["panels"]}
        assert shown == {panel.id: panel.title for panel in board.panels}
        assert again[f"board {board.uid}"] == "keep"


@pytest.mark.parametrize(
    ("name", "sql"),
    [query for board in BOARDS for query in board.queries()],
    ids=[name for board in BOARDS for name, _ in board.queries()],
)
def test_the_plugin_runs_every_statement(published: Running, name: str, sql: str) -> None:
    for variable in ("tenant", "service", "model_version", "mode", "event_id"):
        sql = sql.replace(f"${{{variable}:percentencode}}", percent_encode("*"))
    query = {
        "refId": "A", "datasource": {"type": PLUGIN, "uid": SOURCE_UID}, "editorType": "sql",
        "format": 1, "rawSql": sql, "intervalMs": 60000, "maxDataPoints": 100,
    }  # fmt: skip
    body = {"queries": [query], "from": "now-1h", "to": "now"}

    answer = published.call("POST", "/api/ds/query", body)["results"]["A"]

    assert answer.get("error", "") == "", name
    assert answer["status"] == 200, name


def test_every_rule_is_evaluated_without_error(published: Running) -> None:
    give_up = time.monotonic() + READY_SECONDS
    health: dict[str, str] = {}
    while time.monotonic() < give_up:
        groups = published.call("GET", "/api/prometheus/grafana/api/v1/rules")["data"]["groups"]
        ours = [g for g in groups if g["name"] in {group.name for group in RULE_GROUPS}]
        health = {rule["name"]: rule["health"] for group in ours for rule in group["rules"]}
        if len(health) == len(all_rules()) and "unknown" not in health.values():
            break
        time.sleep(2)

    assert set(health) == {rule.title for rule in all_rules()}
    assert set(health.values()) <= {"ok", "nodata"}
