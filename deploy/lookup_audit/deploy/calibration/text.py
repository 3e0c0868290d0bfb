"""Calibration for a person at a terminal: tables with n and intervals, then plain sentences."""

from collections.abc import Iterable, Sequence

from lookup_audit.deploy.cli.options import print_table, printable
from lookup_audit.deploy.figures import with_interval
from lookup_audit.processors.calibration.fragility import Fragility
from lookup_audit.processors.calibration.layers import LayerCut
from lookup_audit.processors.calibration.matching import LeftOut
from lookup_audit.processors.calibration.operating import Cut, readable
from lookup_audit.processors.calibration.rate import Rate
from lookup_audit.processors.calibration.report import BasisReport, StratumReport

_SHOWN_LEFT_OUT = 10


def cell(rate: Rate) -> str:
    """A rate as a table's cell."""
    return with_interval(rate.value, rate.interval)


def say(text: str) -> None:
    """One line, safe for the terminal."""
    print(printable(text))


def print_stratum(report: StratumReport) -> None:
    """One model version and mode."""
    title = f"{report.model_version}, {report.mode}: {report.questions} gold questions"
    say(f"\n{title}\n{'=' * len(title)}")
    if report.source.superseded:
        say(f"{report.source.superseded} earlier lookup(s) of a question: the last one counts")
    if report.unverifiable:
        say(f"{report.unverifiable} lookup(s) without a verifiable quality: in no table of scores")
    if report.formulas > 1:
        say(
            f"{report.formulas} formulas of quality among these lookups: their scores are not on "
            "one ruler;\nnarrow them with --days"
        )
    say("")
    _print_retrieval(report)
    for basis in report.bases:
        _print_basis(report, basis)
    _print_layers(report)
    _print_recommendation(report)
    print_left_out(report.source.left_out)


def _print_retrieval(report: StratumReport) -> None:
    found = report.retrieval
    rows: list[tuple[str, Rate]] = [
        (f"Recall@{k}" if k != "top_k" else f"Recall@top_k (at most {found.most_kept})", rate)
        for k, rate in found.recall.items()
    ]
    rows += [
        ("supporting chunk selected", found.selected),
        ("hits with a source_url", found.with_source),
        ("refused, of all with an outcome", found.refusals),
        ("refused, of unanswerable questions", found.refused_unanswerable),
        ("refused, of those given a supporting chunk", found.refused_answerable),
    ]
    table = [[name, f"{rate.count}/{rate.n}", cell(rate)] for name, rate in rows]
    print_table(("figure", "count/n", "value, 95 %"), table)


def _print_basis(report: StratumReport, basis: BasisReport) -> None:
    note = f", {basis.without_evidence} without evidence" if basis.without_evidence else ""
    say(f"\nThresholds of PRECISE, quality basis {basis.basis} ({basis.lookups} lookups{note})\n")
    names = {report.current.highly_relevant_threshold: "highly_relevant now"}
    names.setdefault(report.current.reference_threshold, "reference now")
    shown = readable(basis.curve, names)
    choice = report.recommendation.choice
    if choice is not None and basis.basis.endswith("_l2"):
        names[choice.cut.threshold] = "recommended"
        shown = sorted(
            [*(c for c in shown if c.threshold != choice.cut.threshold), choice.cut],
            key=lambda c: c.threshold,
        )
    columns = (
        "threshold",
        "PRECISE",
        "precision, 95 %",
        "recall, 95 %",
        "error rate, 95 %",
        "refusal rate, 95 %",
        "",
    )
    print_table(columns, [_cut_row(cut, names.get(cut.threshold, "")) for cut in shown])
    say(f"\n{basis.separation.sentence}")
    say(f"\nReliability, {basis.basis}\n")
    print_table(
        ("quality", "right/n", "share right, 95 %"),
        [
            [f"{b.lowest:.4f}-{b.highest:.4f}", f"{b.right.count}/{b.right.n}", cell(b.right)]
            for b in basis.reliability.bins
        ],
    )
    say(f"\n{basis.reliability.sentence}")


