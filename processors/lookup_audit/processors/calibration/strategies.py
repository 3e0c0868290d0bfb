"""What ``compare`` sets side by side: a model version, a ruleset or a selection, as one text.

``model=M``, ``mode=M``, ``ruleset=FILE`` and ``selection=S``, with commas between. What one side
names and the other does not holds for both.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from lookup_audit.processors.calibration.asked import Asked
from lookup_audit.processors.calibration.matching import StratumTrials
from lookup_audit.schemas.errors import ConfigError
from lookup_audit.schemas.ruleset import Ruleset

_PART = re.compile(r"(?:^|,)(model|mode|ruleset|selection)=")
_SELECTION = re.compile(r"stored|kept|top:[1-9][0-9]{0,3}|layer:(?:high|middle)")
STORED = "stored"
POOLING = frozenset({"all", "any", "both", "*"})


def refuse_pooling(mode: str) -> None:
    """Refuse a mode that means several.

    Raises:
        ConfigError: With the reason.
    """
    if mode.casefold() in POOLING or "," in mode or "+" in mode:
        raise ConfigError(
            f"modes are never pooled ({mode!r}): their levels are on different rulers, and a rate "
            "over both would say nothing of either; leave the mode out for a table of each"
        )


@dataclass(frozen=True, slots=True)
class Strategy:
    """One side of a comparison.

    Args:
        label: As the user wrote it.
        model_version: ``""`` for any.
        mode: ``""`` for any.
        ruleset: Instead of each lookup's own.
        selection: ``stored``, ``kept``, ``top:N`` or ``layer:high|middle``.
    """

    label: str
    model_version: str = ""
    mode: str = ""
    ruleset: Ruleset | None = None
    selection: str = STORED

    @property
    def is_as_stored(self) -> bool:
        """The answers that were given are this strategy's: nothing about it is supposed."""
        return self.ruleset is None and self.selection == STORED

    def selects(self, asked: Asked) -> tuple[str, ...]:
        """Chunks this strategy gives to the caller; the context budget is not applied anew."""
        kind, _, argument = self.selection.partition(":")
        if kind == STORED:
            return asked.given
        chosen = list(asked.kept)
        if kind == "top":
            chosen = chosen[: int(argument)]
        elif kind == "layer":
            wanted = ("high",) if argument == "high" else ("high", "middle")
            chosen = [c for c in chosen if asked.layer(c, self.ruleset) in wanted]
        return tuple(c.chunk_id for c in chosen if c.chunk_id is not None)


def parse_strategy(text: str, read_ruleset: Callable[[Path], Ruleset]) -> Strategy:
    """Read one side.

    Args:
        text: Such as ``model=minilm@2,mode=dense``.
        read_ruleset: Reads a ruleset file.

    Raises:
        ConfigError: The text is no strategy; the message names the part.
    """
    found = list(_PART.finditer(text))
    if not found or found[0].start() != 0:
        raise ConfigError(
            f"{text!r} is no strategy; write model=M, mode=M, ruleset=FILE or selection=S, with "
            "commas between, such as model=minilm@2,mode=dense"
        )
    parts: dict[str, str] = {}
    for match, following in zip(found, [*found[1:], None], strict=True):
        value = text[match.end() : following.start() if following else None]
        if not value:
            raise ConfigError(f"{match[1]}= is empty in {text!r}; give it a value or leave it out")
        if match[1] in parts:
            raise ConfigError(f"{match[1]}= comes twice in {text!r}; a side has one of each")
        parts[match[1]] = value
    refuse_pooling(parts.get("mode", ""))
    selection = parts.get("selection", STORED)
    if not _SELECTION.fullmatch(selection):
        raise ConfigError(
            f"selection={selection} is not known; use stored, kept, top:N, layer:high or "
            "layer:middle"
        )
    ruleset = read_ruleset(Path(parts["ruleset"])) if "ruleset" in parts else None
    return Strategy(text, parts.get("model", ""), parts.get("mode", ""), ruleset, selection)


def pair_strata(
    a: Strategy, b: Strategy, strata: Sequence[StratumTrials]
) -> list[tuple[StratumTrials, StratumTrials]]:
    """The strata to hold against each other, one pair a table.

    Raises:
        ConfigError: Both sides are the same, or one has no lookup of any gold question.
    """
    of_a, of_b = list(_of(a, strata)), list(_of(b, strata))
    for side, found in ((a, of_a), (b, of_b)):
        if not found:
            known = ", ".join(f"{s.model_version} ({s.mode})" for s in strata) or "none"
            raise ConfigError(
                f"no lookup of a gold question fits {side.label!r}; asked were: {known}"
            )
    pairs = [
        (one, other)
        for one in of_a
        for other in of_b
        if (one.mode == other.mode or (a.mode and b.mode))
        and (one.model_version == other.model_version or (a.model_version and b.model_version))
    ]
    if a.ruleset == b.ruleset and a.selection == b.selection:
        pairs = [(one, other) for one, other in pairs if one is not other]
    if not pairs:
        raise ConfigError(
            f"{a.label!r} and {b.label!r} are the same thing, or share no mode; name what differs"
        )
    return pairs


def _of(side: Strategy, strata: Iterable[StratumTrials]) -> Iterable[StratumTrials]:
    return (
        s
        for s in strata
        if side.model_version in ("", s.model_version) and side.mode in ("", s.mode)
    )
