"""``lookup-audit conduct``: how agents used the levels they were given."""

import argparse
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from lookup_audit.deploy.cli.options import (
    add_source,
    first_day,
    make_parser,
    print_json,
    print_table,
    printable,
    reader_for,
)
from lookup_audit.deploy.figures import with_interval
from lookup_audit.processors.conduct import ConductRate, conduct_examples, conduct_rates
from lookup_audit.schemas.errors import ConfigError

_MEANINGS = (
    ("wasted_lookup", "the same query again, after it had given PRECISE"),
    ("over_confident", "a firm answer on level NONE"),
    ("fabricated_citation", "a citation of a chunk that no lookup of the run returned"),
    ("unsupported_claim", "a claim whose only support is a chunk without a link"),
)


def parser() -> argparse.ArgumentParser:
    """Options of the verb."""
    made = make_parser(
        "conduct",
        "How agents used the levels they were given: wasted lookups, over-confident answers,\n"
        "fabricated citations and unsupported claims, per model version and mode.",
        "lookup-audit conduct --days 7 --examples 5",
    )
    made.add_argument("--days", type=int, metavar="N", help="the last N days, UTC (default: all)")
    made.add_argument("--tenant", help="only this tenant (default: each of its own)")
    made.add_argument(
        "--examples",
        type=int,
        default=2,
        metavar="K",
        help="runs to look at, for each check and stratum (default: %(default)s)",
    )
    made.add_argument("--json", action="store_true", help="machine-readable answer")
    add_source(made)
    return made


def run(args: argparse.Namespace) -> int:
    """Print rates, then runs; exit code 0 whatever they say."""
    if args.days is not None and not 1 <= args.days <= 36500:
        raise ConfigError("--days takes a number of days from 1 to 36500")
    if not 0 <= args.examples < 2**31:
        raise ConfigError("--examples takes a number from 0")
    since = first_day(args.days, datetime.now(UTC))
    reader = reader_for(args)
    try:
        rates = conduct_rates(reader, since=since, tenant=args.tenant)
        examples = conduct_examples(reader, each=args.examples, since=since, tenant=args.tenant)
    finally:
        reader.close()
    if args.json:
        print_json({"rates": [_as_json(rate) for rate in rates], "examples": examples})
        return 0
    _show(rates, examples)
    return 0


def _as_json(rate: ConductRate) -> dict[str, Any]:
    return asdict(rate) | {"rate": rate.rate, "interval": rate.interval}


def _show(rates: Sequence[ConductRate], examples: Sequence[dict[str, Any]]) -> None:
    if not rates:
        print("there are no agent runs in this time: no lookup has a run, and there is no outcome")
        return
    print_table(
        ("tenant", "model version", "mode", "finding", "found/n", "rate, 95 %", "n counts"),
        [
            (
                rate.tenant,
                rate.model_version,
                rate.mode,
                rate.finding,
                f"{rate.found}/{rate.occasions}",
                with_interval(rate.rate, rate.interval, form=".3f"),
                rate.occasion,
            )
            for rate in rates
        ],
    )
    print()
    for name, meaning in _MEANINGS:
        print(f"{name:19}  {meaning}")
    print("Use of other tools cannot be seen in the events. Modes are on different rulers and are")
    print("never summed.")
    if examples:
        print("\nRuns to look at\n")
        print_table(
            ("finding", "run", "lookup", "outcome", "evidence"),
            [
                [row["finding"], row["run_id"], row["event_id"], row["outcome_id"], _cut(row)]
                for row in examples
            ],
        )


def _cut(row: dict[str, Any], width: int = 100) -> str:
    text = printable(str(row["evidence"])).replace("\n", " ")
    return text if len(text) <= width else f"{text[: width - 1]}\N{HORIZONTAL ELLIPSIS}"