def _cut_row(cut: Cut, note: str) -> list[object]:
    return [
        f"{cut.threshold:.4f}",
        f"{cut.precise}/{cut.n}",
        cell(cut.precision),
        cell(cut.recall),
        cell(cut.error_rate),
        cell(cut.refusal_rate),
        note,
    ]


def _print_layers(report: StratumReport) -> None:
    current = report.current
    for name, cuts, now in (
        ("high, over linked candidates", report.high_layer, current.high_layer_similarity),
        ("middle, over all candidates", report.middle_layer, current.middle_layer_similarity),
    ):
        if not cuts:
            continue
        say(f"\nCut-offs of layer {name}\n")
        print_table(
            ("similarity", "supporting/reached", "precision, 95 %", "recall, 95 %", ""),
            [_layer_row(cut, now) for cut in cuts],
        )


def _layer_row(cut: LayerCut, now: float) -> list[object]:
    return [
        f"{cut.similarity:.4f}",
        f"{cut.supporting}/{cut.reached}",
        with_interval(*cut.precision),
        with_interval(*cut.recall),
        "now" if cut.similarity == now else "",
    ]


def _print_recommendation(report: StratumReport) -> None:
    advice = report.recommendation
    say(f"\nFor an error budget of {advice.budget:g}\n")
    for sentence in advice.sentences:
        say(f"- {sentence}")
    if advice.ruleset is None:
        return
    before, after = report.current.model_dump(), advice.ruleset.model_dump()
    changes = [[name, before[name], after[name]] for name in after if after[name] != before[name]]
    if changes:
        say(f"\nRecommended ruleset {advice.ruleset.ruleset_id}\n")
        print_table(("member", "now", "recommended"), changes)
    else:
        say("The ruleset in force is the recommended one.")


def print_left_out(left_out: Sequence[LeftOut]) -> None:
    """Gold questions without a lookup that counts, each with the reason."""
    if not left_out:
        return
    say(f"\n{len(left_out)} gold question(s) left out")
    for item in left_out[:_SHOWN_LEFT_OUT]:
        say(f"  line {item.line}: {item.reason}: {item.question!r}: {item.detail}")
    if len(left_out) > _SHOWN_LEFT_OUT:
        say(f"  … and {len(left_out) - _SHOWN_LEFT_OUT} more; --json lists all")


def print_fragility(found: Iterable[Fragility]) -> None:
    """Score bands and flips of every stratum, a table and a sentence each."""
    shown = list(found)
    shift = shown[0].shift if shown else 0.0
    print_table(
        (
            "model version",
            "mode",
            "basis",
            "n",
            "min",
            "p5",
            "p95",
            "max",
            "p5-p95",
            f"level turns by {shift:g}, 95 %",
        ),
        [_fragility_row(item) for item in shown],
    )
    for item in shown:
        where = f"{item.model_version}, {item.mode}, {item.basis or 'no quality'}"
        say(f"\n{where}\n  {item.sentence}")
        if item.flips.n:
            say(
                f"  highly_relevant up {item.high_up.count}, down {item.high_down.count}; "
                f"reference up {item.low_up.count}, down {item.low_down.count} of {item.flips.n}; "
                f"thresholds {_thresholds(item)}"
            )


def _thresholds(item: Fragility) -> str:
    return ", ".join(f"{high:g}/{low:g}" for high, low in item.thresholds)


def _fragility_row(item: Fragility) -> list[object]:
    band = item.band
    values = [f"{value:.4f}" for value in band] if band else ["-"] * 4
    width = "-" if item.width is None else f"{item.width:.4f}"
    return [
        item.model_version,
        item.mode,
        item.basis or "-",
        item.lookups,
        *values,
        width,
        cell(item.flips),
    ]
