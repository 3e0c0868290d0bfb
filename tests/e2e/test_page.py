"""The page of a running ``up``, with and without tokens, and in a real browser where one is."""

import json
import re
import shutil
import subprocess
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest

from lookup_audit.collector.auth import make_token
from tests.e2e.conftest import Up
from tests.support.events import make_lookup

BROWSER = shutil.which("chromium") or shutil.which("google-chrome")
QUERY = "为什么 <script>alert(1)</script>"


def get(url: str, **headers: str) -> tuple[int, str]:
    request = urllib.request.Request(url, headers={"Accept": "text/html", **headers})
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def send_one(up: Up, **over: object) -> str:
    event = make_lookup(query={"text": QUERY, "language": "zh"}, **over)
    up.post("/v1/lookups", json.dumps(event).encode())
    event_id = str(event["event_id"])
    up.wait_for(f"SELECT count() FROM audit.lookups WHERE event_id = '{event_id}'", "1")
    return event_id


def test_a_lookup_is_found_on_the_page_soon_after_it_was_sent(up: Up) -> None:
    event_id = send_one(up)
    status, page = get(f"{up.url}/?board=lookup&var-event_id={event_id}")

    assert status == 200
    assert "为什么 &lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "1 - (0.41) / 2 = 0.795" in page


def test_curl_still_gets_the_addresses_as_text(up: Up) -> None:
    with urllib.request.urlopen(f"{up.url}/", timeout=10) as answer:
        assert "send events" in answer.read().decode()


def test_another_site_may_not_read_the_page(up: Up) -> None:
    assert get(f"{up.url}/", **{"Sec-Fetch-Site": "cross-site"})[0] == 403


def test_with_tokens_the_page_wants_one(start: Callable[..., Up], tmp_path: Path) -> None:
    token = make_token()
    (tmp_path / "tokens").write_text(token)
    up = start(tmp_path / "data", "--tokens", str(tmp_path / "tokens"))

    status, form = get(f"{up.url}/")
    assert status == 401
    assert 'id="token-form"' in form
    assert get(f"{up.url}/page/page.js")[0] == 200
    assert get(f"{up.url}/", Authorization=f"Bearer {token}")[0] == 200
    assert get(f"{up.url}/clickhouse?query=SELECT+1")[0] == 401


@pytest.mark.skipif(BROWSER is None, reason="no chromium is installed")
def test_a_browser_shows_every_board_and_complains_of_nothing(up: Up, tmp_path: Path) -> None:
    event_id = send_one(up, mode="hybrid")
    for board in ("overview", "drift", "recompute", "refusals", "pipeline", "lookup"):
        done = subprocess.run(
            [
                str(BROWSER), "--headless", "--no-sandbox", "--disable-gpu",
                f"--user-data-dir={tmp_path / 'profile'}", "--enable-logging=stderr",
                "--dump-dom", f"{up.url}/?board={board}&from=now-1h&var-event_id={event_id}",
            ],
            capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
        said = [line for line in done.stderr.splitlines() if "CONSOLE" in line]

        assert said == [], board
        assert re.search(r"<h1>.+</h1>", done.stdout), board
        assert 'class="problem"' not in done.stdout, board
        assert "alert(1)</script>" not in done.stdout, board
