import json
import re
from pathlib import Path

import pytest

from lookup_audit.collector.config import CollectorConfig
from lookup_audit.collector.redaction import RedactionConfig, load_redaction
from lookup_audit.schemas.errors import ConfigError

KEY = "k" * 32


def write(tmp_path: Path, content: object) -> Path:
    file = tmp_path / "redaction.json"
    file.write_text(content if isinstance(content, str) else json.dumps(content))
    return file


def test_nothing_asked_for_is_no_redaction() -> None:
    assert load_redaction(None, {}) is None


def test_file_and_environment_together_make_the_config(tmp_path: Path) -> None:
    file = write(tmp_path, {"fields": {"query.text": "hash"}, "patterns": ["email"]})
    environ = {"LOOKUP_AUDIT_REDACTION": str(file), "LOOKUP_AUDIT_REDACTION_KEY": KEY}
    config = load_redaction(None, environ)
    assert config is not None
    assert (config.fields, config.patterns) == ({"query.text": "hash"}, ("email",))
    assert KEY not in repr(config)


def test_a_key_alone_replaces_all_patterns() -> None:
    config = load_redaction(None, {"LOOKUP_AUDIT_REDACTION_KEY": KEY})
    assert config is not None
    assert config.patterns == ("token", "email", "national_id", "card", "phone")


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        pytest.param("[1", "is no JSON object", id="broken"),
        pytest.param({}, "set LOOKUP_AUDIT_REDACTION_KEY", id="no-key"),
        pytest.param({"key": "short"}, "redaction.key: has fewer than 32", id="short-key"),
        pytest.param({"key": KEY, "felds": {}}, "redaction.felds:", id="unknown"),
        pytest.param({"key": KEY, "patterns": ["iban"]}, "redaction.patterns.0:", id="pattern"),
        pytest.param(
            {"key": KEY, "fields": {"query.text": "mask"}},
            "redaction.fields.query.text:",
            id="action",
        ),
        *(
            pytest.param(
                {"key": KEY, "fields": {path: action}}, f"redaction.fields: {path}", id=path
            )
            for path, action in {
                "event_id": "drop",
                "candidates": "drop",
                "candidates.*.original_rank": "hash",
                "candidates.*.dense_distance": "drop",
                "candidates.*.hit_reasons.*": "hash",
                "candidates.*.source_url": "drop",
                "candidates.**": "drop",
                "thresholds": "drop",
                "mode": "hash",
                "projection": "hash",
                "**": "drop",
            }.items()
        ),
        pytest.param({"key": KEY, "fields": {"a..b": "drop"}}, "'a..b' is no path", id="no-path"),
    ],
)
def test_a_wrong_setting_is_named_with_its_field(
    tmp_path: Path, content: object, problem: str
) -> None:
    with pytest.raises(ConfigError, match=re.escape(problem)):
        load_redaction(write(tmp_path, content), {})


def test_a_file_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="redaction file"):
        load_redaction(tmp_path / "none.json", {})


def test_spans_that_wait_in_clear_on_disk_are_refused_beside_redaction(tmp_path: Path) -> None:
    redaction = RedactionConfig.model_validate({"key": KEY})
    with pytest.raises(ConfigError, match="otlp_spool_dir keeps spans as they came"):
        CollectorConfig.load(redaction=redaction, otlp_spool_dir=tmp_path)
