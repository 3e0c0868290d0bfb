"""``lookup-audit replay``: what stored history would have been under another ruleset."""

import argparse
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

from lookup_audit.deploy.cli.options import (
    add_source,
    make_parser,
    print_json,
    reader_for,
)
from lookup_audit.deploy.outdated import says_if_outdated
from lookup_audit.deploy.replay_picture import check_picture_path, sweep_picture, write_picture
from lookup_audit.deploy.replay_report import print_replay, replay_document
from lookup_audit.deploy.ruleset_file import read_ruleset
from lookup_audit.processors.replay.cells import read_cells
from lookup_audit.processors.replay.levels import read_examples, read_moves
from lookup_audit.processors.replay.scope import EARLIEST, Scope
from lookup_audit.processors.replay.sweep import grid, read_sweep
from lookup_audit.schemas.errors import ConfigError


def parser() -> argparse.ArgumentParser:
    """Options of the verb."""
    made = make_parser(
        "replay",
        "What levels, PRECISE rates and cells would have been under another ruleset, reckoned from "
        "the stored candidates. Changes nothing. Exit code 1 if any level would flip.",
        "lookup-audit replay --ruleset stricter.json --days 7 --sweep --picture sweep.svg",
    )
    made.add_argument(
        "--ruleset",
        type=Path,
        required=True,
        metavar="FILE",
        help='JSON, such as {"highly_relevant_threshold": 0.8}; the rest takes the defaults',
    )
    made.add_argument("--days", type=float, metavar="N", help="only the last N days (default: all)")
    made.add_argument("--tenant", default="", help="only this tenant")
    made.add_argument("--sweep", action="store_true", help="a grid over the threshold for PRECISE")
    for name, value in (("from", 0.5), ("to", 1.0), ("step", 0.05)):
        made.add_argument(
            f"--sweep-{name}",
            type=float,
            default=value,
            metavar="X",
            help=f"{name} of the grid (default: {value})",
        )
    made.add_argument("--picture", type=Path, metavar="FILE.svg", help="draw the grid of --sweep")
    made.add_argument("--json", action="store_true", help="machine-readable answer")
    add_source(made)
    return made


def run(args: argparse.Namespace) -> int:
    """Replay and print; 1 if any level flips."""
    ruleset = read_ruleset(args.ruleset)
    scope = Scope(since=_since(args.days, datetime.now(UTC)), tenant=args.tenant)
    thresholds = grid(args.sweep_from, args.sweep_to, args.sweep_step)
    if args.picture:
        check_picture_path(args.picture)
    reader = reader_for(args)
    try:
        with says_if_outdated():
            moves = read_moves(reader, ruleset, scope)
            examples = read_examples(reader, ruleset, scope, moves)
            cells = read_cells(reader, ruleset, scope)
            wants_sweep = args.sweep or args.picture
            points = read_sweep(reader, ruleset, scope, thresholds) if wants_sweep else []
    finally:
        reader.close()
    document = replay_document(ruleset, moves, examples, cells, points)
    if args.json:
        print_json(document)
    else:
        print_replay(document)
    if args.picture:
        content = sweep_picture(document["sweep"], ruleset.highly_relevant_threshold)
        write_picture(args.picture, content)
        print(f"the grid is drawn in {args.picture}", file=sys.stderr)
    return 1 if document["flips"] else 0


def _since(days: float | None, now: datetime) -> datetime:
    if days is None:
        return EARLIEST
    if not 0 < days < 100_000:
        raise ConfigError(f"--days must be above 0, such as 7, not {days:g}")
    return max(EARLIEST, now - timedelta(days=days))
