"""``lookup-audit doctor``: every dependency tried, each failure with its fix."""

import argparse

from lookup_audit.deploy.checkup import Finding, check_all
from lookup_audit.deploy.cli.options import add_data_dir, add_kafka, make_parser, print_json


def parser() -> argparse.ArgumentParser:
    """Options of the verb."""
    made = make_parser(
        "doctor",
        "Check Python, codecs, broker, engine, directory, and what --bootstrap and --store name.",
        "lookup-audit doctor --bootstrap kafka:9092 --store http://lookup_audit@clickhouse:8123",
    )
    add_kafka(made, required=False)
    made.add_argument("--store", metavar="URL", help="ClickHouse server to try")
    made.add_argument("--json", action="store_true", help="machine-readable answer")
    add_data_dir(made)
    return made


def run(args: argparse.Namespace) -> int:
    """Print the findings; exit code 1 if anything is wrong."""
    findings = check_all(args.bootstrap, args.store, args.data_dir)
    if args.json:
        print_json(
            [{"name": f.name, "ok": f.ok, "detail": f.detail, "fix": f.fix} for f in findings]
        )
    else:
        for finding in findings:
            print(_line(finding))
    return 0 if all(finding.ok for finding in findings) else 1


def _line(finding: Finding) -> str:
    mark = "ok  " if finding.ok else "FAIL"
    fix = f"\n     fix: {finding.fix}" if not finding.ok else ""
    return f"{mark} {finding.name}: {finding.detail}{fix}"
