"""A day sampled, judged and measured by the command, against a running stack."""

import csv
import json
import os
import shlex
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from lookup_audit.processors.sampling.sheet import COLUMNS
from tests.e2e.conftest import Up, run_command
from tests.support.events import encode, make_lookup, make_outcome

DAY = datetime.now(UTC).date() - timedelta(days=1)


def fill_up(up: Up, tenant: str, n: int = 12) -> None:
    """Lookups of yesterday, each answered."""
    noon = f"{DAY}T12:00:00Z"
    lookups = [
        make_lookup(tenant=tenant, event_id=f"{tenant}-{i}", occurred_at=noon) for i in range(n)
    ]
    outcomes = [
        make_outcome(
            tenant=tenant,
            outcome_id=f"{tenant}-out-{i}",
            lookup_event_ids=[f"{tenant}-{i}"],
            occurred_at=noon,
        )
        for i in range(n)
    ]
    up.post("/v1/lookups", encode(lookups))
    up.post("/v1/outcomes", encode(outcomes))
    up.wait_for(f"SELECT count() FROM cells WHERE tenant = '{tenant}'", str(n))


def sample(up: Up, tenant: str, *options: object) -> dict[str, Any]:
    answer = run_command(
        "sample", "--day", DAY, "--tenant", tenant, "--json", "--data-dir", up.data_dir, *options
    )
    assert answer.returncode == 0, answer.stderr
    return dict(json.loads(answer.stdout))


def judge(up: Up, *options: object, code: int = 0) -> dict[str, Any]:
    answer = run_command("judge", "--json", "--data-dir", up.data_dir, *options)
    assert answer.returncode == code, answer.stderr + answer.stdout
    return dict(json.loads(answer.stdout))


def write_verdicts(sheet: Path, *verdicts: str) -> None:
    with open(sheet, encoding="utf-8-sig", newline="") as stream:
        rows = list(csv.DictReader(stream))
    for row, verdict in zip(rows, verdicts, strict=False):
        row["verdict"] = verdict
    with open(sheet, "w", encoding="utf-8-sig", newline="") as stream:
        writer = csv.DictWriter(stream, COLUMNS)
        writer.writeheader()
        writer.writerows(rows)


def test_a_sheet_goes_out_and_its_verdicts_come_back(up: Up, tmp_path: Path) -> None:
    fill_up(up, "sheet")
    sheet = tmp_path / "review.csv"
    assert sample(up, "sheet", "--size", 100, "--export", sheet)["exported"] == 12
    assert up.query("SELECT count() FROM samples WHERE tenant = 'sheet'") == "12"
    write_verdicts(sheet, "correct", "incorrect", "wrongg")
    refused = judge(up, sheet, "--judge-id", "r3", code=1)
    assert (refused["recorded"], refused["not_judged"]) == (0, 9)
    assert [(f["row"], f["column"]) for f in refused["faults"]] == [(4, "verdict")]
    assert judge(up, sheet, "--judge-id", "r3", "--partial", code=1)["recorded"] == 2
    write_verdicts(sheet, "correct", "incorrect", "partly")
    counted = "SELECT count() FROM judgements WHERE tenant = 'sheet'"
    up.wait_for(counted, "2")
    again = judge(up, sheet, "--judge-id", "r3")
    assert (again["recorded"], again["recorded_before"]) == (1, 2)
    up.wait_for(counted, "3")
    sql = (
        "SELECT arraySort(groupArray((verdict, source, judge_id))) FROM judgements "
        "WHERE tenant = 'sheet'"
    )
    assert up.query(sql) == (
        "[('correct','human','r3'),('incorrect','human','r3'),('partly','human','r3')]"
    )


