"""Values as people read them, and text as HTML: whatever was stored, nothing of it is markup."""

import html
import json
import re
from datetime import UTC, datetime
from typing import Any

from lookup_audit.dashboards.model import Column

# Controls, and marks that turn the direction of what follows.
_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_NO_VALUE = "–"
_BYTES = ("B", "kB", "MB", "GB", "TB")


def text(value: object) -> str:
    """Stored text as HTML."""
    return html.escape(_UNSEEN.sub("\N{REPLACEMENT CHARACTER}", str(value)), quote=True)


def cell(value: Any, column: Column, kind: str) -> str:
    """One value of a table, as HTML.

    Args:
        value: As the engine answered it.
        column: What it is.
        kind: Its bare ClickHouse type.
    """
    if value is None or value == "":
        return _NO_VALUE
    if kind == "Bool":
        return "yes" if value else "no"
    if column.unit == "json":
        return text(_pretty(str(value)))
    if column.unit in ("text", "time"):
        return text(str(value)[:19] if column.unit == "time" else value)
    return text(number(value, column.unit))


def number(value: float | None, unit: str) -> str:
    r"""A number with its unit, short.

    >>> number(0.12345, "percentunit"), number(1234567, "short"), number(5400, "s")
    ('12.3 %', '1\xa0234\xa0567', '1.5 h')
    """
    if value is None:
        return _NO_VALUE
    if unit == "percentunit":
        return f"{value * 100:.1f} %"
    if unit == "s":
        return _duration(value)
    if unit == "ms":
        return _duration(value / 1000)
    if unit == "bytes":
        size, step = float(value), 0
        while abs(size) >= 1000 and step < len(_BYTES) - 1:
            size, step = size / 1000, step + 1
        return f"{size:.3g} {_BYTES[step]}"
    if isinstance(value, int) or float(value).is_integer():
        # A narrow space would be lost in some terminals' fonts; this one does not break.
        return f"{int(value):,}".replace(",", "\N{NO-BREAK SPACE}")
    return f"{value:.4g}"


def _duration(seconds: float) -> str:
    for size, name in ((86400, "d"), (3600, "h"), (60, "min")):
        if abs(seconds) >= size:
            return f"{seconds / size:.3g} {name}"
    return f"{seconds:.3g} s"


def _pretty(raw: str) -> str:
    try:
        return json.dumps(json.loads(raw), indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        return raw


def moment(at: datetime) -> str:
    """A moment in UTC, to the minute."""
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M}"
