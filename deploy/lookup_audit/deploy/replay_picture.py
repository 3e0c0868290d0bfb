"""The grid of a sweep as a picture: SVG, equal bytes for equal figures."""

import io
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lookup_audit.schemas.errors import ConfigError

_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00")
_LABEL_LENGTH = 40
_FIGURES = (
    ("precise", "PRECISE rate"),
    ("high_score_error_rate", "high-score-error rate"),
)


def sweep_picture(points: Sequence[Mapping[str, Any]], current: float) -> bytes:
    """The grid as SVG: a column a mode, a line a model version, bands of 95 %.

    Args:
        points: ``sweep`` of a replay's document.
        current: The threshold of the ruleset itself, drawn as a line.
    """
    import matplotlib
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    modes = sorted({p["mode"] for p in points})
    versions = sorted({p["model_version"] for p in points})
    with matplotlib.rc_context({"svg.hashsalt": "lookup-audit", "svg.fonttype": "none"}):
        figure = Figure(figsize=(5 * max(1, len(modes)), 6.5), layout="constrained")
        axes = figure.subplots(2, max(1, len(modes)), sharex=True, sharey="row", squeeze=False)
        lines = {}
        for column, mode in enumerate(modes):
            for row, (name, title) in enumerate(_FIGURES):
                axis = axes[row][column]
                for version, colour in zip(versions, _COLOURS * len(versions), strict=False):
                    own = [p for p in points if (p["mode"], p["model_version"]) == (mode, version)]
                    lines[version] = _draw(axis, own, name, colour)
                axis.axvline(current, color="#888888", linewidth=1, linestyle=":")
                axis.set_title(f"{title}, {mode}", fontsize=10)
                axis.set_ylim(0, 1)
                axis.grid(alpha=0.25)
            axes[1][column].set_xlabel("highly_relevant_threshold")
        if lines:
            axes[0][0].legend(list(lines.values()), list(map(_label, lines)), fontsize=8)
        target = io.BytesIO()
        with warnings.catch_warnings():
            # The text stays text: it is the viewer's font that has to have the letters.
            warnings.filterwarnings("ignore", message="Glyph .* missing from", category=UserWarning)
            canvas: Any = FigureCanvasSVG(figure)
            canvas.print_svg(target, metadata={"Date": None, "Creator": None})
    return target.getvalue()


def _draw(axis: Any, points: Sequence[Mapping[str, Any]], name: str, colour: str) -> Any:
    # A rate over nothing has no value: the line ends.
    known = [p for p in points if p[name]["rate"] is not None]
    places = [p["highly_relevant_threshold"] for p in known]
    (line,) = axis.plot(places, [p[name]["rate"] for p in known], color=colour, marker=".")
    low, high = ([p[name][end] for p in known] for end in ("low", "high"))
    axis.fill_between(places, low, high, color=colour, alpha=0.15, linewidth=0)
    return line


def _label(version: str) -> str:
    shown = version if len(version) <= _LABEL_LENGTH else version[: _LABEL_LENGTH - 1] + "…"
    # A dollar sign would be read as a formula.
    return shown.replace("$", r"\$")


def write_picture(path: Path, content: bytes) -> None:
    """Write the picture whole or not at all.

    Raises:
        ConfigError: The file is no ``.svg`` or cannot be written.
    """
    partial = path.with_name(f".{path.name}.tmp")
    try:
        partial.write_bytes(content)
        partial.replace(path)
    except OSError as error:
        raise ConfigError(f"cannot write {path}: {error.strerror}") from error


def check_picture_path(path: Path) -> None:
    """Refuse what is no SVG before the work is done; raises ConfigError."""
    if path.suffix != ".svg":
        raise ConfigError(f"--picture writes SVG; name a file that ends with .svg, not {path.name}")
    if not path.absolute().parent.is_dir():
        raise ConfigError(f"cannot write {path}: there is no directory {path.absolute().parent}")
