"""Publishing against a server that answers as Grafana 13 documents."""

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from lookup_audit.dashboards.alerts import RULE_GROUPS
from lookup_audit.dashboards.boards import BOARDS
from lookup_audit.dashboards.grafana import Grafana, GrafanaConfig, GrafanaError
from lookup_audit.dashboards.publishing import Change, Target, publish
from lookup_audit.deploy.cli.main import main
from lookup_audit.schemas.errors import ConfigError, UnavailableError
from tests.support.grafana_stub import TOKEN, GrafanaStub

TARGET = Target("lookup-audit", "Lookup Audit", "la-clickhouse")


@pytest.fixture
def stub() -> Iterator[GrafanaStub]:
    with GrafanaStub() as served:
        yield served


def connect(stub: GrafanaStub, token: str = TOKEN) -> Grafana:
    return Grafana(GrafanaConfig(stub.url, token), sleep=lambda seconds: None)


def published(stub: GrafanaStub, *, dry_run: bool = False) -> list[Change]:
    return list(publish(connect(stub), TARGET, dry_run=dry_run))


def test_everything_is_created_once_and_then_kept(stub: GrafanaStub) -> None:
    assert {change.action for change in published(stub)} == {"create"}
    assert set(stub.dashboards) == {board.uid for board in BOARDS}
    assert {name for _, name in stub.groups} == {group.name for group in RULE_GROUPS}
    stub.calls.clear()

    assert {change.action for change in published(stub)} == {"keep"}
    assert stub.changes == []


def test_a_dry_run_changes_nothing(stub: GrafanaStub) -> None:
    assert {change.action for change in published(stub, dry_run=True)} == {"create"}
    assert stub.changes == []


def test_what_was_changed_by_hand_is_shown_and_replaced(stub: GrafanaStub) -> None:
    published(stub)
    stub.dashboards["la-drift"]["dashboard"]["title"] = "Mine"
    stub.groups["lookup-audit", RULE_GROUPS[0].name]["rules"][0]["for"] = "99m"

    changed = {c.what: c for c in published(stub, dry_run=True) if c.action != "keep"}

    assert set(changed) == {"board la-drift", f"alert rules {RULE_GROUPS[0].name}"}
    assert any('-  "title": "Mine"' in line or '- "title": "Mine"' in line
               for line in changed["board la-drift"].difference)  # fmt: skip
    published(stub)
    assert stub.dashboards["la-drift"]["dashboard"]["title"] == "PRECISE drift"


def test_a_board_in_another_folder_is_moved(stub: GrafanaStub) -> None:
    published(stub)
    stub.dashboards["la-drift"]["meta"]["folderUid"] = "elsewhere"

    assert [c.what for c in published(stub) if c.action == "update"] == ["board la-drift"]
    assert stub.dashboards["la-drift"]["meta"]["folderUid"] == "lookup-audit"


def test_a_publish_that_broke_off_is_finished_by_the_next(stub: GrafanaStub) -> None:
    changes = publish(connect(stub), TARGET, dry_run=False)
    for _ in range(3):
        next(changes)

    actions = [change.action for change in published(stub)]

    assert actions.count("keep") == 2
    assert set(stub.dashboards) == {board.uid for board in BOARDS}


@pytest.mark.parametrize(
    ("status", "body", "headers", "message"),
    [
        (401, b'{"message": "Invalid API key"}', {}, "does not know the token"),
        (403, b'{"message": "no"}', {}, "role Editor"),
        (412, b'{"status": "name-exists", "message": "same name"}', {}, "same title"),
        (409, b'{"message": "provenance"}', {}, "another owner"),
        (410, b"gone", {}, "provision from files"),
        (400, b"null", {}, "request wrong"),
        (500, b"<html>message</html>", {}, "answered 500"),
        (200, b"<html>sign in</html>", {}, "page and not with JSON"),
        (302, b"", {"Location": "/login?token=x"}, "redirected to /login"),
        (301, b"", {"Location": "https://other/grafana/api"}, "redirected to /grafana/api"),
    ],
    ids=lambda value: value if isinstance(value, int) else "",
)
def test_a_refusal_is_a_sentence_that_names_the_fix(
    stub: GrafanaStub, status: int, body: bytes, headers: dict[str, str], message: str
) -> None:
    stub.failures.append((status, body, headers))

    with pytest.raises(GrafanaError, match=message) as caught:
        connect(stub).folder("f")
    assert TOKEN not in str(caught.value)
    assert len(stub.calls) == 1