def test_a_sheet_sent_twice_at_once_is_a_duplicate(up: Up, tmp_path: Path) -> None:
    fill_up(up, "twice", 2)
    sheet = tmp_path / "review.jsonl"
    lines = [{"tenant": "twice", "outcome_id": "twice-out-0", "verdict": "correct"}]
    sheet.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    nothing = tmp_path / "nothing"
    for _ in range(2):
        # Without a store to ask, the id alone makes it a duplicate.
        answer = run_command(
            "judge", sheet, "--judge-id", "a", "--collector", up.url, "--data-dir", nothing
        )
        assert answer.returncode == 0, answer.stderr
        assert answer.stdout.startswith("1 recorded")
    up.wait_for("SELECT count() FROM duplicates WHERE kind = 'judgement' AND tenant = 'twice'", "1")
    assert up.query("SELECT count() FROM judgements WHERE tenant = 'twice'") == "1"


def test_a_larger_size_adds_and_a_dry_run_stores_nothing(up: Up) -> None:
    fill_up(up, "sizes", 40)
    small = sample(up, "sizes", "--size", 5, "--dry-run")
    assert up.query("SELECT count() FROM samples WHERE tenant = 'sizes'") == "0"
    assert sample(up, "sizes", "--size", 5) == small
    before = up.query("SELECT groupArray(event_id) FROM samples WHERE tenant = 'sizes'")
    sample(up, "sizes", "--size", 20)
    after = up.query("SELECT groupArray(event_id) FROM samples WHERE tenant = 'sizes'")
    assert set(json.loads(before.replace("'", '"'))) < set(json.loads(after.replace("'", '"')))
    assert up.query("SELECT uniqExact(seed) FROM samples WHERE tenant = 'sizes'") == "1"


def test_a_program_judges_what_it_has_not_judged_yet(up: Up, tmp_path: Path) -> None:
    fill_up(up, "hook", 3)
    sample(up, "hook", "--size", 100)
    program = tmp_path / "judge.py"
    program.write_text(
        "import json, sys\n"
        "answer = json.load(sys.stdin)\n"
        "if answer['outcome_id'].endswith('1') and len(sys.argv) < 2: sys.exit('no idea')\n"
        "print(json.dumps({'verdict': 'correct', 'comment': answer['claims'][0]['text']}))\n"
    )
    command = f"{shlex.quote(sys.executable)} {shlex.quote(str(program))}"
    options = ("--day", DAY, "--tenant", "hook", "--judge-id", "m", "--judge-version", "2")
    first = judge(up, "--command", command, "--retries", 0, *options, code=1)
    assert (first["answers"], first["recorded"]) == (3, 2)
    assert [f["outcome_id"] for f in first["failures"]] == ["hook-out-1"]
    up.wait_for("SELECT count() FROM judgements WHERE tenant = 'hook'", "2")
    dry = run_command(
        "judge", "--command", command + " all", *options, "--dry-run", "--data-dir", up.data_dir
    )
    assert (dry.returncode, dry.stdout[:10]) == (0, "0 recorded")
    assert "hook-out-1: correct" in dry.stderr
    second = judge(up, "--command", command + " all", *options)
    assert (second["answers"], second["recorded"]) == (1, 1)
    up.wait_for(
        "SELECT count() FROM judgements WHERE tenant = 'hook' AND source = 'llm' "
        "AND judge_id = 'm' AND judge_version = '2'",
        "3",
    )


def test_judging_at_the_terminal_goes_on_where_it_was_left(up: Up) -> None:
    fill_up(up, "hand", 3)
    sample(up, "hand", "--size", 100)
    day = ("--interactive", "--day", DAY, "--tenant", "hand")
    options = (*day, "--judge-id", "p", "--data-dir", up.data_dir)
    first = run_command("judge", *options, stdin="c\n\nq\n")
    assert first.returncode == 0, first.stderr
    assert "1 recorded, 0 skipped, 2 left of 3" in first.stdout
    up.wait_for("SELECT count() FROM judgements WHERE tenant = 'hand'", "1")
    second = run_command("judge", *options, stdin="i\nold version\ni\n\n")
    assert "2 recorded, 0 skipped, 0 left of 2" in second.stdout
    up.wait_for("SELECT count() FROM judgements WHERE tenant = 'hand'", "3")


