"""Every metric that the collector and the emitter make is in the README, and no other."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[3] / "collector"
_MADE = re.compile(r"\.create_(?:counter|histogram|observable_gauge)\(\s*\"([^\"]+)\"")


def test_the_readme_names_every_metric() -> None:
    text = (ROOT / "README.md").read_text().split("\n## Telemetry\n")[1].split("\n## ")[0]
    documented = re.findall(r"^\| `([a-z_.]+)` \| `", text, re.MULTILINE)
    sources = (ROOT / "lookup_audit" / "collector").rglob("*.py")
    made = {name for file in sources for name in _MADE.findall(file.read_text())}
    assert sorted(documented) == sorted(made)