def test_a_missing_thing_is_none(stub: GrafanaStub) -> None:
    grafana = connect(stub)

    assert grafana.folder("f") is grafana.dashboard("d") is grafana.rule_group("f", "g") is None
    assert grafana.source("nope") is None
    assert grafana.version() == "13.2.3"


def test_a_busy_proxy_is_tried_again(stub: GrafanaStub) -> None:
    stub.failures += [
        (502, b"<html>message</html>", {}),
        (503, b"", {"Retry-After": "3"}),
        (429, b"", {"Retry-After": "soon"}),
    ]
    waits: list[float] = []
    grafana = Grafana(GrafanaConfig(stub.url, TOKEN), sleep=waits.append)

    grafana.create_folder("f", "F")

    assert list(stub.folders) == ["f"]
    assert waits == [0.5, 3.0, 6.0]


def test_a_proxy_that_stays_busy_is_an_error(stub: GrafanaStub) -> None:
    stub.failures += [(502, b"", {})] * 9
    with pytest.raises(GrafanaError, match="502"):
        connect(stub).folder("f")
    assert len(stub.calls) == 4


def test_nobody_there_is_said_so() -> None:
    with GrafanaStub() as gone:
        pass
    with pytest.raises(UnavailableError, match="does not answer"):
        connect(gone).folder("f")


def test_an_empty_answer_of_success_is_no_error(stub: GrafanaStub) -> None:
    stub.failures.append((204, b"", {}))
    connect(stub).create_folder("f", "F")


def test_names_are_escaped_in_paths(stub: GrafanaStub) -> None:
    connect(stub).rule_group("a/b", "c?d 东")

    assert stub.calls[0].path == "/v1/provisioning/folder/a%2Fb/rule-groups/c%3Fd%20%E4%B8%9C"


@pytest.mark.parametrize(
    ("url", "token", "message"),
    [
        ("grafana.example.com", TOKEN, "must look like"),
        ("ftp://grafana", TOKEN, "must look like"),
        ("https://user:secret@grafana", TOKEN, "no name, password"),
        ("https://grafana", "", "empty"),
        ("https://grafana", "two words", "holds a space"),
        ("https://grafana", "tökén", "no header can"),
    ],
)
def test_a_wrong_setting_is_refused_before_any_call(url: str, token: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        Grafana(GrafanaConfig(url, token))
    assert "secret" not in str(caught.value)


def test_the_token_is_never_shown() -> None:
    assert TOKEN not in repr(GrafanaConfig("http://x", TOKEN))


def run_verb(monkeypatch: pytest.MonkeyPatch, stub: GrafanaStub, *options: str) -> int:
    monkeypatch.setenv("LOOKUP_AUDIT_GRAFANA_TOKEN", TOKEN)
    return main(["dashboards", "publish", "--url", stub.url, *options])


def test_the_verb_publishes_and_a_dry_run_then_finds_nothing(
    stub: GrafanaStub,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    assert run_verb(monkeypatch, stub, "--dry-run") == 1
    assert run_verb(monkeypatch, stub) == 0
    assert run_verb(monkeypatch, stub, "--dry-run", "--json") == 0

    shown = "".join(capsys.readouterr()) + caplog.text
    assert "create  board la-overview" in shown
    assert TOKEN not in shown


def test_the_verb_wants_the_data_source_of_the_alerts(
    stub: GrafanaStub, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stub.sources.clear()

    assert run_verb(monkeypatch, stub) == 2
    assert "no data source with the uid la-clickhouse" in capsys.readouterr().err
    assert run_verb(monkeypatch, stub, "--no-alerts") == 0
    assert not stub.groups


def test_the_verb_wants_a_token_and_takes_it_from_a_file(
    stub: GrafanaStub,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.delenv("LOOKUP_AUDIT_GRAFANA_TOKEN", raising=False)
    command = ["dashboards", "publish", "--url", stub.url]
    assert main(command) == 2
    assert "--token-file" in capsys.readouterr().err
    assert main([*command, "--token-file", str(tmp_path / "none")]) == 2
    (tmp_path / "token").write_text(f"{TOKEN}\n")
    assert main([*command, "--token-file", str(tmp_path / "token")]) == 0
