"""``lookup-audit dashboards``: Grafana's files written, everything checked, boards published."""

import argparse
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from lookup_audit.dashboards.answers import Answer, Run, read_json_compact
from lookup_audit.dashboards.checking import lint, run_all
from lookup_audit.dashboards.provisioning import files
from lookup_audit.deploy.cli.options import add_source, make_parser, print_json, printable
from lookup_audit.deploy.files import write_whole
from lookup_audit.deploy.reader import open_reader
from lookup_audit.processors.migrate import migrate
from lookup_audit.processors.reading import Reader
from lookup_audit.processors.store import open_store

DEFAULT_DIR = Path("dashboards/grafana")


def parser() -> argparse.ArgumentParser:
    """Options of the verb."""
    made = make_parser(
        "dashboards",
        "Boards and alert rules for Grafana: write their files, check them, publish them.",
        "lookup-audit dashboards render --output ./grafana",
    )
    actions = made.add_subparsers(dest="action", required=True, metavar="render|check|publish")
    render = actions.add_parser("render", help="write dashboards, alert rules and provisioning")
    render.add_argument(
        "--output",
        type=Path,
        default=DEFAULT_DIR,
        metavar="DIR",
        help="where to (default: %(default)s); other files there are left alone",
    )
    check = actions.add_parser(
        "check",
        help="lint everything and run every statement; exit code 1 with what is wrong",
    )
    check.add_argument(
        "--files", type=Path, metavar="DIR", help="also compare the files rendered there earlier"
    )
    check.add_argument(
        "--empty", action="store_true", help="run on a new, empty store instead of a found one"
    )
    check.add_argument("--json", action="store_true", help="machine-readable answer")
    add_source(check)
    return made


def run(args: argparse.Namespace) -> int:
    """Do one of the three."""
    if args.action == "render":
        return _render(args.output)
    return _check(args)


def _render(output: Path) -> int:
    for name, text in files():
        path = output / name
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, text.encode())
        print(path)
    return 0


def _check(args: argparse.Namespace) -> int:
    now = datetime.now(UTC)
    found = lint(now)
    if args.files is not None:
        found += differences(args.files)
    with _source(args) as reader:
        count = 0

        def query(sql: str) -> Answer:
            nonlocal count
            count += 1
            return read_json_compact(reader.raw(sql, output_format="JSONCompact"))

        found += run_all(query, now, _some_lookup(query))
    if args.json:
        print_json({"statements_run": count, "faults": found})
    else:
        for fault in found:
            print(printable(fault))
        print(f"{count} statements run, {len(found)} faults")
    return 1 if found else 0


def differences(folder: Path) -> list[str]:
    """Files of a folder that are not as they would be rendered now."""
    found = []
    for name, text in files():
        path = folder / name
        if not path.is_file():
            found.append(f"{path}: is missing; run lookup-audit dashboards render")
        elif path.read_text("utf-8") != text:
            found.append(f"{path}: differs from what would be rendered now")
    return found


def _some_lookup(query: Run) -> list[str]:
    answer = query("SELECT event_id FROM audit.cells ORDER BY occurred_at DESC LIMIT 1")
    return [str(row[0]) for row in answer.rows]


@contextmanager
def _source(args: argparse.Namespace) -> Iterator[Reader]:
    if not args.empty:
        reader = open_reader(args.store, args.data_dir, os.environ.get("LOOKUP_AUDIT_TOKEN"))
        try:
            yield reader
        finally:
            reader.close()
        return
    with tempfile.TemporaryDirectory(prefix="lookup-audit-") as folder:
        store = open_store(f"embedded:{folder}")
        try:
            migrate(store)
            yield store
        finally:
            store.close()
