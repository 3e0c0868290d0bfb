"""``lookup-audit compare``: two strategies over the same gold questions, side by side."""

import argparse
from datetime import UTC, datetime
from pathlib import Path

from lookup_audit.deploy.calibration.plain import plain
from lookup_audit.deploy.calibration.side_by_side import print_comparison
from lookup_audit.deploy.calibration.text import say
from lookup_audit.deploy.cli.calibrate import scope_of
from lookup_audit.deploy.cli.options import add_source, make_parser, print_json, reader_for
from lookup_audit.deploy.ruleset_file import read_ruleset
from lookup_audit.processors.calibration.comparison import Comparison, compare
from lookup_audit.processors.calibration.gold import read_gold
from lookup_audit.processors.calibration.matching import match, never_asked
from lookup_audit.processors.calibration.stored import stored_lookups
from lookup_audit.processors.calibration.strategies import pair_strata, parse_strategy
from lookup_audit.schemas.errors import ConfigError


def parser() -> argparse.ArgumentParser:
    """Options of the verb."""
    made = make_parser(
        "compare",
        "Set two strategies side by side over stored lookups of a gold set, with paired tests.\n"
        "A side is model=M, mode=M, ruleset=FILE or selection=S, with commas between; what one\n"
        "side leaves out holds as on the other. S is stored, kept, top:N, layer:high or\n"
        "layer:middle. Two modes are compared in what needs no ruler: recall and selection.",
        "lookup-audit compare --a model=minilm@2 --b model=minilm@3 --gold gold.jsonl",
    )
    made.add_argument("--a", required=True, metavar="SPEC", help="one side")
    made.add_argument("--b", required=True, metavar="SPEC", help="the other side")
    made.add_argument("--gold", required=True, type=Path, metavar="FILE", help="the gold set")
    made.add_argument("--tenant", default="", metavar="T", help="only this tenant")
    made.add_argument("--days", type=int, metavar="N", help="only the last N days (default: all)")
    made.add_argument(
        "--examples",
        type=int,
        default=5,
        metavar="N",
        help="differing questions to show in each table (default: %(default)s)",
    )
    made.add_argument("--json", action="store_true", help="machine-readable answer, all questions")
    add_source(made)
    return made


def run(args: argparse.Namespace) -> int:
    """Print one table for each pair of strata that the two sides mean."""
    a, b = parse_strategy(args.a, read_ruleset), parse_strategy(args.b, read_ruleset)
    if args.examples < 0:
        raise ConfigError("--examples must be 0 or more")
    gold = read_gold(args.gold)
    scope = scope_of(args, datetime.now(UTC))
    reader = reader_for(args)
    try:
        lookups = stored_lookups(reader, gold, scope)
    finally:
        reader.close()
    strata = match(gold, lookups)
    if not strata:
        if args.json:
            print_json({"a": a.label, "b": b.label, "comparisons": []})
        else:
            say("No lookup of a gold question is there; ask the service these questions first.")
        return 1
    found = [compare((a, one), (b, other)) for one, other in pair_strata(a, b, strata)]
    missing = never_asked(gold, strata)
    if args.json:
        print_json(
            {
                "a": a.label,
                "b": b.label,
                "never_asked": plain(missing),
                "comparisons": plain(found),
            }
        )
        return 0
    _print(found, (a.label, b.label), args.examples)
    if missing:
        say(f"\n{len(missing)} gold question(s) were never asked; calibrate names them")
    return 0


def _print(found: list[Comparison], labels: tuple[str, str], examples: int) -> None:
    for number, comparison in enumerate(found):
        if number:
            say("")
        print_comparison(comparison, labels, examples)
    say(
        "\np: McNemar's exact test of the pairs, for coverage a sign-flip test; Holm over the"
        "\ntable's figures. Intervals of the difference: Newcombe 1998, method 10; for coverage the"
        "\nBCa bootstrap."
    )
