"""Options that several verbs share, and how their answers are printed."""

import argparse
import json
import os
import re
import sys
from collections.abc import Sequence
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

from lookup_audit.deploy.embedded.data_dir import DataDir
from lookup_audit.deploy.reader import DEFAULT_DATA_DIR, open_reader
from lookup_audit.processors.reading import Reader
from lookup_audit.schemas.errors import ConfigError
from lookup_audit.schemas.timeliness import DEFAULT_RETENTION_DAYS

# Controls, and marks that turn the direction of what follows.
_CONTROL = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]"
)


def make_parser(verb: str, description: str, example: str) -> argparse.ArgumentParser:
    """A verb's parser; its help ends with an example."""
    return argparse.ArgumentParser(
        prog=f"lookup-audit {verb}",
        description=description,
        epilog=f"example:\n  {example}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def add_data_dir(parser: argparse.ArgumentParser) -> None:
    """``--data-dir``: where an embedded stack keeps its data."""
    parser.add_argument(
        "--data-dir",
        type=Path,
        default=Path(os.environ.get("LOOKUP_AUDIT_DATA_DIR", DEFAULT_DATA_DIR)),
        metavar="DIR",
        help="directory of the embedded stack (default: %(default)s)",
    )


def add_source(parser: argparse.ArgumentParser) -> None:
    """``--store`` and ``--data-dir``: what to read."""
    parser.add_argument(
        "--store",
        default=os.environ.get("LOOKUP_AUDIT_STORE"),
        metavar="URL",
        help="ClickHouse server, http://user:password@host:8123 (default: the data directory)",
    )
    add_data_dir(parser)


def reader_for(args: argparse.Namespace) -> Reader:
    """What the parsed options say to read."""
    return open_reader(args.store, args.data_dir, os.environ.get("LOOKUP_AUDIT_TOKEN"))


def collector_for(url: str | None, data_dir: Path, *, option: str = "--url") -> str:
    """Base URL of the collector to send to: the one named, or that of the running stack.

    Args:
        url: What the user named.
        data_dir: Of the stack.
        option: With which the user names one.

    Raises:
        ConfigError: None is named and none runs.
    """
    if url:
        return url.rstrip("/")
    running = DataDir(data_dir).running()
    if running is None:
        raise ConfigError(
            f"no stack runs on {data_dir}; start one with 'lookup-audit up', or name a "
            f"collector with {option} http://127.0.0.1:4318"
        )
    return running.url


def first_day(days: int | None, now: datetime) -> date | None:
    """The first of the last ``days`` days, today among them; ``None`` for all there are."""
    return None if days is None else (now - timedelta(days=days - 1)).date()


def printable(text: str) -> str:
    """Text without control characters: stored text must not steer the reader's terminal."""
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text)


def one_line(text: str) -> str:
    """Printable text on one line: a stored line break must not forge a line of ours."""
    return printable(text).replace("\n", "\N{REPLACEMENT CHARACTER}").replace("\t", " ")


def print_json(value: Any) -> None:
    """One JSON document on standard output."""
    json.dump(value, sys.stdout, ensure_ascii=False, indent=2, default=str)
    print()


def print_table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """A plain table on standard output; numbers to the right, no value as ``-``."""
    cells = [["-" if value is None else one_line(str(value)) for value in row] for row in rows]
    numeric = [
        all(isinstance(row[i], (int, float)) or row[i] is None for row in rows)
        for i in range(len(columns))
    ]
    widths = [max([len(name), *(len(row[i]) for row in cells)]) for i, name in enumerate(columns)]

    def line(values: Sequence[str]) -> str:
        parts = (
            value.rjust(width) if right else value.ljust(width)
            for value, width, right in zip(values, widths, numeric, strict=True)
        )
        return "  ".join(parts).rstrip()

    print(line(columns))
    print("  ".join("-" * width for width in widths))
    for row in cells:
        print(line(row))


def add_store(parser: argparse.ArgumentParser) -> None:
    """``--store``, required: the ClickHouse server a stage writes to."""
    default = os.environ.get("LOOKUP_AUDIT_STORE")
    parser.add_argument(
        "--store",
        default=default,
        required=default is None,
        metavar="URL",
        help="http://user:password@host:8123 or embedded:DIR; also LOOKUP_AUDIT_STORE",
    )


def add_kafka(parser: argparse.ArgumentParser, *, required: bool = True) -> None:
    """``--bootstrap``: the Kafka brokers."""
    default = os.environ.get("LOOKUP_AUDIT_BOOTSTRAP")
    parser.add_argument(
        "--bootstrap",
        default=default,
        required=required and default is None,
        metavar="HOST:PORT",
        help="Kafka brokers, with commas between; also LOOKUP_AUDIT_BOOTSTRAP",
    )


def kafka_options() -> dict[str, str]:
    """Further Kafka settings from ``LOOKUP_AUDIT_KAFKA_OPTIONS``, a JSON object.

    Raises:
        ConfigError: The variable holds something else.
    """
    text = os.environ.get("LOOKUP_AUDIT_KAFKA_OPTIONS", "{}")
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise ConfigError(
            "LOOKUP_AUDIT_KAFKA_OPTIONS must be a JSON object, such as "
            '{"security_protocol": "SASL_SSL"}'
        )
    return found


def add_retention(parser: argparse.ArgumentParser) -> None:
    """``--retention-days``: how long events are kept, the same for every stage."""
    parser.add_argument(
        "--retention-days",
        type=int,
        default=int(os.environ.get("LOOKUP_AUDIT_RETENTION_DAYS", DEFAULT_RETENTION_DAYS)),
        metavar="DAYS",
        help="how long events are kept, the same for every stage (default: %(default)s)",
    )
