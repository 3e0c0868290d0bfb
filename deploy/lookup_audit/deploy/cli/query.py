"""``lookup-audit query``: read-only SQL over the audit database."""

import argparse
import json
import sys

from lookup_audit.deploy.cli.options import add_source, make_parser, printable, reader_for
from lookup_audit.processors.reading import QueryRefusedError


def parser() -> argparse.ArgumentParser:
    """Options of the verb."""
    made = make_parser(
        "query",
        "Run one read-only statement over the views of database audit.",
        'lookup-audit query "SELECT mode, level_check, count() FROM lookups GROUP BY ALL"',
    )
    made.add_argument("sql", metavar="SQL", help="the statement, or - for standard input")
    made.add_argument("--format", choices=("table", "json", "csv"), default="table")
    made.add_argument(
        "--json", dest="format", action="store_const", const="json", help="same as --format json"
    )
    add_source(made)
    return made


_FORMATS = {"table": "PrettyCompactMonoBlock", "json": "JSONEachRow", "csv": "CSVWithNames"}


def run(args: argparse.Namespace) -> int:
    """Print the answer."""
    sql = sys.stdin.read() if args.sql == "-" else args.sql
    reader = reader_for(args)
    try:
        answer = reader.raw(sql, output_format=_FORMATS[args.format])
    except QueryRefusedError as error:
        print(f"lookup-audit query: {error}", file=sys.stderr)
        return 2
    finally:
        reader.close()
    if args.format == "json":
        lines = [json.loads(line) for line in answer.splitlines() if line]
        print(json.dumps(lines, ensure_ascii=False, indent=2))
    elif args.format == "csv":
        sys.stdout.write(answer.decode("utf-8", "replace"))
    else:
        text = answer.decode("utf-8", "replace")
        print("\n".join(map(printable, text.rstrip("\n").split("\n"))))
    return 0
