"""``lookup-audit ratio``: how often a high score was wrong, and a low one refused."""

import argparse
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from lookup_audit.deploy import report
from lookup_audit.deploy.cli.options import (
    add_source,
    first_day,
    make_parser,
    print_json,
    print_table,
    reader_for,
)
from lookup_audit.processors import ratio
from lookup_audit.processors.reading import Reader
from lookup_audit.schemas.errors import ConfigError

# The store's dates begin in 1970.
_MOST_DAYS = 20_000


def parser() -> argparse.ArgumentParser:
    """Options of the verb."""
    made = make_parser(
        "ratio",
        "High-score errors against low-score refusals, with counts and 95 % intervals. Of a day "
        "that was sampled the drawn lookups count, weighted to the traffic; of another day all.",
        "lookup-audit ratio --by model_version,mode --days 30",
    )
    made.add_argument(
        "--by",
        default="model_version,mode",
        metavar="NAMES",
        help="group by these, with commas: day, tenant, model_version, mode; mode must be among "
        "them (default: %(default)s)",
    )
    made.add_argument("--days", type=int, metavar="N", help="the last N days (default: all)")
    made.add_argument("--tenant", help="only this tenant")
    made.add_argument("--layers", action="store_true", help="by confidence layer as well")
    made.add_argument(
        "--machine",
        action="store_true",
        help="where a machine judged too: the error rate by humans alone, and with its help",
    )
    made.add_argument("--json", action="store_true", help="machine-readable answer")
    add_source(made)
    return made


def run(args: argparse.Namespace) -> int:
    """Print the tables."""
    by = ratio.check_dimensions([name.strip() for name in args.by.split(",") if name.strip()])
    period = _period(args.days, args.tenant)
    reader = reader_for(args)
    try:
        if args.json:
            print_json(_everything(reader, by, period))
        else:
            _print(reader, by, period, layers=args.layers, machine=args.machine)
    finally:
        reader.close()
    return 0


def _period(days: int | None, tenant: str | None) -> ratio.Period:
    if days is not None and not 1 <= days <= _MOST_DAYS:
        raise ConfigError(f"--days must be 1 or more, and at most {_MOST_DAYS}")
    return ratio.Period(first=first_day(days, datetime.now(UTC)), tenant=tenant)


def _everything(reader: Reader, by: Sequence[str], period: ratio.Period) -> dict[str, Any]:
    return {
        "headline": [asdict(row) for row in ratio.headlines(reader, by, period)],
        "levels": [asdict(row) for row in ratio.parts(reader, by, "level", period)],
        "layers": [asdict(row) for row in ratio.parts(reader, by, "layer", period)],
        "refusals": [asdict(row) for row in ratio.refusals(reader, by, period)],
        "machine": [asdict(row) for row in ratio.sharpened(reader, by, period)],
    }


def _print(
    reader: Reader, by: Sequence[str], period: ratio.Period, *, layers: bool, machine: bool
) -> None:
    found = ratio.headlines(reader, by, period)
    if not found:
        print("No lookups in this period.")
        return
    report.print_headline(found)
    print(
        "\nn: of a day that was sampled the drawn lookups, weighted to the traffic; of another all."
    )
    print("\nAs shares of the sampled lookups\n")
    print_table(
        (*by, "sampled", "high-score errors, 95 %", "low-score refusals, 95 %", "ratio, 95 %"),
        [
            [
                *row.stratum.values(),
                row.counts["sampled"],
                report.percent(row.rates["high_score_error_share"]),
                report.percent(row.rates["low_score_refusal_share"]),
                report.ratio_text(row.ratio),
            ]
            for row in found
        ],
    )
    for part in ("level", "layer") if layers else ("level",):
        print(f"\nAnswers by {part}\n")
        _print_parts(by, part, ratio.parts(reader, by, part, period))
    _print_refusals(by, ratio.refusals(reader, by, period))
    if machine:
        _print_sharpened(by, ratio.sharpened(reader, by, period))


def _print_parts(by: Sequence[str], part: str, found: Sequence[ratio.Part]) -> None:
    counts = ("with_outcome", "judged", "wrong", "partly", "right", "refused")
    print_table(
        (*by, part, *(name.replace("_", " ") for name in counts), "wrong, 95 %", "refused, 95 %"),
        [
            [
                *row.stratum.values(),
                row.value or "unverifiable",
                *(row.counts[name] for name in counts),
                report.rate(row.rates["error_rate"]),
                report.rate(row.rates["refusal_rate"]),
            ]
            for row in found
        ],
    )


def _print_refusals(by: Sequence[str], found: Sequence[ratio.Refusals]) -> None:
    if found:
        print("\nWhy it was refused (of PRECISE: over-refusals)\n")
        print_table(
            (*by, "level", "reason", "refused"),
            [
                [*row.stratum.values(), row.level, row.reason or "none given", row.refused]
                for row in found
            ],
        )


def _print_sharpened(by: Sequence[str], found: Sequence[ratio.Sharpened]) -> None:
    print("\nHigh-score error rate by people alone, and with the machine's judgements\n")
    print_table(
        (*by, "by people", "by machine", "people alone, 95 %", "with the machine, 95 %"),
        [
            [
                *row.stratum.values(),
                row.human_judged,
                row.machine_judged,
                report.rate(row.by_humans),
                report.rate(row.with_machine),
            ]
            for row in found
        ],
    )
