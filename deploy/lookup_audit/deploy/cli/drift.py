"""``lookup-audit drift``: why the PRECISE rate moved."""

import argparse

from lookup_audit.deploy.cli import drift_explain
from lookup_audit.deploy.cli.options import add_source, make_parser


def parser() -> argparse.ArgumentParser:
    """Options of the verb."""
    made = make_parser(
        "drift",
        "Why the PRECISE rate differs between two periods.",
        "lookup-audit drift explain --from 2026-11-29T00:00:00Z --to 2026-11-30T00:00:00Z "
        "--mode hybrid",
    )
    actions = made.add_subparsers(dest="action", required=True, metavar="explain")
    explain = actions.add_parser("explain", help="split a change of the PRECISE rate by cause")
    drift_explain.add_options(explain)
    explain.add_argument("--json", action="store_true", help="machine-readable answer")
    add_source(explain)
    return made


def run(args: argparse.Namespace) -> int:
    """Do it."""
    return drift_explain.run(args)
