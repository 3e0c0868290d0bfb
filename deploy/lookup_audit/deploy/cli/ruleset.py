"""``lookup-audit ruleset``: the registry of rulesets that should be in force."""

import argparse
import getpass
import json
import os
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_args

from pydantic_core import PydanticCustomError

from lookup_audit.deploy.cli.options import (
    add_source,
    make_parser,
    print_json,
    print_table,
    printable,
    reader_for,
)
from lookup_audit.deploy.ruleset_file import read_ruleset
from lookup_audit.deploy.writer import open_writer
from lookup_audit.processors.appointing import Passed, passed_verdicts
from lookup_audit.processors.reading import Reader, rows
from lookup_audit.processors.registry import appoint, read_appointments
from lookup_audit.schemas.errors import ConfigError
from lookup_audit.schemas.fields import MAX_NAME_LENGTH, parse_instant
from lookup_audit.schemas.names import Mode
from lookup_audit.schemas.ruleset import Appointment

_JUDGED_MODES = ("dense", "hybrid")


def parser() -> argparse.ArgumentParser:
    """Options of the verb."""
    made = make_parser(
        "ruleset",
        "The independent registry: which ruleset should be in force, for whom, from when. Rows are "
        "added and never changed; a ruleset is named by a hash of its content.",
        "lookup-audit ruleset add strict.json --effective-from 2026-12-01T00:00:00Z "
        "--mode dense --by alice",
    )
    actions = made.add_subparsers(dest="action", required=True, metavar="add|list|show")
    added = actions.add_parser("add", help="put a ruleset in force from a time on")
    added.add_argument("file", type=Path, metavar="FILE", help="JSON; absent fields take defaults")
    added.add_argument(
        "--effective-from", required=True, metavar="T", help="RFC 3339 with an offset"
    )
    added.add_argument("--service", default="", metavar="S", help="only this service")
    added.add_argument("--mode", default="", metavar="M", help="only dense, or only hybrid")
    added.add_argument("--by", metavar="WHO", help="who says so (default: the user's name)")
    added.add_argument("--dry-run", action="store_true", help="only say what it would mean")
    listed = actions.add_parser("list", help="appointments, newest first")
    listed.add_argument(
        "--seen", action="store_true", help="also rulesets that events stated and nobody registered"
    )
    shown = actions.add_parser("show", help="one ruleset: content, appointments, verdicts by it")
    shown.add_argument("ruleset_id", metavar="ID", help="or the beginning of one")
    for action in (added, listed, shown):
        action.add_argument("--json", action="store_true", help="machine-readable answer")
        add_source(action)
    return made


def run(args: argparse.Namespace) -> int:
    """Do one of the three."""
    if args.action == "add":
        return _add(args)
    reader = reader_for(args)
    try:
        return _list(reader, args) if args.action == "list" else _show(reader, args)
    finally:
        reader.close()


def _add(args: argparse.Namespace) -> int:
    new, by = _requested(args), _author(args.by)
    now = datetime.now(UTC)
    reader = reader_for(args)
    try:
        appointments = read_appointments(reader)
        is_known = any(a == new for a in appointments)
        passed = [] if is_known or new.effective_from > now else passed_verdicts(
            reader, new, appointments
        )  # fmt: skip
    finally:
        # A directory at rest is held by one at a time: let go before writing.
        reader.close()
    if not is_known and not args.dry_run:
        writer = open_writer(args.store, args.data_dir, os.environ.get("LOOKUP_AUDIT_TOKEN"))
        try:
            appoint(writer, [new], added_by=by, now=now)
        finally:
            writer.close()
    _tell(args, new, is_known, passed)
    return 0


def _requested(args: argparse.Namespace) -> Appointment:
    try:
        effective_from = parse_instant(args.effective_from)
    except PydanticCustomError as error:
        raise ConfigError(f"--effective-from {args.effective_from!r}: {error.message()}") from error
    if args.mode and args.mode not in _JUDGED_MODES:
        why = (
            "no rule gives a level in it"
            if args.mode in get_args(Mode)
            else "there is no such mode"
        )
        raise ConfigError(f"--mode {args.mode!r}: {why}; write dense or hybrid, or leave it out")
    if len(args.service) > MAX_NAME_LENGTH:
        raise ConfigError(f"--service is longer than the {MAX_NAME_LENGTH} characters of a name")
    return Appointment(read_ruleset(args.file), effective_from, args.service, args.mode)


def _author(given: str | None) -> str:
    try:
        name = (getpass.getuser() if given is None else given).strip()
    except (KeyError, OSError):
        name = ""
    if not name:
        raise ConfigError("the registry keeps who put a ruleset in force; name yourself with --by")
    return name


