"""The one table: what was measured, against what, and whether the goal is held."""

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

_COMPARE: Final[dict[str, Callable[[float, float], bool]]] = {
    ">=": operator.ge,
    "<": operator.lt,
}


@dataclass(frozen=True, slots=True)
class Goal:
    """One line of the table that can be held or missed.

    Args:
        what: What is measured, and against what.
        absolute: The numbers as measured.
        value: The number the goal is about.
        unit: Unit of value and limit, such as ``x``.
        sense: How value and limit compare where the goal is held.
        limit: The goal; ``None`` where the line only informs.
    """

    what: str
    absolute: str
    value: float
    unit: str
    sense: Literal[">=", "<"] = ">="
    limit: float | None = None

    @property
    def is_held(self) -> bool | None:
        """Whether the goal is held; ``None`` without one."""
        return None if self.limit is None else _COMPARE[self.sense](self.value, self.limit)

    def cells(self) -> tuple[str, ...]:
        """The line's cells."""
        value = f"{self.value:.2f}" if self.value < 10 else f"{self.value:,.0f}"
        goal = "" if self.limit is None else f"{self.sense} {self.limit:g} {self.unit}"
        word = {True: "held", False: "MISSED", None: ""}[self.is_held]
        return self.what, self.absolute, f"{value} {self.unit}", goal, word


def render(goals: Sequence[Goal]) -> str:
    """All lines below one head, as a Markdown table with even columns."""
    head = ("what", "measured", "result", "goal", "")
    lines = [head, *(goal.cells() for goal in goals)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    text = [_line(cells, widths) for cells in lines]
    return "\n".join([text[0], _line(["-" * width for width in widths], widths), *text[1:]])


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = (cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
    return f"| {' | '.join(padded)} |"
