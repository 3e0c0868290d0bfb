import re
from pathlib import Path

import pytest

from lookup_audit.collector import EmitterConfig
from lookup_audit.schemas.errors import ConfigError

README = Path(__file__).parents[4] / "collector" / "README.md"


def test_the_readme_lists_every_field_with_its_default() -> None:
    table = README.read_text().split("| emitter setting |")[1].split("\n## ")[0]
    rows = re.findall(r"^\| `(\w+)` \| (.+?) \| (.+) \|$", table, re.MULTILINE)
    documented = {name: (default, text) for name, default, text in rows}
    fields = {
        name: (_shown(field.get_default(call_default_factory=True)), field.description)
        for name, field in EmitterConfig.model_fields.items()
    }
    assert documented == fields, "collector/README.md and emitter/config.py differ"


def _shown(value: object) -> str:
    return "none" if value in (None, (), {}) else f"`{value}`"


def test_url_and_token_come_from_the_environment_where_nothing_is_given() -> None:
    environ = {"LOOKUP_AUDIT_URL": "http://collector:4318/", "LOOKUP_AUDIT_TOKEN": "la_x"}
    config = EmitterConfig.load(environ)
    assert config.url == "http://collector:4318"
    assert config.token is not None
    assert config.token.get_secret_value() == "la_x"
    assert EmitterConfig.load(environ, url="http://other").url == "http://other"
    assert EmitterConfig.load(environ, bootstrap_servers="a:1").url is None


@pytest.mark.parametrize(
    ("settings", "fix"),
    [
        pytest.param({"url": "collector:4318"}, "such as http://127.0.0.1:4318", id="no-scheme"),
        pytest.param({"url": "http://a:b@c"}, "set token", id="credentials"),
        pytest.param(
            {"url": "http://a", "bootstrap_servers": "b:1"}, "set one of them", id="two-ways"
        ),
        pytest.param({"max_queue_bytes": 2048}, "raise max_queue_bytes", id="queue"),
    ],
)
def test_a_wrong_setting_is_answered_with_its_fix(settings: dict[str, object], fix: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(fix)):
        EmitterConfig.load({}, **settings)
