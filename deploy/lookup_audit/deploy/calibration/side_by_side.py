"""A comparison for a person at a terminal."""

from lookup_audit.deploy.calibration.text import say
from lookup_audit.deploy.cli.options import print_table
from lookup_audit.deploy.figures import NO_VALUE, with_interval
from lookup_audit.processors.calibration.comparison import Comparison, Example, Figure, View


def print_comparison(found: Comparison, labels: tuple[str, str], examples: int) -> None:
    """One table, then the questions that differ.

    Args:
        found: The comparison.
        labels: Both sides as the user wrote them.
        examples: How many questions to show.
    """
    for side, label, stratum in zip("AB", labels, (found.a, found.b), strict=True):
        say(f"{side}: {label}  ({stratum[0]}, {stratum[1]})")
    note = f"; {found.one_sided} that one side alone answered are left out"
    say(f"{found.questions} gold questions{note if found.one_sided else ''}\n")
    columns = ("figure", "n", "A", "B", "A - B, 95 %", "only A", "only B", "p", "p (Holm)")
    print_table(columns, [_row(figure) for figure in found.figures])
    reasons: dict[str, list[str]] = {}
    for figure in found.figures:
        if figure.no_value:
            reasons.setdefault(figure.no_value, []).append(figure.name)
    for reason, names in reasons.items():
        say(f"\nNo value, {reason}: {', '.join(names)}")
    if examples and found.examples:
        count = len(found.examples)
        say(f"\n{count} question(s) differ; the first {min(count, examples)}:")
        for example in found.examples[:examples]:
            _print_example(example)


def _row(figure: Figure) -> list[object]:
    if figure.no_value:
        return [figure.name, figure.n, *[NO_VALUE] * 3, *["-"] * 4]
    difference, interval = figure.difference or 0.0, figure.interval
    shown = f"{difference:+.2f}"
    if interval is not None:
        shown += f" ({interval[0]:+.2f} to {interval[1]:+.2f})"
    return [
        figure.name,
        figure.n,
        with_interval(figure.a, None),
        with_interval(figure.b, None),
        shown,
        "-" if figure.only_a is None else figure.only_a,
        "-" if figure.only_b is None else figure.only_b,
        _p(figure.p),
        _p(figure.p_holm),
    ]


def _p(value: float | None) -> str:
    if value is None:
        return "-"
    return "<0.0001" if value < 0.0001 else f"{value:.4f}"


def _print_example(example: Example) -> None:
    pair = example.pair
    say(f"\n  line {pair.line}: {pair.question}")
    say(f"    differs in: {', '.join(example.differs_in)}")
    for side, view in (("A", pair.a), ("B", pair.b)):
        say(f"    {side}: {_described(view, pair.answerable)}")


def _described(view: View, answerable: bool) -> str:
    quality = "no quality" if view.quality is None else f"quality {view.quality:.4f}"
    parts = [f"level {view.level or 'unverifiable'} ({quality})"]
    if answerable:
        place = f"at {view.first_hit}" if view.first_hit else "not kept"
        parts.append(f"supporting chunk {place}, {'' if view.selected_hit else 'not '}selected")
    if view.refused is not None:
        parts.append("refused" if view.refused else "answered")
    return ", ".join(parts)
