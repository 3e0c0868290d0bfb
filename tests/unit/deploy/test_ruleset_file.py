import json
from pathlib import Path

import pytest

from lookup_audit.deploy.ruleset_file import parse_ruleset, read_ruleset, write_ruleset
from lookup_audit.schemas.errors import ConfigError
from lookup_audit.schemas.ruleset import DEFAULT_RULESET, Ruleset


def test_absent_fields_take_their_defaults() -> None:
    ruleset = parse_ruleset(b'{"highly_relevant_threshold": 0.8}')
    assert ruleset == DEFAULT_RULESET.model_copy(update={"highly_relevant_threshold": 0.8})
    assert parse_ruleset(b"{}") == DEFAULT_RULESET


def test_a_ruleset_written_out_is_read_as_itself() -> None:
    ruleset = Ruleset(rule="l0-hint/1", distance_metric="cosine_distance", normalized=True)
    assert parse_ruleset(ruleset.model_dump_json().encode()) == ruleset


def test_every_field_at_fault_is_named_with_the_fix() -> None:
    bad = {
        "highly_relevant_treshold": 0.8,
        "reference_threshold": "0.5",
        "distance_metric": "dot",
        "max_l2_distance": 0,
        "normalized": 1,
    }
    with pytest.raises(ConfigError) as refused:
        parse_ruleset(json.dumps(bad).encode())
    text = str(refused.value)
    assert "did you mean highly_relevant_threshold?" in text
    assert 'reference_threshold: Input should be a valid number, not "0.5"' in text
    assert "distance_metric: Input should be 'l2', 'l2_squared' or 'cosine_distance'" in text
    assert "max_l2_distance: Input should be greater than 0" in text
    assert "normalized: " in text


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "one JSON object"),
        (b"[]", "one JSON object"),
        (b"null", "one JSON object"),
        (b"[" * 100_000, "one JSON object"),
        (b"\xff\xfe", "one JSON object"),
        (b'{"rule": "unified-quality/1", "rule": "l0-hint/1"}', "rule: is given twice"),
        (b'{"highly_relevant_threshold": NaN}', "highly_relevant_threshold"),
        (b'{"highly_relevant_threshold": 75}', "from 0 to 1"),
        (b'{"highly_relevant_threshold": 0.4}', "no lookup could be REFERENCE"),
        (b'{"high_layer_similarity": 0.5}', "middle_layer_similarity: 0.7 is above"),
        ('{"阈值": 1}'.encode(), "there is no such field; a ruleset has rule"),
    ],
)
def test_what_is_no_sensible_ruleset_is_refused(content: bytes, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        parse_ruleset(content)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"cannot read .*nothing\.json"):
        read_ruleset(tmp_path / "nothing.json")
    with pytest.raises(ConfigError, match="Is a directory"):
        read_ruleset(tmp_path)
    huge = tmp_path / "huge.json"
    huge.write_bytes(b" " * (1 << 21))
    with pytest.raises(ConfigError, match="larger"):
        read_ruleset(huge)


def test_a_fault_in_a_file_is_told_with_its_name(tmp_path: Path) -> None:
    path = tmp_path / "bad.json"
    path.write_text('{"rule": 1}', encoding="utf-8")
    with pytest.raises(ConfigError, match=r"bad\.json is no ruleset:\n  rule: "):
        read_ruleset(path)


def test_what_is_written_is_read_as_the_same_ruleset(tmp_path: Path) -> None:
    ruleset = Ruleset(highly_relevant_threshold=0.531, reference_threshold=0.473)
    path = tmp_path / "规则.json"
    write_ruleset(path, Ruleset())
    write_ruleset(path, ruleset)
    assert read_ruleset(path) == ruleset
    assert [file.name for file in tmp_path.iterdir()] == [path.name]
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert read_ruleset(path) == ruleset


def test_a_place_that_cannot_be_written_is_a_configuration_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot write"):
        write_ruleset(tmp_path / "no" / "no.json", Ruleset())
