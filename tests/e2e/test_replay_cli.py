import json
from pathlib import Path

import pytest

from tests.e2e.conftest import Up, run_command
from tests.support.events import Event, encode, make_candidate, make_lookup

STRICT = {"highly_relevant_threshold": 0.9}


def post(up: Up, tenant: str, qualities: list[float], **over: object) -> list[Event]:
    events = [
        make_lookup(tenant=tenant, candidates=[make_candidate(dense_distance=2 - 2 * q)], **over)
        for q in qualities
    ]
    up.post("/v1/lookups", encode(events))
    sql = f"SELECT count() FROM lookups WHERE tenant = '{tenant}'"
    up.wait_for(sql, str(len(qualities)))
    return events


@pytest.fixture
def strict(tmp_path: Path) -> Path:
    path = tmp_path / "strict.json"
    path.write_text(json.dumps(STRICT), encoding="utf-8")
    return path


def test_a_replay_shows_flips_and_exits_1(up: Up, strict: Path, tmp_path: Path) -> None:
    post(up, "replayed", [0.95, 0.8, 0.3])
    picture = tmp_path / "grid.svg"
    where = ("--tenant", "replayed", "--data-dir", up.data_dir)
    answer = run_command("replay", "--ruleset", strict, "--picture", picture, *where)
    assert answer.returncode == 1, answer.stderr
    assert "3 lookups under rs-" in answer.stdout
    assert "PRECISE  REFERENCE        1" in answer.stdout
    assert picture.read_text(encoding="utf-8").startswith("<?xml")
    found = json.loads(run_command("replay", "--ruleset", strict, "--json", *where).stdout)
    assert found["strata"][0]["was"]["precise"]["count"] == 2
    assert found["strata"][0]["becomes"]["precise"]["count"] == 1
    assert found["strata"][0]["becomes"]["high_score_error_rate"]["rate"] is None


def test_a_replay_without_a_flip_exits_0(up: Up, tmp_path: Path) -> None:
    path = tmp_path / "same.json"
    path.write_text("{}", encoding="utf-8")
    post(up, "same", [0.95, 0.8])
    answer = run_command("replay", "--ruleset", path, "--tenant", "same", "--data-dir", up.data_dir)
    assert answer.returncode == 0
    assert "0 would have another level" in answer.stdout
    nothing = run_command(
        "replay", "--ruleset", path, "--tenant", "nobody", "--sweep", "--data-dir", up.data_dir
    )
    assert (nothing.returncode, nothing.stdout.count("\n")) == (0, 2)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("--days", "0"), "--days must be above 0"),
        (("--sweep-from", "0.9", "--sweep-to", "0.1"), "the sweep must go"),
        (("--picture", "grid.png"), ".svg"),
    ],
)
def test_bad_options_are_refused(
    options: tuple[str, ...], reason: str, up: Up, strict: Path
) -> None:
    answer = run_command("replay", "--ruleset", strict, *options, "--data-dir", up.data_dir)
    assert (answer.returncode, answer.stdout) == (2, "")
    assert reason in answer.stderr


def test_a_ruleset_is_added_once_listed_and_shown(up: Up, strict: Path) -> None:
    add = ("ruleset", "add", strict, "--effective-from", "2031-01-01T00:00:00+01:00")
    where = ("--service", "billing", "--mode", "hybrid", "--data-dir", up.data_dir)
    dry = run_command(*add, "--by", "alice", "--dry-run", *where)
    assert "would be put in force" in dry.stdout
    first = run_command(*add, "--by", "alice", *where)
    assert (first.returncode, first.stderr) == (0, "")
    second = json.loads(run_command(*add, "--by", "bob", "--json", *where).stdout)
    assert second["result"] == "known"
    listed = json.loads(run_command("ruleset", "list", "--json", "--data-dir", up.data_dir).stdout)
    mine = [row for row in listed if row["service"] == "billing"]
    assert [(row["added_by"], row["ruleset_id"]) for row in mine] == [
        ("alice", second["ruleset_id"])
    ]
    shown = run_command("ruleset", "show", second["ruleset_id"][:8], "--data-dir", up.data_dir)
    assert "billing, hybrid, from 2030-12-31 23:00:00 on, by alice" in shown.stdout


def test_a_time_in_the_past_says_how_many_verdicts_came_before(up: Up, strict: Path) -> None:
    service = {"name": "late-service"}
    post(up, "late", [0.95, 0.8], service=service)
    post(up, "late-hybrid", [0.8], service=service, mode="hybrid")
    add = ("ruleset", "add", strict, "--effective-from", "2020-01-01T00:00:00Z", "--by", "alice")
    where = ("--service", "late-service", "--mode", "dense", "--data-dir", up.data_dir)
    answer = run_command(*add, *where)
    assert answer.returncode == 0
    assert "warning: 2 stored verdicts of late-service, mode dense" in answer.stderr
    assert "they keep their verdict" in answer.stderr
    up.wait_for("SELECT countIf(ruleset_id = '') FROM lookups WHERE tenant = 'late'", "0")


def test_a_ruleset_that_is_not_there_is_found_missing(up: Up) -> None:
    answer = run_command("ruleset", "show", "rs-none", "--data-dir", up.data_dir)
    assert (answer.returncode, answer.stdout) == (1, "no ruleset has the id rs-none\n")


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("--effective-from", "2026-12-01"), "with an offset"),
        (("--effective-from", "2026-12-01T00:00:00Z", "--mode", "lexical"), "no rule gives"),
        (("--effective-from", "2026-12-01T00:00:00Z", "--mode", "Dense"), "no such mode"),
        (("--effective-from", "2026-12-01T00:00:00Z", "--by", " "), "--by"),
    ],
)
def test_an_appointment_that_makes_no_sense_is_refused(
    options: tuple[str, ...], reason: str, up: Up, strict: Path
) -> None:
    answer = run_command("ruleset", "add", strict, *options, "--data-dir", up.data_dir)
    assert answer.returncode == 2
    assert reason in answer.stderr
    assert "Traceback" not in answer.stderr
