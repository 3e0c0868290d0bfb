"""A time series as SVG: lines, gaps where there is no value, marks for what changed.

Colours and dashes are classes of the style sheet, so that a strict content policy holds and light
and dark both work. The numbers are in a table below each chart as well.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from lookup_audit.dashboards.answers import Answer
from lookup_audit.dashboards.macros import Range
from lookup_audit.dashboards.model import Panel
from lookup_audit.dashboards.page import show

WIDTH: Final = 720
HEIGHT: Final = 220
MAX_SERIES: Final = 24
_LEFT, _RIGHT, _TOP, _BOTTOM = 58, 10, 10, 24
COLORS: Final = 8


@dataclass(frozen=True, slots=True)
class Series:
    """One line: its name, and values by seconds since 1970."""

    name: str
    points: tuple[tuple[float, float | None], ...]


@dataclass(frozen=True, slots=True)
class Mark:
    """Something that happened."""

    at: float
    text: str


def series_of(panel: Panel, answer: Answer) -> list[Series]:
    """The lines of an answer, in the order of their names."""
    labels = [answer.names.index(name) for name in panel.labels]
    values = [(column, answer.names.index(column.name)) for column in panel.values]
    found: dict[str, list[tuple[float, float | None]]] = {}
    for row in answer.rows:
        stratum = " / ".join(str(row[i]) or "(none)" for i in labels)
        for column, place in values:
            name = f"{column.heading}: {stratum}" if len(values) > 1 else stratum
            value = row[place]
            found.setdefault(name, []).append(
                (read_seconds(row[0]), None if value is None else float(value))
            )
    return [Series(name, tuple(points)) for name, points in sorted(found.items())]


def read_seconds(value: Any) -> float:
    """A time of the engine, which is UTC."""
    return datetime.fromisoformat(str(value)).replace(tzinfo=UTC).timestamp()


def draw(panel: Panel, lines: Sequence[Series], marks: Sequence[Mark], span: Range) -> str:
    """The chart as an ``svg`` element."""
    shown = lines[:MAX_SERIES]
    scale = _Scale.of(panel, shown, span)
    parts = [
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{show.text(panel.title)}: '
        f'{len(lines)} lines; the numbers are in the table below">',
        *_grid(panel, scale),
        *(_mark(mark, scale) for mark in marks if scale.start <= mark.at <= scale.end),
    ]
    for number, line in enumerate(shown):
        parts += _line(line, number, scale, span.interval_seconds, panel)
    return "".join([*parts, "</svg>"])


@dataclass(frozen=True, slots=True)
class _Scale:
    start: float
    end: float
    low: float
    high: float

    @classmethod
    def of(cls, panel: Panel, lines: Sequence[Series], span: Range) -> "_Scale":
        values = [value for line in lines for _, value in line.points if value is not None]
        low = min([panel.minimum, *values] if panel.minimum is not None else values or [0.0])
        high = panel.maximum if panel.maximum is not None else max(values, default=1.0)
        if high <= low:
            high = low + 1
        times = [at for line in lines for at, _ in line.points]
        start = min([span.start.timestamp(), *times])
        return cls(start, max(span.end.timestamp(), start + 1), float(low), float(high))

    def x(self, at: float) -> float:
        share = (at - self.start) / (self.end - self.start)
        return round(_LEFT + share * (WIDTH - _LEFT - _RIGHT), 1)

    def y(self, value: float) -> float:
        share = (min(max(value, self.low), self.high) - self.low) / (self.high - self.low)
        return round(HEIGHT - _BOTTOM - share * (HEIGHT - _TOP - _BOTTOM), 1)


def _grid(panel: Panel, scale: _Scale) -> Iterator[str]:
    unit = panel.values[0].unit if panel.unit == "short" else panel.unit
    for step in range(5):
        value = scale.low + (scale.high - scale.low) * step / 4
        y = scale.y(value)
        yield f'<line class="grid" x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{y}" y2="{y}"/>'
        yield (
            f'<text class="axis" x="{_LEFT - 6}" y="{y + 4}" text-anchor="end">'
            f"{show.text(show.number(round(value, 6), unit))}</text>"
        )
    day = scale.end - scale.start > 2 * 86400
    for step in range(5):
        at = scale.start + (scale.end - scale.start) * step / 4
        label = datetime.fromtimestamp(at, UTC).strftime("%m-%d %H:%M" if not day else "%Y-%m-%d")
        anchor = "start" if step == 0 else "end" if step == 4 else "middle"
        yield (
            f'<text class="axis" x="{scale.x(at)}" y="{HEIGHT - 6}" text-anchor="{anchor}">'
            f"{label}</text>"
        )


def _mark(mark: Mark, scale: _Scale) -> str:
    x = scale.x(mark.at)
    return (
        f'<line class="mark" x1="{x}" x2="{x}" y1="{_TOP}" y2="{HEIGHT - _BOTTOM}">'
        f"<title>{show.text(mark.text)}</title></line>"
    )


def _line(line: Series, number: int, scale: _Scale, interval: int, panel: Panel) -> Iterator[str]:
    style = style_of(number)
    for stretch in _stretches(line.points, 2.5 * interval):
        path = " ".join(f"{scale.x(at)},{scale.y(value)}" for at, value in stretch)
        yield f'<polyline class="line {style}" points="{path}"/>'
    unit = panel.values[0].unit if panel.unit == "short" else panel.unit
    for at, value in line.points:
        if value is not None:
            when = show.moment(datetime.fromtimestamp(at, UTC))
            yield (
                f'<circle class="point {style}" cx="{scale.x(at)}" cy="{scale.y(value)}" r="2.5">'
                f"<title>{show.text(line.name)}\n{when}: {show.text(show.number(value, unit))}"
                "</title></circle>"
            )


def _stretches(
    points: Sequence[tuple[float, float | None]], gap: float
) -> Iterator[list[tuple[float, float]]]:
    """Points that belong together: a missing value or bucket breaks the line.

    Points a day apart belong to panels of days, whatever the bucket is.
    """
    stretch: list[tuple[float, float]] = []
    for at, value in points:
        if stretch and (value is None or at - stretch[-1][0] > max(gap, 86400.0)):
            yield stretch
            stretch = []
        if value is not None:
            stretch.append((at, value))
    if stretch:
        yield stretch


def style_of(number: int) -> str:
    """Classes of the line with this number: colours, then dashes."""
    return f"c{number % COLORS} d{number // COLORS % 3}"


def latest(line: Series) -> float | None:
    """The newest value of a line."""
    return next((value for _, value in reversed(line.points) if value is not None), None)


def legend(lines: Sequence[Series], unit: str) -> str:
    """Names, colours and newest values."""
    items = (
        f'<li><svg class="key" viewBox="0 0 24 8" aria-hidden="true">'
        f'<line class="line {style_of(number)}" x1="0" x2="24" y1="4" y2="4"/></svg>'
        f"{show.text(line.name)} <b>{show.text(show.number(latest(line), unit))}</b></li>"
        for number, line in enumerate(lines[:MAX_SERIES])
    )
    rest = len(lines) - MAX_SERIES
    more = f"<li>and {rest} more in the table; choose fewer above</li>" if rest > 0 else ""
    return f'<ul class="legend">{"".join(items)}{more}</ul>'


def marks_of(rows: Sequence[Mapping[str, Any]]) -> list[Mark]:
    """Marks of the rows that an annotation's statement answered."""
    return [Mark(read_seconds(row["time"]), str(row["text"])) for row in rows]
