"""What the configuration models of the collector have in common."""

from pydantic import ValidationError

MEBIBYTE = 1024 * 1024


def split_commas(value: object) -> object:
    """Text as the tuple of its parts between commas; anything else as it is."""
    if isinstance(value, str):
        return tuple(part.strip() for part in value.split(",") if part.strip())
    return value


def mistakes(error: ValidationError, *, prefix: str = "") -> str:
    """Every mistake in a config, one a line, each with the field's name first.

    Args:
        error: What the model said.
        prefix: Where the model stands in what the user wrote.
    """
    lines = []
    for each in error.errors(include_url=False, include_input=False):
        place = ".".join(map(str, [*([prefix] if prefix else []), *each["loc"]]))
        said = each["msg"].removeprefix("Value error, ")
        lines.append(f"{place}: {said}" if place else said)
    return "\n".join(lines)
