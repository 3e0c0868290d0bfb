"""``lookup-audit drift`` as a user runs it, over a directory with one change that was alarmed."""

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.conftest import COMMAND, run_command
from tests.support.alarms import Stub


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("drift") / "data"
    fill(directory)
    return directory


def fill(directory: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "tests.support.drift_data", str(directory)],
        check=True,
        capture_output=True,
        cwd=Path(__file__).parents[2],
    )


def test_the_state_names_what_moved_and_what_is_not_watched_yet(data_dir: Path) -> None:
    answer = run_command("drift", "--data-dir", data_dir)

    assert answer.returncode == 1, answer.stderr
    assert "not watching yet: 240 of 500 calls" in answer.stdout
    assert "alarm " in answer.stdout
    assert "The PRECISE rate of acme, kb, mode dense, model m1 fell by" in answer.stdout


def test_the_state_as_json_has_every_stratum_and_alarm(data_dir: Path) -> None:
    answer = run_command("drift", "--data-dir", data_dir, "--json")
    found = json.loads(answer.stdout)

    assert {s["mode"] for s in found["strata"]} == {"dense", "hybrid"}
    assert [a["direction"] for a in found["alarms"]] == ["down"]
    assert found["closed_to"].startswith("2026-11-03")


def test_an_alarm_that_is_not_there_is_a_usage_error(data_dir: Path) -> None:
    answer = run_command("drift", "accept", "nope", "--by", "mia", "--data-dir", data_dir)

    assert answer.returncode == 2
    assert "there is no alarm nope" in answer.stderr
    assert "Traceback" not in answer.stderr


def test_an_acceptance_is_kept_with_its_name_and_given_once(data_dir: Path) -> None:
    alarms = json.loads(run_command("drift", "alarms", "--json", "--data-dir", data_dir).stdout)
    accept = ("drift", "accept", alarms[0]["alarm_id"], "--by", "mia 米娅", "--data-dir", data_dir)

    tried = run_command(*accept, "--dry-run")
    assert (tried.returncode, tried.stdout.split(":")[0]) == (0, "would be accepted")
    given = run_command(*accept)
    assert (given.returncode, given.stdout.split(":")[0]) == (0, "accepted")
    again = run_command(*accept)
    assert again.returncode == 2
    assert "is accepted by mia 米娅" in again.stderr
    assert run_command("drift", "--data-dir", data_dir).returncode == 0


@pytest.mark.parametrize("verb", ["up", "watch"])
def test_a_setting_without_sense_is_refused_with_one_that_has(verb: str, tmp_path: Path) -> None:
    where = ("--data-dir", tmp_path) if verb == "up" else ("--store", "http://127.0.0.1:1")
    answer = run_command(verb, *where, "--ignore-points", "0")

    assert answer.returncode == 2
    assert "1 is sensible" in answer.stderr
    assert "Traceback" not in answer.stderr


@pytest.mark.slow
def test_a_running_stack_tells_the_webhook_of_an_alarm_and_of_its_acceptance(
    tmp_path: Path,
) -> None:
    directory = tmp_path / "data"
    fill(directory)
    stub = Stub([503])
    command = [COMMAND, "up", "--port", "0", "--data-dir", directory, "--webhook", stub.url]
    stack = subprocess.Popen([*map(str, command)], stdout=subprocess.PIPE, text=True)
    try:
        wait_until(lambda: bool(stub.bodies))
        told = stub.bodies[0][0]
        assert told["labels"]["direction"] == "down"
        assert told["generatorURL"] == "http://board/acme"
        alarm = told["labels"]["alarm_id"]
        answer = run_command("drift", "accept", alarm, "--by", "mia", "--data-dir", directory)
        assert answer.returncode == 0, answer.stderr
        wait_until(lambda: stub.bodies[-1][0]["annotations"]["state"] == "accepted")
        assert stub.bodies[-1][0]["labels"] == told["labels"]
        heard = len(stub.bodies)
    finally:
        stack.terminate()
        stack.communicate(timeout=60)
        stub.stop()
    assert [b[0]["annotations"]["state"] for b in stub.bodies[heard:]] == []


def wait_until(true: Callable[[], bool], seconds: float = 90.0) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "it did not come"
        time.sleep(0.1)
