import re
from pathlib import Path

import pytest
from pydantic import ValidationError

from lookup_audit.collector.auth import hash_token, make_token
from lookup_audit.collector.config import CollectorConfig, is_loopback
from lookup_audit.schemas.errors import ConfigError

README = Path(__file__).parents[3] / "collector" / "README.md"
HASH = hash_token(make_token())


def test_the_defaults_listen_on_loopback_without_tokens() -> None:
    config = CollectorConfig()
    assert (config.host, config.port, config.token_hashes) == ("127.0.0.1", 4318, ())


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.7", "collector.example.com", ""])
def test_a_host_that_others_reach_needs_tokens_and_the_message_names_both_fixes(host: str) -> None:
    with pytest.raises(ConfigError, match="set token_hashes, or listen on 127.0.0.1"):
        CollectorConfig.load(host=host)
    assert CollectorConfig.load(host=host, token_hashes=(HASH,)).host == host


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.9.1", "::1", "localhost"])
def test_loopback_needs_no_token(host: str) -> None:
    assert is_loopback(host)
    assert CollectorConfig.load(host=host).host == host


def test_every_mistake_is_reported_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        CollectorConfig.load(port=70000, bootstrap_servers="kafka", tokens=["x"], retention_days=0)
    lines = str(caught.value).splitlines()
    assert [line.split(":")[0] for line in lines] == [
        "port",
        "bootstrap_servers",
        "retention_days",
        "tokens",
    ]


@pytest.mark.parametrize(
    ("settings", "fix"),
    [
        pytest.param({"bootstrap_servers": ""}, "name at least one broker", id="no-broker"),
        pytest.param({"bootstrap_servers": "kafka"}, "write host:port", id="no-port"),
        pytest.param({"bootstrap_servers": "kafka:x"}, "write host:port", id="bad-port"),
        pytest.param({"token_hashes": ["secret"]}, "make one with", id="token-in-clear"),
        pytest.param({"kafka_options": {"acks": 1}}, "acks: set by the collector", id="own-option"),
        pytest.param(
            {"max_event_bytes": 2048, "max_body_bytes": 1024}, "raise max_body_bytes", id="event"
        ),
        pytest.param({"max_in_flight_bytes": 1024}, "raise max_in_flight_bytes", id="in-flight"),
        pytest.param({"max_in_flight_events": 1}, "raise max_in_flight_events", id="events"),
    ],
)
def test_a_wrong_setting_is_answered_with_its_fix(settings: dict[str, object], fix: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(fix)):
        CollectorConfig.load(**settings)


def test_a_token_put_in_the_place_of_a_hash_is_not_repeated_in_the_message() -> None:
    with pytest.raises(ConfigError) as caught:
        CollectorConfig.load(token_hashes=["hunter2hunter2"])
    assert "hunter2" not in str(caught.value)


def test_secrets_are_not_shown_in_the_repr() -> None:
    config = CollectorConfig(
        token_hashes=(HASH,), kafka_options={"sasl_plain_password": "open sesame"}
    )
    assert HASH not in repr(config)
    assert "sesame" not in repr(config)


def test_brokers_may_be_one_text_with_commas() -> None:
    assert CollectorConfig.load(bootstrap_servers="a:1, [::1]:2").bootstrap_servers == (
        "a:1",
        "[::1]:2",
    )


def test_a_config_cannot_be_changed() -> None:
    with pytest.raises(ValidationError):
        CollectorConfig().port = 1  # type: ignore[misc]


def test_the_readme_lists_every_field_with_its_default() -> None:
    settings = README.read_text().split("## Settings")[1]
    rows = re.findall(r"^\| `(\w+)` \| (.+?) \| (.+) \|$", settings, re.MULTILINE)
    documented = {name: (default, text) for name, default, text in rows}
    fields = {
        name: (_shown(field.get_default(call_default_factory=True)), field.description)
        for name, field in CollectorConfig.model_fields.items()
    }
    assert documented == fields, "collector/README.md and collector/config.py differ"


def _shown(value: object) -> str:
    if isinstance(value, tuple):
        return f"`{','.join(value)}`" if value else "none"
    return "none" if value == {} else f"`{value}`"
