from pathlib import Path

import pytest

from lookup_audit.deploy.ruleset_file import load_ruleset, write_ruleset
from lookup_audit.schemas.errors import ConfigError
from lookup_audit.schemas.ruleset import Ruleset


def test_what_is_written_is_read_as_the_same_ruleset(tmp_path: Path) -> None:
    ruleset = Ruleset(highly_relevant_threshold=0.531, reference_threshold=0.473)
    path = tmp_path / "规则.json"
    write_ruleset(path, Ruleset())
    write_ruleset(path, ruleset)
    assert load_ruleset(path).ruleset_id == ruleset.ruleset_id
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("[]", "is no ruleset"),
        ("{", "is no ruleset"),
        ('{"highly_relevant_threshold": "high"}', "highly_relevant_threshold: "),
        ('{"treshold": 1}', "treshold: "),
        ('{"reference_threshold": 0.9}', "reference_threshold is above"),
    ],
)
def test_a_wrong_file_is_refused_with_the_member(content: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "ruleset.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(ConfigError, match=said):
        load_ruleset(path)


def test_a_missing_place_is_a_configuration_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot read"):
        load_ruleset(tmp_path / "no.json")
    with pytest.raises(ConfigError, match="cannot write"):
        write_ruleset(tmp_path / "no" / "no.json", Ruleset())
