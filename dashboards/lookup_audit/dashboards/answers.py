"""What a statement answered, and whether Grafana could draw it.

Where the answer comes from is the caller's affair: anything that runs a statement and gives back
ClickHouse's ``JSONCompact`` will do.
"""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from lookup_audit.dashboards.model import Panel

_WRAPPED = re.compile(r"^(?:Nullable|LowCardinality)\((.*)\)$")
_NUMBER = re.compile(r"^(?:U?Int\d+|Float\d+|Decimal.*)$")


@dataclass(frozen=True, slots=True)
class Answer:
    """Rows with the names and ClickHouse types of their columns."""

    names: tuple[str, ...]
    types: tuple[str, ...]
    rows: list[list[Any]]


# Runs one statement that has no macro left in it.
Run = Callable[[str], Answer]


def read_json_compact(data: bytes) -> Answer:
    """An answer in ClickHouse's format ``JSONCompact``."""
    found = json.loads(data)
    return Answer(
        names=tuple(column["name"] for column in found["meta"]),
        types=tuple(bare_type(column["type"]) for column in found["meta"]),
        rows=found["data"],
    )


def bare_type(name: str) -> str:
    """A type without what wraps it.

    >>> bare_type("LowCardinality(Nullable(String))")
    'String'
    """
    while match := _WRAPPED.match(name):
        name = match[1]
    return name


def is_number(name: str) -> bool:
    """Whether a bare type is one of numbers; Bool is not."""
    return _NUMBER.match(name) is not None


def is_time(name: str) -> bool:
    """Whether a bare type is a moment."""
    return name.startswith("DateTime")


def faults(panel: Panel, answer: Answer) -> Iterator[str]:
    """What keeps an answer from being drawn as the panel says.

    Of a time series Grafana wants what its ``LongToWide`` wants: time first and rising, labels
    that are text, values that are numbers, and one row a time and set of labels.
    """
    expected = tuple(column.name for column in panel.columns)
    if answer.names != expected:
        yield f"answers the columns {answer.names}, not {expected}"
        return
    for column, kind in zip(panel.columns, answer.types, strict=True):
        if column.unit == "time" and not is_time(kind):
            yield f"column {column.name} is {kind}, not a time"
        if column in panel.values and not is_number(kind) and kind != "Nothing":
            yield f"column {column.name} is {kind}, not a number"
        if panel.kind == "timeseries" and column.unit == "text" and kind != "String":
            yield f"label {column.name} is {kind}, which would become a value"
    if panel.kind == "timeseries":
        yield from _series_faults(panel, answer)


def _series_faults(panel: Panel, answer: Answer) -> Iterator[str]:
    places = [0, *(answer.names.index(name) for name in panel.labels)]
    keys = [tuple(row[i] for i in places) for row in answer.rows]
    if any(key[0] is None for key in keys):
        yield "has a row without a time"
    elif [key[0] for key in keys] != sorted(key[0] for key in keys):
        yield "is not in the order of time"
    if len(set(keys)) != len(keys):
        yield "has two rows of one time and set of labels"
