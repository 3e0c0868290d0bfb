"""A ruleset in a JSON file of a person's: read strictly, and refused with the field and the fix."""

import difflib
import json
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from lookup_audit.deploy.files import write_whole
from lookup_audit.schemas.errors import ConfigError
from lookup_audit.schemas.ruleset import Ruleset

_MAX_BYTES = 1 << 20
_ON_THE_RULER = (
    "highly_relevant_threshold",
    "reference_threshold",
)


def read_ruleset(path: Path) -> Ruleset:
    """The ruleset in a file; members it does not name take their defaults.

    Raises:
        ConfigError: It cannot be read or is no sensible ruleset; every field at fault is named.
    """
    try:
        with path.open("rb") as file:
            content = file.read(_MAX_BYTES + 1)
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from error
    if len(content) > _MAX_BYTES:
        raise ConfigError(f"{path} is larger than a ruleset can be")
    try:
        # Some editors put a byte order mark before the text.
        return parse_ruleset(content.removeprefix(b"\xef\xbb\xbf"))
    except ConfigError as error:
        raise ConfigError(f"{path} is no ruleset:\n{error}") from error


def write_ruleset(path: Path, ruleset: Ruleset) -> None:
    """Write a file that :func:`read_ruleset` reads; the old one stays until it is whole.

    Raises:
        ConfigError: It cannot be written.
    """
    write_whole(path, (json.dumps(ruleset.model_dump(), indent=2) + "\n").encode())


def parse_ruleset(content: bytes) -> Ruleset:
    """The ruleset in a JSON object.

    Raises:
        ConfigError: One line a fault.
    """
    try:
        found = json.loads(content, object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"  it must be one JSON object ({error})") from error
    if not isinstance(found, dict):
        raise ConfigError(
            '  it must be one JSON object, such as {"highly_relevant_threshold": 0.8}'
        )
    try:
        ruleset = Ruleset.model_validate_json(json.dumps(found))
    except ValidationError as error:
        raise ConfigError("\n".join(f"  {_fault(dict(e))}" for e in error.errors())) from error
    faults = _senseless(ruleset)
    if faults:
        raise ConfigError("\n".join(f"  {fault}" for fault in faults))
    return ruleset


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    names = [name for name, _ in pairs]
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(f"  {name}: is given twice; keep one")
    return dict(pairs)


def _fault(error: dict[str, Any]) -> str:
    name = ".".join(map(str, error["loc"])) or "ruleset"
    if error["type"] != "extra_forbidden":
        return f"{name}: {error['msg']}, not {json.dumps(error['input'], default=str)[:60]}"
    known = list(Ruleset.model_fields)
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {near[0]}?" if near else f"a ruleset has {', '.join(known)}"
    return f"{name}: there is no such field; {hint}"


def _senseless(ruleset: Ruleset) -> list[str]:
    """What is a legal number and yet no rule anybody could want."""
    faults = [
        f"{name}: {value:g} is not on the ruler of quality, which goes from 0 to 1"
        for name in _ON_THE_RULER
        if not 0 <= (value := getattr(ruleset, name)) <= 1
    ]
    if not faults and ruleset.reference_threshold > ruleset.highly_relevant_threshold:
        faults.append(
            f"reference_threshold: {ruleset.reference_threshold:g} is above "
            f"highly_relevant_threshold ({ruleset.highly_relevant_threshold:g}), so that no "
            "lookup could be REFERENCE; swap or lower it"
        )
    if ruleset.middle_layer_similarity > ruleset.high_layer_similarity:
        faults.append(
            f"middle_layer_similarity: {ruleset.middle_layer_similarity:g} is above "
            f"high_layer_similarity ({ruleset.high_layer_similarity:g}), so that no candidate "
            "could be middle by similarity; swap or lower it"
        )
    return faults
