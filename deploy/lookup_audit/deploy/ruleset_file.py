"""Ruleset files: the members of a :class:`Ruleset` as one JSON object; absent ones are defaults."""

import json
from pathlib import Path

from pydantic import ValidationError

from lookup_audit.deploy.files import write_whole
from lookup_audit.schemas.decode import format_path
from lookup_audit.schemas.errors import ConfigError
from lookup_audit.schemas.ruleset import Ruleset

_MOST_BYTES = 1 << 20


def load_ruleset(path: Path) -> Ruleset:
    """Read a ruleset file.

    Raises:
        ConfigError: It cannot be read, or is no ruleset; every wrong member is named.
    """
    try:
        with path.open("rb") as stream:
            content = stream.read(_MOST_BYTES + 1)
    except OSError as error:
        raise ConfigError(f"cannot read the ruleset {path}: {error.strerror}") from error
    if len(content) > _MOST_BYTES:
        raise ConfigError(f"{path} is larger than 1 MiB and no ruleset")
    try:
        ruleset = Ruleset.model_validate_json(content.removeprefix(b"\xef\xbb\xbf"))
    except ValidationError as error:
        faults = "; ".join(
            f"{format_path(fault['loc']) or 'the file'}: {fault['msg']}"
            for fault in error.errors(include_url=False)
        )
        raise ConfigError(f"{path} is no ruleset: {faults}") from error
    if ruleset.reference_threshold > ruleset.highly_relevant_threshold:
        raise ConfigError(
            f"{path}: reference_threshold is above highly_relevant_threshold; lower it"
        )
    return ruleset


def write_ruleset(path: Path, ruleset: Ruleset) -> None:
    """Write a ruleset file that :func:`load_ruleset` reads; the old one stays until it is whole.

    Raises:
        ConfigError: It cannot be written.
    """
    write_whole(path, (json.dumps(ruleset.model_dump(), indent=2) + "\n").encode())
