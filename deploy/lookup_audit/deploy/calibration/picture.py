"""The operating curve as a picture: high-score-error rate against refusal rate.

One panel a model version and mode, never two on one axis. The same figures give the same bytes:
no date is written, and SVG ids are salted with a constant.
"""

import io
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.figure import Figure

from lookup_audit.processors.calibration.operating import Cut
from lookup_audit.processors.calibration.report import BasisReport, StratumReport
from lookup_audit.schemas.errors import ConfigError

FORMATS = (".svg", ".png")
_STYLE: Any = {"svg.hashsalt": "lookup-audit", "svg.fonttype": "none", "font.size": 9.0}
_PANEL_INCHES = (4.6, 3.6)
_MOST_PANELS = 24
_INK, _LINE, _MARK = "#222222", "#1f5a94", "#b3261e"


def check_picture_name(path: Path) -> None:
    """Refuse a picture that is neither SVG nor PNG.

    Raises:
        ConfigError: With the names that work.
    """
    if path.suffix.lower() not in FORMATS:
        raise ConfigError(f"--picture {path}: name it .svg or .png")


def operating_picture(reports: Sequence[StratumReport], suffix: str) -> bytes:
    """Draw every stratum's curve.

    Args:
        reports: One a panel; lookups scored by rank alone are not drawn: no threshold parts them.
        suffix: ``.svg`` or ``.png``.

    Raises:
        ConfigError: There is nothing to draw, or too much for one picture.
    """
    panels = [
        (report, basis)
        for report in reports
        for basis in report.bases
        if basis.basis.endswith("_l2") and _drawable(basis.curve)
    ]
    if not panels:
        raise ConfigError("no lookup with a quality by distance: there is no curve to draw")
    if len(panels) > _MOST_PANELS:
        raise ConfigError(
            f"{len(panels)} curves do not fit one picture; name one with --model-version and --mode"
        )
    columns = min(2, len(panels))
    lines = -(-len(panels) // columns)
    with matplotlib.rc_context(_STYLE), warnings.catch_warnings():
        # A font without the letters of a model's name; the text itself is in the file.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        size = (_PANEL_INCHES[0] * columns, _PANEL_INCHES[1] * lines)
        figure = Figure(figsize=size, layout="constrained")
        axes = figure.subplots(lines, columns, squeeze=False).ravel()
        for place, (report, basis) in enumerate(panels):
            _draw(axes[place], report, basis)
        for empty in axes[len(panels) :]:
            empty.set_axis_off()
        out = io.BytesIO()
        kind = suffix.removeprefix(".").lower()
        metadata = {"Date": None} if kind == "svg" else {"Software": None}
        figure.savefig(out, format=kind, dpi=120, metadata=metadata)
    return out.getvalue()


def _drawable(curve: Sequence[Cut]) -> list[tuple[float, float, float, float, Cut]]:
    points = []
    for cut in curve:
        error, refusal, interval = (
            cut.error_rate.value,
            cut.refusal_rate.value,
            cut.error_rate.interval,
        )
        if error is not None and refusal is not None and interval is not None:
            points.append((refusal, error, *interval, cut))
    return points


def _draw(axes: Any, report: StratumReport, basis: BasisReport) -> None:
    points = _drawable(basis.curve)
    refusal = [p[0] for p in points]
    axes.fill_between(
        refusal, [p[2] for p in points], [p[3] for p in points], color=_LINE, alpha=0.15, lw=0
    )
    axes.plot(refusal, [p[1] for p in points], color=_LINE, lw=1.2, marker=".", ms=3)
    recommendation = report.recommendation
    axes.axhline(recommendation.budget, color=_INK, lw=0.8, ls=":")
    budget = f"budget {recommendation.budget:g}"
    axes.annotate(budget, (0.01, recommendation.budget), va="bottom", fontsize=8, color=_INK)
    now = report.current.highly_relevant_threshold
    _mark(axes, points, now, f"now {now:.3g}", "o")
    choice = recommendation.choice
    if choice is not None:
        label = f"recommended {choice.cut.threshold:.3g}"
        _mark(axes, points, choice.observed, label, "D", below=True)
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1)
    axes.set_xlabel("refusal rate (below the threshold)")
    axes.set_ylabel("high-score-error rate, 95 %")
    title = f"{report.model_version}, {report.mode} ({basis.basis}, n = {basis.lookups})"
    axes.set_title(title, fontsize=9, parse_math=False)
    axes.spines[["top", "right"]].set_visible(False)


def _mark(
    axes: Any,
    points: Sequence[Any],
    threshold: float,
    label: str,
    shape: str,
    *,
    below: bool = False,
) -> None:
    at = next((p for p in points if p[4].threshold >= threshold), None)
    if at is None:
        return
    axes.plot([at[0]], [at[1]], marker=shape, ms=6, color=_MARK, ls="none")
    axes.annotate(
        label,
        (at[0], at[1]),
        xytext=(-6, -14) if below else (6, 8),
        textcoords="offset points",
        ha="right" if below else "left",
        fontsize=8,
        color=_MARK,
    )
