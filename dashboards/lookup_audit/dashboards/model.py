"""What a board is made of, written down once: Grafana's JSON and the built-in page follow from it.

Nothing here knows Grafana's formats or HTML. A panel's SQL is ClickHouse's with the plugin's time
macros and ``${variable:percentencode}``; ``columns`` says what comes back, in order.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, Literal

Kind = Literal["table", "timeseries", "stat", "text", "record"]
Color = Literal["green", "yellow", "orange", "red", "blue", "text"]
Unit = Literal["short", "percentunit", "s", "ms", "bytes", "none", "time", "text", "json"]

# The four variables of every board, in the order they are shown.
STRATUM: Final = ("tenant", "service", "model_version", "mode")
ALL: Final = "*"
NONE: Final = "(none)"
NO_VALUE: Final = "no value"


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a panel's answer.

    Args:
        name: As the SQL names it.
        title: As people read it; the name without underscores unless given.
        unit: How values are shown. ``text`` is a label and never a number.
        links: Whether a value is an event id, shown as a link to the board of one lookup.
    """

    name: str
    title: str = ""
    unit: Unit = "text"
    links: bool = False

    @property
    def heading(self) -> str:
        """What stands above the column."""
        return self.title or self.name.replace("_", " ")


@dataclass(frozen=True, slots=True)
class Step:
    """From this value on, this colour; ``None`` is the base."""

    at: float | None
    color: Color


@dataclass(frozen=True, slots=True)
class Panel:
    """One question and its answer.

    Args:
        id: Stable within its board: links and alert rules refer to it.
        title: What it is.
        kind: ``record`` is one row shown as name and value; ``text`` has no query.
        shows: What the figures are, with their formula.
        misread: How a reader goes wrong with it.
        do: What to do about it.
        sql: One reading statement.
        columns: What the statement answers. Of a ``timeseries`` the first is ``time``, then labels
            (``text``), then values.
        unit: Of the values.
        no_value: Shown where there is nothing.
        steps: Thresholds.
        minimum: Of the value axis.
        maximum: Of the value axis.
        stacked: Whether series are stacked.
        width: Of 24.
        height: In rows of 30 pixels.
        modeless: Why no mode belongs to its figures; empty where a mode does.
        ignores: Variables that do not apply, since what is read does not have them.
    """

    id: int
    title: str
    kind: Kind
    shows: str
    misread: str
    do: str
    sql: str = ""
    columns: tuple[Column, ...] = ()
    unit: Unit = "short"
    no_value: str = NO_VALUE
    steps: tuple[Step, ...] = (Step(None, "text"),)
    minimum: float | None = None
    maximum: float | None = None
    stacked: bool = False
    width: int = 12
    height: int = 8
    modeless: str = ""
    ignores: tuple[str, ...] = ()

    @property
    def description(self) -> str:
        """The help of the panel, in three parts, with the variables that do not apply."""
        parts = [self.shows, f"Misread: {self.misread}", f"Do: {self.do}"]
        if self.ignores:
            names = ", ".join(name.replace("_", " ") for name in self.ignores)
            parts.append(f"Not filtered by {names}: what is read here does not have it.")
        if self.modeless:
            parts.append(f"Not by mode: {self.modeless}")
        return "\n\n".join(parts)

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the columns that tell series apart."""
        return tuple(c.name for c in self.columns if c.unit == "text")

    @property
    def values(self) -> tuple[Column, ...]:
        """The columns that are drawn."""
        return tuple(c for c in self.columns if c.unit not in ("text", "time", "json"))


@dataclass(frozen=True, slots=True)
class Variable:
    """A choice of the reader.

    Args:
        name: In the URL and in ``${name:percentencode}``.
        label: Beside the picker.
        sql: Answers ``value, text``; the value is encoded, so that it may be listed with commas.
            Empty for a free text.
        hidden: Carried from board to board and not shown.
    """

    name: str
    label: str
    sql: str = ""
    hidden: bool = False

    @property
    def is_text(self) -> bool:
        """Whether the reader types the value."""
        return not self.sql


@dataclass(frozen=True, slots=True)
class Annotation:
    """Moments drawn over time series; its SQL answers ``time, text, tags``."""

    name: str
    sql: str
    color: Color


@dataclass(frozen=True, slots=True)
class Board:
    """One page of panels.

    Args:
        uid: Stable, at most 40 characters.
        title: What it answers.
        about: One sentence.
        panels: At most 12.
        variables: In the order shown.
        annotations: Drawn over its time series.
        since: The range's start that it opens with.
    """

    uid: str
    title: str
    about: str
    panels: tuple[Panel, ...]
    variables: tuple[Variable, ...]
    annotations: tuple[Annotation, ...] = field(default=())
    since: str = "now-7d"

    def queries(self) -> Iterator[tuple[str, str]]:
        """Every statement with a name for it: panels, variables, annotations."""
        for panel in self.panels:
            if panel.sql:
                yield f"{self.uid} panel {panel.id}", panel.sql
        for variable in self.variables:
            if variable.sql:
                yield f"{self.uid} variable {variable.name}", variable.sql
        for annotation in self.annotations:
            yield f"{self.uid} annotation {annotation.name}", annotation.sql


def text(name: str, title: str = "", *, links: bool = False) -> Column:
    """A label column."""
    return Column(name, title, "text", links)


def number(name: str, title: str = "", unit: Unit = "short") -> Column:
    """A value column."""
    return Column(name, title, unit)


def share(name: str, title: str = "") -> Column:
    """A column of fractions, shown as percent."""
    return Column(name, title, "percentunit")


def time(name: str = "time", title: str = "") -> Column:
    """A column of moments."""
    return Column(name, title, "time")
