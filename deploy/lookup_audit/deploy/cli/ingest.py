"""``lookup-audit ingest``: native events from files or standard input, with an exact account."""

import argparse
import json
import os
import sys
from collections import Counter
from collections.abc import Iterator

from lookup_audit.collector.split import split
from lookup_audit.deploy.cli.options import (
    add_data_dir,
    collector_for,
    make_parser,
    print_json,
    printable,
)
from lookup_audit.deploy.sender import Account, EventSender
from lookup_audit.schemas.errors import ConfigError

_PATHS = {"lookup": "/v1/lookups", "outcome": "/v1/outcomes", "judgement": "/v1/judgements"}
_MAX_DOCUMENT_BYTES = 512 * 1024 * 1024


def parser() -> argparse.ArgumentParser:
    """Options of the verb."""
    made = make_parser(
        "ingest",
        "Send lookups, outcomes and judgements from JSON, JSON-array or NDJSON files.\n"
        "Each event's kind is told by its id field unless --kind says it. Exit code 1 if any\n"
        "event is rejected.",
        "lookup-audit ingest events.ndjson",
    )
    made.add_argument("files", nargs="+", metavar="FILE", help="a file, or - for standard input")
    made.add_argument("--kind", choices=tuple(_PATHS), help="what all events are")
    made.add_argument("--url", help="collector (default: the running stack of the data directory)")
    made.add_argument("--json", action="store_true", help="machine-readable account")
    add_data_dir(made)
    return made


def run(args: argparse.Namespace) -> int:
    """Send everything and print the account."""
    sender = EventSender(
        collector_for(args.url, args.data_dir), os.environ.get("LOOKUP_AUDIT_TOKEN"), _progress
    )
    for name in args.files:
        for place, raw in read_events(name):
            sender.add(_PATHS[args.kind or kind_of(raw)], f"{name}:{place}", raw)
    account = sender.finish()
    if sys.stderr.isatty():
        print(file=sys.stderr)
    _print(account, as_json=args.json)
    return 1 if account.rejected else 0


def kind_of(raw: bytes) -> str:
    """What an event is, by its id field; what cannot be read goes to the lookups' door."""
    try:
        event = json.loads(raw)
    except (ValueError, RecursionError):
        return "lookup"
    keys = set(event) if isinstance(event, dict) else set()
    if keys & {"judgement_id", "judgementId"}:
        return "judgement"
    return "outcome" if keys & {"outcome_id", "outcomeId"} else "lookup"


def read_events(name: str) -> Iterator[tuple[str, bytes]]:
    """Each event with its place; NDJSON is read a line at a time, however long the file.

    Raises:
        ConfigError: The file cannot be read, or is one document that is too large.
    """
    try:
        stream = sys.stdin.buffer if name == "-" else open(name, "rb")  # noqa: SIM115
    except OSError as error:
        raise ConfigError(f"cannot read {name}: {error.strerror}") from error
    with stream:
        first = b""
        number = 0
        for line in stream:
            number += 1
            if line.strip(b"\xef\xbb\xbf \t\r\n"):
                first = line
                break
        if first.strip(b"\xef\xbb\xbf \t\r\n").endswith(b"}") and not first.lstrip().startswith(
            b"["
        ):
            yield f"line {number}", first.strip(b"\xef\xbb\xbf \t\r\n")
            for line in stream:
                number += 1
                if line.strip():
                    yield f"line {number}", line.strip()
            return
        document = first + stream.read(_MAX_DOCUMENT_BYTES)
        if stream.read(1):
            raise ConfigError(
                f"{name} is one JSON document of more than {_MAX_DOCUMENT_BYTES >> 20} MiB; "
                "write one event a line (NDJSON)"
            )
        for index, raw in enumerate(split(document, limit=10**9).events):
            yield f"[{index}]", raw


def _progress(account: Account) -> None:
    if sys.stderr.isatty():
        line = f"\r{account.accepted} accepted, {len(account.rejected)} rejected"
        print(line, end="", file=sys.stderr, flush=True)


def _print(account: Account, *, as_json: bool) -> None:
    if as_json:
        print_json({"accepted": account.accepted, "rejected": account.rejected})
        return
    print(f"{account.accepted} accepted, {len(account.rejected)} rejected")
    for reason, count in Counter(r["reason"] for r in account.rejected).most_common():
        print(f"  {count} x {reason}")
    for rejected in account.rejected[:20]:
        print(printable(f"  {rejected['place']}: {rejected['message']}"))
    if len(account.rejected) > 20:
        print(f"  … and {len(account.rejected) - 20} more; --json lists all")
