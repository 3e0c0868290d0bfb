"""The README's commands, run as they are printed."""

import re
import subprocess
import sys
from pathlib import Path

from tests.e2e.conftest import Up, clean_environment
from tests.support.events import encode, make_lookup, make_outcome

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def _block(name: str, up: Up) -> str:
    found = re.search(rf"<!-- test: {name} -->\n```\w+\n(.*?)```", README, re.S)
    assert found, f"README.md has no block marked 'test: {name}'"
    return found[1].replace("http://127.0.0.1:4318", up.url)


def _shell(text: str, up: Up) -> str:
    command = str(Path(sys.executable).with_name("lookup-audit"))
    environment = clean_environment() | {"LOOKUP_AUDIT_DATA_DIR": str(up.data_dir)}
    done = subprocess.run(
        ["bash", "-euc", text.replace(".venv/bin/lookup-audit", command)],
        capture_output=True,
        text=True,
        timeout=60,
        env=environment,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_first_event_by_curl_is_accepted_and_found_wrong(up: Up) -> None:
    assert _shell(_block("curl", up), up) == '{"accepted":1,"rejected":[]}'
    up.wait_for("SELECT count() FROM lookups WHERE event_id = 'first-1'", "1")
    shown = _shell(_block("lookup", up), up)
    assert "reported PRECISE, recomputed REFERENCE: fail" in shown
    assert "= 1 - 0.6 / 2 = 0.700000" in shown


def test_the_first_event_by_python_is_accepted(up: Up) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _block("python", up)],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout.strip() == '{"accepted":1,"rejected":[]}'
    up.wait_for("SELECT count() FROM lookups WHERE event_id = 'first-2'", "1")


def test_the_first_event_by_the_emitter_is_accepted(up: Up) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _block("emitter", up)],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert "accepted=1" in done.stdout
    up.wait_for("SELECT count() FROM lookups WHERE service = 'kb-retrieval'", "1")


def test_the_queries_answer(up: Up) -> None:
    assert "level_check" in _shell(_block("query", up), up)


def test_the_figures_are_printed(up: Up) -> None:
    lookup = make_lookup(tenant="readme")
    up.post("/v1/lookups", encode(lookup))
    up.post(
        "/v1/outcomes",
        encode(make_outcome(lookup_event_ids=[lookup["event_id"]]) | {"tenant": "readme"}),
    )
    up.wait_for("SELECT count() FROM cells WHERE tenant = 'readme'", "1")
    told = _shell(_block("figures", up), up)
    assert "High-score errors against low-score refusals" in told
    assert "High-score errors: wrong among judged PRECISE answers" in told


def test_drift_says_what_is_watched(up: Up) -> None:
    assert "atched" in _shell(_block("drift", up), up)


def test_every_view_named_exists(up: Up) -> None:
    table = README.split("| view of `audit` | one row |")[1].split("\n\n")[0]
    named = set(re.findall(r"`(\w+)`", "".join(row.split("|")[1] for row in table.split("\n")[2:])))
    present = set(up.query("SHOW TABLES FROM audit").split("\n"))
    assert named <= present
    assert present <= named
