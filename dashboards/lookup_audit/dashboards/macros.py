"""The ClickHouse plugin's macros and Grafana's variables, expanded as they do it.

So that a panel's SQL can be run without Grafana: by ``dashboards check`` and by the built-in page.
The expansions are those of grafana-clickhouse-datasource 4.20.0 (``pkg/macros/macros.go``). What is
not known is an error here, where the plugin would send it on as it is.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import quote

from lookup_audit.dashboards.model import ALL
from lookup_audit.schemas.errors import LookupAuditError

_VARIABLE = re.compile(r"\$\{(\w+)(?::(\w+))?\}|\$(?!__)([a-zA-Z]\w*)")
_MACRO = re.compile(r"\$__(\w+)(?:\(([^()]*)\))?")

Value = str | Sequence[str]


class MacroError(LookupAuditError):
    """A statement holds a macro or a variable that cannot be expanded."""


@dataclass(frozen=True, slots=True)
class Range:
    """A time range and the width of a bucket.

    Args:
        start: First moment.
        end: Last moment; seconds count, as in the plugin.
        interval_seconds: Width of a bucket, at least 1.
    """

    start: datetime
    end: datetime
    interval_seconds: int = 60

    def __post_init__(self) -> None:
        if self.start.tzinfo is None or self.end.tzinfo is None:
            raise ValueError("times of a range have an offset")
        if self.interval_seconds < 1:
            raise ValueError("a bucket is at least a second wide")


def expand(sql: str, span: Range, variables: Mapping[str, Value]) -> str:
    """A statement as ClickHouse gets it.

    Args:
        sql: With macros and ``${name:percentencode}``.
        span: For the time macros.
        variables: Each one value or several; ``*`` is all.

    Raises:
        MacroError: A macro or variable is unknown, or a variable's format is not a safe one.
    """
    # Macros first: a value must never be taken for one.
    return _VARIABLE.sub(
        lambda match: _format(match, variables), _MACRO.sub(lambda m: _expand(m, span), sql)
    )


def percent_encode(value: Value) -> str:
    """A variable in Grafana's format ``percentencode``: several become ``{a,b}``, encoded.

    >>> percent_encode("it's 100%")
    'it%27s%20100%25'
    >>> percent_encode(["a", "b"])
    '%7Ba%2Cb%7D'

    Raises:
        MacroError: The text has a lone surrogate, which no URL can hold.
    """
    plain = value if isinstance(value, str) else _joined(value)
    try:
        return quote(plain, safe="-_.~")
    except UnicodeEncodeError as error:
        raise MacroError("a variable's value is not valid Unicode") from error


def _joined(values: Sequence[str]) -> str:
    if ALL in values or not values:
        return ALL
    return values[0] if len(values) == 1 else "{" + ",".join(values) + "}"


def _format(match: re.Match[str], variables: Mapping[str, Value]) -> str:
    name = match[1] or match[3]
    if match[2] != "percentencode":
        raise MacroError(
            f"the variable {match[0]} must be written ${{{name}:percentencode}}: every other "
            "format lets its value leave the quotes"
        )
    if name not in variables:
        raise MacroError(f"there is no variable {name}")
    return percent_encode(variables[name])


def _expand(match: re.Match[str], span: Range) -> str:
    name, arguments = match[1], [a.strip() for a in (match[2] or "").split(",")]
    seconds = tuple(int(at.timestamp()) for at in (span.start, span.end))
    millis = tuple(int(at.timestamp() * 1000) for at in (span.start, span.end))
    column = arguments[0]
    simple = {
        "fromTime": f"toDateTime({seconds[0]})",
        "toTime": f"toDateTime({seconds[1]})",
        "fromTime_ms": f"fromUnixTimestamp64Milli({millis[0]})",
        "toTime_ms": f"fromUnixTimestamp64Milli({millis[1]})",
        "interval_s": str(span.interval_seconds),
    }
    if name in simple:
        # A macro without arguments leaves what follows it in brackets alone.
        return simple[name] + ("" if match[2] is None else f"({match[2]})")
    if match[2] is None or not column:
        raise MacroError(f"$__{name} needs an argument, or is no macro of the plugin")
    of_column = {
        "timeFilter": "{c} >= toDateTime({s[0]}) AND {c} <= toDateTime({s[1]})",
        "timeFilter_ms": "{c} >= fromUnixTimestamp64Milli({m[0]}) AND "
        "{c} <= fromUnixTimestamp64Milli({m[1]})",
        "dateFilter": "{c} >= toDate('{d[0]}') AND {c} <= toDate('{d[1]}')",
        "timeFrom": "{c} >= toDateTime({s[0]})",
        "timeTo": "{c} <= toDateTime({s[1]})",
        "timeInterval": "toStartOfInterval(toDateTime({c}), INTERVAL {i} second)",
        "timeInterval_ms": "toStartOfInterval(toDateTime64({c}, 3), INTERVAL {i}000 millisecond)",
    }
    if name not in of_column or len(arguments) != 1:
        raise MacroError(f"$__{name}({match[2]}) is no macro of the plugin")
    dates = [f"{at.astimezone(UTC):%Y-%m-%d}" for at in (span.start, span.end)]
    return of_column[name].format(c=column, s=seconds, m=millis, d=dates, i=span.interval_seconds)