def test_agreement_of_two_judges_is_by_mode_and_has_no_value_where_undefined(
    up: Up, tmp_path: Path
) -> None:
    fill_up(up, "agree", 4)
    for name, verdicts in (
        ("one", ("correct", "correct", "incorrect", "incorrect")),
        ("two", ("correct", "incorrect", "incorrect", "incorrect")),
        ("yes", ("correct",)),
        ("sure", ("correct",)),
    ):
        sheet = tmp_path / f"{name}.jsonl"
        lines = [
            {"tenant": "agree", "outcome_id": f"agree-out-{i}", "verdict": verdict}
            for i, verdict in enumerate(verdicts)
        ]
        sheet.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
        judge(up, sheet, "--judge-id", f"agree-{name}")
    up.wait_for("SELECT count() FROM judgements WHERE tenant = 'agree'", "10")
    answer = run_command("judge", "--agreement", "--json", "--data-dir", up.data_dir)
    pairs = {
        (p["judge"], p["other_judge"]): p
        for p in json.loads(answer.stdout)
        if "agree-" in p["judge"]
    }
    found = pairs["human:agree-one", "human:agree-two"]
    assert (found["mode"], found["answers"], found["same_verdict"]) == ("dense", 4, 3)
    # Agreed 0.75, by chance 0.5 * 0.25 + 0.5 * 0.75 = 0.5.
    assert found["kappa"] == pytest.approx(0.5)
    assert pairs["human:agree-sure", "human:agree-yes"]["kappa"] is None
    text = run_command("judge", "--agreement", "--data-dir", up.data_dir).stdout
    assert "no value" in text


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["sample"], "--day"),
        (["sample", "--day", "30.11.2026"], "write YYYY-MM-DD"),
        (["sample", "--day", DAY, "--size", "0"], "at least 1"),
        (["sample", "--day", DAY, "--export", "x.xlsx"], "must end with .csv or .jsonl"),
        (["sample", "--day", DAY, "--export", "/dev/null/x.csv"], "cannot write"),
        (["judge"], "say one of: a FILE"),
        (["judge", "x.csv", "--interactive"], "say one of: a FILE"),
        (["judge", "x.csv"], "--judge-id"),
        (["judge", "x.csv", "--judge-id", "a"], "cannot read x.csv"),
        (["judge", "--interactive", "--judge-id", "a"], "--day"),
        (["judge", "--command", "x", "--judge-id", "a", "--source", "human"], "source llm"),
        (["judge", "--endpoint", "ftp://x", "--judge-id", "a", "--day", DAY], "--endpoint"),
        (["judge", "x.csv", "--judge-id", "a", "--limit", "-1"], "--limit must be positive"),
        (["judge", "--agreement", "--days", "0"], "--days must be at least 1"),
    ],
)
def test_a_users_mistake_is_a_sentence_and_exit_2(
    arguments: list[object], words: str, up: Up
) -> None:
    fill_up(up, "mistake", 1)
    answer = run_command(*arguments, "--data-dir", up.data_dir)
    assert answer.returncode == 2
    assert words in answer.stderr
    assert "Traceback" not in answer.stderr


def test_an_export_never_replaces_a_file_unasked(up: Up, tmp_path: Path) -> None:
    fill_up(up, "keep", 1)
    sheet = tmp_path / "review.csv"
    sheet.write_text("verdicts of a week")
    options = ("--day", DAY, "--tenant", "keep", "--export", sheet, "--data-dir", up.data_dir)
    answer = run_command("sample", *options)
    assert answer.returncode == 2
    assert sheet.read_text() == "verdicts of a week"
    assert run_command("sample", *options, "--force").returncode == 0
    assert os.stat(sheet).st_size > 100


def test_a_directory_at_rest_is_sampled_too(start: Callable[..., Up]) -> None:
    stack = start()
    fill_up(stack, "rest", 10)
    stack.stop()
    answer = run_command("sample", "--day", DAY, "--size", 5, "--data-dir", stack.data_dir)
    assert answer.returncode == 0, answer.stderr
    assert "rest: " in answer.stdout
    counted = run_command(
        "query", "SELECT count() > 0 AS any FROM samples", "--json", "--data-dir", stack.data_dir
    )
    assert json.loads(counted.stdout) == [{"any": 1}]