def _tell(args: argparse.Namespace, new: Appointment, is_known: bool, passed: list[Passed]) -> None:
    count = sum(p.verdicts for p in passed)
    done = "known" if is_known else "dry_run" if args.dry_run else "added"
    if args.json:
        print_json(
            {
                "result": done,
                "ruleset_id": new.ruleset.ruleset_id,
                "ruleset": new.ruleset.model_dump(),
                "effective_from": new.effective_from.isoformat(),
                "service": new.service,
                "mode": new.mode,
                "stored_verdicts_before": count,
            }
        )
    else:
        words = {
            "known": "was in the registry already; nothing changed:",
            "dry_run": "would be put in force:",
            "added": "is in the registry:",
        }[done]
        print(printable(f"{new.ruleset.ruleset_id} {words} {_whom(new)}"))
    for entry in passed:
        print(printable(_warning(entry, args.file)), file=sys.stderr)


def _warning(entry: Passed, file: Path) -> str:
    return (
        f"warning: {entry.verdicts:,} stored verdicts of {entry.service or '(no service)'}, mode "
        f"{entry.mode}, are younger than that and were given by another ruleset; they keep their "
        f"verdict. 'lookup-audit replay --ruleset {file}' shows what they would be"
    )


def _whom(new: Appointment) -> str:
    service = f"service {new.service}" if new.service else "any service"
    mode = f"mode {new.mode}" if new.mode else "any mode"
    return f"{service}, {mode}, from {new.effective_from.isoformat()} on"


def _list(reader: Reader, args: argparse.Namespace) -> int:
    found = rows(
        reader,
        "SELECT ruleset_id, service, mode, effective_from, registered, added_at, added_by, content "
        "FROM audit.rulesets WHERE registered OR {seen:Bool} "
        "ORDER BY registered DESC, effective_from DESC, ruleset_id, service, mode",
        {"seen": "true" if args.seen else "false"},
    )
    for row in found:
        row["content"] = json.loads(row["content"])
    if args.json:
        print_json(found)
        return 0
    print_table(
        ("ruleset", "service", "mode", "effective from", "PRECISE from", "REFERENCE from", "by"),
        [_listed(row) for row in found],
    )
    return 0


def _listed(row: dict[str, Any]) -> list[object]:
    content = row["content"]
    thresholds = [content["highly_relevant_threshold"], content["reference_threshold"]]
    if not row["registered"]:
        return [row["ruleset_id"], "", "", "stated by events only", *thresholds, ""]
    return [
        row["ruleset_id"],
        row["service"] or "any",
        row["mode"] or "any",
        row["effective_from"][:19],
        *thresholds,
        row["added_by"],
    ]


def _show(reader: Reader, args: argparse.Namespace) -> int:
    entries = rows(
        reader,
        "SELECT ruleset_id, service, mode, effective_from, registered, added_at, added_by, content "
        "FROM audit.rulesets WHERE startsWith(ruleset_id, {id:String}) "
        "ORDER BY ruleset_id, effective_from, service, mode",
        {"id": args.ruleset_id},
    )
    ids = sorted({entry["ruleset_id"] for entry in entries})
    if len(ids) > 1:
        raise ConfigError(f"{args.ruleset_id!r} could be any of {', '.join(ids)}; write more of it")
    if not ids:
        print(printable(f"no ruleset has the id {args.ruleset_id}"))
        return 1
    verdicts = rows(
        reader,
        "SELECT service, mode, count() AS verdicts, min(occurred_at) AS first, "
        "max(occurred_at) AS last FROM audit_store.lookups WHERE ruleset_id = {id:String} "
        "GROUP BY service, mode ORDER BY service, mode",
        {"id": ids[0]},
    )
    content = json.loads(entries[0]["content"])
    appointments = [
        {
            name: entry[name]
            for name in ("service", "mode", "effective_from", "added_at", "added_by")
        }
        for entry in entries
        if entry["registered"]
    ]
    if args.json:
        print_json(
            {"ruleset_id": ids[0], "ruleset": content, "appointments": appointments,
             "verdicts": verdicts}
        )  # fmt: skip
        return 0
    _print_ruleset(ids[0], content, appointments, verdicts)
    return 0


def _print_ruleset(
    ruleset_id: str,
    content: dict[str, Any],
    appointments: list[dict[str, Any]],
    verdicts: list[dict[str, Any]],
) -> None:
    print(ruleset_id)
    for name, value in content.items():
        print(f"  {name:26} {value}")
    print("\nappointed" if appointments else "\nstated by events, never appointed")
    for entry in appointments:
        print(
            printable(
                f"  {entry['service'] or 'any service'}, {entry['mode'] or 'any mode'}, from "
                f"{entry['effective_from'][:19]} on, by {entry['added_by']} at "
                f"{entry['added_at'][:19]}"
            )
        )
    print("\nverdicts given by it")
    print_table(
        ("service", "mode", "verdicts", "first", "last"),
        [[v["service"], v["mode"], v["verdicts"], v["first"][:19], v["last"][:19]]
         for v in verdicts],
    )  # fmt: skip
