"""What the collector's README prints is run as it is printed."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from lookup_audit.collector import LookupEmitter
from lookup_audit.collector.envelope import SCHEMAS, TOPICS
from lookup_audit.collector.redaction import load_redaction
from lookup_audit.schemas.names import EventType, Header
from tests.unit.collector.running import running

ROOT = Path(__file__).parents[3]
README = (ROOT / "collector" / "README.md").read_text(encoding="utf-8")


def section(title: str) -> str:
    return README.split(f"\n## {title}\n")[1].split("\n## ")[0]


@pytest.mark.skipif(shutil.which("curl") is None, reason="no curl on the PATH")
def test_the_event_by_curl_is_accepted() -> None:
    found = re.search(r"<!-- test: curl -->\n```sh\n(.*?)```", README, re.S)
    assert found
    with running() as collector:
        command = found[1].replace("http://127.0.0.1:4318", collector.server.url)
        done = subprocess.run(["bash", "-euc", command], capture_output=True, text=True, timeout=60)
        assert (done.stdout, done.stderr) == ('{"accepted":1,"rejected":[]}', "")
        assert collector.values[0].startswith(b"{")


def test_the_emitters_lines_deliver_an_event() -> None:
    found = re.search(r"```python\n(.*?)```", section("Emitter"), re.S)
    assert found
    with running() as collector:
        names: dict[str, LookupEmitter] = {}
        exec(found[1].replace("http://127.0.0.1:4318", collector.server.url), names)
        names["emitter"].close()
        assert names["emitter"].stats().accepted == 1
        assert len(collector.records) == 1


def test_the_redaction_file_is_a_valid_one(tmp_path: Path) -> None:
    found = re.search(r"```json\n(.*?)```", section("Redaction"), re.S)
    assert found
    file = tmp_path / "redaction.json"
    file.write_text(found[1])
    assert load_redaction(file, {"LOOKUP_AUDIT_REDACTION_KEY": "k" * 32}) is not None


def test_topics_types_and_headers_are_those_of_the_code() -> None:
    text = section("Other languages")
    rows = re.findall(r"^\| \w+ \| `(\S+)` \| `(\S+)` \| `(\S+)\.json` \|$", text, re.MULTILINE)
    assert rows == [
        (str(TOPICS[kind]), str(kind), SCHEMAS[kind].split("/")[-2]) for kind in EventType
    ]
    headers = set(re.findall(r"^\| `([a-z_-]+)` \| ", text, re.MULTILINE))
    ours = {str(header) for header in Header if not header.startswith("dlq.")}
    assert headers == ours - {Header.TRACE_STATE, Header.REDACTION}
    for kind in EventType:
        assert (ROOT / "schemas" / "published" / f"{SCHEMAS[kind].split('/')[-2]}.json").exists()
