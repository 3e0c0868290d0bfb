"""``lookup-audit dashboards``: Grafana's files written, everything checked, boards published."""

import argparse
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from lookup_audit.dashboards.alert_files import DEFAULT_RUNBOOKS
from lookup_audit.dashboards.answers import Answer, Run, read_json_compact
from lookup_audit.dashboards.checking import lint, run_all
from lookup_audit.dashboards.grafana import Grafana, GrafanaConfig
from lookup_audit.dashboards.provisioning import FOLDER, FOLDER_UID, SOURCE_UID, files
from lookup_audit.dashboards.publishing import Target, publish
from lookup_audit.deploy.cli.options import add_source, make_parser, print_json, printable
from lookup_audit.deploy.files import write_whole
from lookup_audit.deploy.reader import open_reader
from lookup_audit.processors.migrate import migrate
from lookup_audit.processors.reading import Reader
from lookup_audit.processors.store import open_store
from lookup_audit.schemas.errors import ConfigError

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
    _add_runbooks(render)
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
    _add_publish(actions.add_parser("publish", help="put boards and alert rules into Grafana"))
    return made


def _add_publish(publish: argparse.ArgumentParser) -> None:
    publish.add_argument(
        "--url",
        default=os.environ.get("LOOKUP_AUDIT_GRAFANA"),
        metavar="URL",
        help="of Grafana; also LOOKUP_AUDIT_GRAFANA",
    )
    publish.add_argument(
        "--token-file",
        type=Path,
        metavar="FILE",
        help="holds a service account's token; or set LOOKUP_AUDIT_GRAFANA_TOKEN",
    )
    publish.add_argument("--ca", type=Path, metavar="FILE", help="authority of its certificate")
    publish.add_argument(
        "--folder", default=FOLDER_UID, metavar="UID", help="folder (default: %(default)s)"
    )
    publish.add_argument(
        "--source",
        default=SOURCE_UID,
        metavar="UID",
        help="ClickHouse data source of the alert rules (default: %(default)s)",
    )
    publish.add_argument("--no-alerts", action="store_true", help="boards only")
    _add_runbooks(publish)
    publish.add_argument(
        "--dry-run", action="store_true", help="show the differences; exit code 1 if there are any"
    )
    publish.add_argument("--json", action="store_true", help="machine-readable answer")


def _add_runbooks(action: argparse.ArgumentParser) -> None:
    action.add_argument(
        "--runbooks",
        default=DEFAULT_RUNBOOKS,
        metavar="URL",
        help="where you keep the runbooks; alerts link there (default: %(default)s)",
    )


def run(args: argparse.Namespace) -> int:
    """Do one of the three."""
    if args.action == "render":
        return _render(args.output, args.runbooks)
    if args.action == "publish":
        return _publish(args)
    return _check(args)


def _publish(args: argparse.Namespace) -> int:
    if not args.url:
        raise ConfigError("name Grafana with --url https://grafana.example.com")
    grafana = Grafana(
        GrafanaConfig(args.url, read_token(args.token_file), str(args.ca) if args.ca else True)
    )
    target = Target(args.folder, FOLDER, args.source, not args.no_alerts, args.runbooks)
    if target.alerts and grafana.source(args.source) is None:
        raise ConfigError(
            f"Grafana has no data source with the uid {args.source}: provision it from "
            "provisioning/datasources/lookup-audit.yaml, name yours with --source, or publish "
            "the boards alone with --no-alerts"
        )
    changes = []
    for change in publish(grafana, target, dry_run=args.dry_run):
        changes.append(change)
        if not args.json:
            print(f"{change.action:7} {change.what}", flush=True)
            for line in change.difference if args.dry_run else ():
                print(f"        {printable(line)}")
    if args.json:
        print_json([asdict(change) for change in changes])
    return 1 if args.dry_run and any(change.action != "keep" for change in changes) else 0


def read_token(path: Path | None) -> str:
    """The token for Grafana, from a file or the environment; never from an option.

    Raises:
        ConfigError: There is none.
    """
    if path is None:
        token = os.environ.get("LOOKUP_AUDIT_GRAFANA_TOKEN", "")
    else:
        try:
            token = path.read_text("utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"the token file {path} cannot be read") from error
    if not token:
        raise ConfigError(
            "publishing needs a service account's token: --token-file FILE, or the variable "
            "LOOKUP_AUDIT_GRAFANA_TOKEN"
        )
    return token


def _render(output: Path, runbooks: str) -> int:
    for name, text in files(runbooks):
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
