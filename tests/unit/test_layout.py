"""What one import namespace over five folders needs, and keeps needing."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
STAGES = ["schemas", "collector", "processors", "dashboards", "deploy"]
MAX_LINES = 400


def modules() -> list[Path]:
    return sorted(file for stage in STAGES for file in (ROOT / stage).rglob("*.py"))


@pytest.mark.parametrize("stage", STAGES)
def test_the_namespace_folder_is_no_package(stage: str) -> None:
    assert not (ROOT / stage / "lookup_audit" / "__init__.py").exists(), (
        "an __init__.py here would hide the other four stages"
    )


@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_is_a_typed_package_of_its_folders_name(stage: str) -> None:
    package = ROOT / stage / "lookup_audit" / stage

    assert (package / "__init__.py").is_file()
    assert (package / "py.typed").is_file()


@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_holds_nothing_else_in_the_namespace(stage: str) -> None:
    namespace = ROOT / stage / "lookup_audit"

    found = [file.name for file in namespace.iterdir() if file.name != "__pycache__"]

    assert found == [stage]


def test_nobody_imports_a_stage_through_its_folder() -> None:
    wrong = re.compile(rf"^\s*(?:from|import) (?:{'|'.join(STAGES)})[. ]", re.MULTILINE)
    files = [*modules(), *(ROOT / "tests").rglob("*.py")]

    assert [str(file.relative_to(ROOT)) for file in files if wrong.search(file.read_text())] == []


def test_no_module_is_too_long_to_read() -> None:
    lengths = {
        str(file.relative_to(ROOT)): len(file.read_text().splitlines()) for file in modules()
    }

    assert {name: length for name, length in lengths.items() if length > MAX_LINES} == {}
