"""``lookup-audit triage``: is there a rise of errors or refusals, and what to look at first."""

import argparse
from dataclasses import asdict
from datetime import date
from typing import Any

from lookup_audit.deploy.cli.options import (
    add_source,
    make_parser,
    print_json,
    print_table,
    printable,
    reader_for,
)
from lookup_audit.deploy.figures import NO_VALUE, number, with_interval
from lookup_audit.processors.statistics.proportions import wilson
from lookup_audit.processors.triage import KINDS, Cause, Rise, newest_day, triage
from lookup_audit.schemas.errors import ConfigError

_TITLES = {
    "errors": "High-score errors: wrong among judged PRECISE answers",
    "refusals": "Refusals: refused among lookups with an outcome",
}
_CONTRASTS = {
    "errors": {"outcome": "errors / other answers", "day": "day / baseline"},
    "refusals": {"outcome": "refused / answered", "day": "day / baseline"},
}
_COUNSEL = {
    "errors": (
        "Look at document freshness and metadata filters before touching thresholds: a threshold\n"
        "cannot tell an outdated document from a current one."
    ),
    "refusals": (
        "Look first at thresholds and missing source fields, then at chunks that lost their\n"
        "version. Do not answer with a larger top-k: it adds passages and no evidence."
    ),
}


def parser() -> argparse.ArgumentParser:
    """Options of the verb."""
    made = make_parser(
        "triage",
        "Say whether high-score errors or refusals rose on a day, and rank the likely causes with\n"
        "the figures behind each. Exit code 1 if something rose.",
        "lookup-audit triage --day 2026-11-30 --baseline-days 14",
    )
    made.add_argument(
        "--day",
        type=date.fromisoformat,
        metavar="YYYY-MM-DD",
        help="the day in question, UTC (default: the newest with an outcome)",
    )
    made.add_argument(
        "--baseline-days",
        type=int,
        default=14,
        metavar="N",
        help="how many days before it to compare with (default: %(default)s)",
    )
    made.add_argument("--tenant", help="only this tenant (default: each of its own)")
    made.add_argument("--json", action="store_true", help="machine-readable answer")
    add_source(made)
    return made


def run(args: argparse.Namespace) -> int:
    """Print every stratum of the day; exit code 1 if there is a rise."""
    if not 1 <= args.baseline_days <= 3650:
        raise ConfigError("--baseline-days takes a number of days from 1 to 3650")
    if args.day is not None and not 1971 <= args.day.year <= 2148:
        raise ConfigError("--day takes a day of the years 1971 to 2148")
    reader = reader_for(args)
    try:
        day = args.day or newest_day(reader, args.tenant)
        options = {"baseline_days": args.baseline_days, "tenant": args.tenant}
        found = (
            []
            if day is None
            else [rise for kind in KINDS for rise in triage(reader, kind, day=day, **options)]
        )
    finally:
        reader.close()
    if args.json:
        print_json({"day": day, "rises": [_as_json(rise) for rise in found]})
    elif not found:
        print("there is no lookup with an outcome" + (f" on {day}" if day else ""))
    else:
        _show(found, f"{day}", args.baseline_days)
    return int(any(rise.state == "rise" for rise in found))


def _as_json(rise: Rise) -> dict[str, Any]:
    return asdict(rise) | {"has_clear_cause": rise.has_clear_cause}


def _show(found: list[Rise], day: str, baseline_days: int) -> None:
    for kind in KINDS:
        print(f"{_TITLES[kind]}, {day} (UTC) against the {baseline_days} days before\n")
        own = [rise for rise in found if rise.kind == kind]
        if not own:
            print("none on this day\n")
            continue
        print_table(
            ("tenant", "model version", "mode", "day", "baseline", "p", "p, Holm", ""),
            [
                (
                    rise.tenant,
                    rise.model_version,
                    rise.mode,
                    _share(rise.bad, rise.n),
                    _share(rise.baseline_bad, rise.baseline_n),
                    _p(rise.p),
                    _p(rise.adjusted_p),
                    _verdict(rise),
                )
                for rise in own
            ],
        )
        print()
        for rise in own:
            if rise.causes:
                _show_causes(rise)
        if any(rise.causes for rise in own):
            print(f"{_COUNSEL[kind]}\n")
    print("p: Fisher's exact test of the day against the baseline, one-sided; of causes two-sided")
    print("(means: permutation test). Holm: corrected for how many were looked at.")


def _verdict(rise: Rise) -> str:
    noun = "errors" if rise.kind == "errors" else "refusals"
    return {
        "rise": "a rise",
        "no_rise": "no rise" if rise.bad else f"no {noun}",
        "no_baseline": "no baseline: nothing to compare with",
        "too_few": "n is too small to tell",
    }[rise.state]


def _show_causes(rise: Rise) -> None:
    where = " ".join(printable(text) for text in (rise.tenant, rise.model_version, rise.mode))
    compared = [cause for cause in rise.causes if cause.p is not None]
    clear = [cause for cause in rise.causes if cause.is_clear]
    if not clear:
        print(f"{where}: no clear cause among {len(compared)} comparison(s)")
    elif rise.state == "rise":
        print(f"{where}: likely causes, in the order in which to look")
    else:
        print(f"{where}: what goes with them on this day; without a baseline no cause of a rise")
    print()
    if compared:
        print_table(
            ("", "factor", "compared", "values", "n", "difference, 95 %", "p", "p, Holm"),
            [_cause_row(cause, rise) for cause in compared],
        )
        print()
    skipped = [cause for cause in rise.causes if cause.p is None]
    small = [cause.title for cause in skipped if cause.note.startswith("n is too small")]
    if small:
        print(f"n is too small for: {', '.join(dict.fromkeys(small))}\n")


def _cause_row(cause: Cause, rise: Rise) -> tuple[object, ...]:
    note = f" ({cause.note})" if cause.note else ""
    return (
        "clear" if cause.is_clear else "",
        cause.title + note,
        _CONTRASTS[rise.kind][cause.contrast],
        f"{number(cause.value, '.3g')} / {number(cause.other, '.3g')}",
        f"{cause.n} / {cause.n_other}",
        _effect(cause),
        _p(cause.p),
        _p(cause.adjusted_p),
    )


def _effect(cause: Cause) -> str:
    if cause.effect is None:
        return NO_VALUE
    if cause.interval is None:
        return f"{cause.effect:+.3g} (n is too small)"
    low, high = cause.interval
    return f"{cause.effect:+.3g} ({low:+.3g} to {high:+.3g})"


def _p(value: float | None) -> str:
    return number(value, ".2g")


def _share(bad: int, n: int) -> str:
    interval = wilson(bad, n)
    if interval is None:
        return f"{NO_VALUE} (0/0)"
    return f"{bad}/{n} {with_interval(bad / n, interval)}"
