"""``lookup-audit dlq``: dead letters listed, shown byte for byte, and given another try."""

import argparse
import sys
from typing import Any

from lookup_audit.deploy.cli.options import (
    add_kafka,
    add_source,
    kafka_options,
    make_parser,
    print_json,
    print_table,
    printable,
    reader_for,
)
from lookup_audit.deploy.embedded.data_dir import DataDir
from lookup_audit.deploy.redrive import DeadLetterRow, redrive
from lookup_audit.processors.reading import Reader, rows
from lookup_audit.schemas.errors import ConfigError


def parser() -> argparse.ArgumentParser:
    """Options of the verb."""
    made = make_parser(
        "dlq",
        "Dead letters: list them, show one with its bytes, or send some again.",
        "lookup-audit dlq list --reason future_time",
    )
    actions = made.add_subparsers(dest="action", required=True, metavar="list|show|replay")
    listed = actions.add_parser("list", help="newest first, with the reason and the place")
    listed.add_argument("--limit", type=int, default=50, help="how many (default: %(default)s)")
    shown = actions.add_parser("show", help="one dead letter and its original bytes")
    shown.add_argument("place", metavar="TOPIC/PARTITION/OFFSET")
    replayed = actions.add_parser(
        "replay", help="publish the original bytes to the original topic again"
    )
    replayed.add_argument("places", nargs="*", metavar="TOPIC/PARTITION/OFFSET")
    replayed.add_argument("--all", action="store_true", help="all that match the filters")
    replayed.add_argument("--dry-run", action="store_true", help="only say what would be sent")
    add_kafka(replayed, required=False)
    for action in (listed, shown, replayed):
        action.add_argument("--reason", help="only this reason")
        action.add_argument("--json", action="store_true", help="machine-readable answer")
        add_source(action)
    return made


def run(args: argparse.Namespace) -> int:
    """Do one of the three."""
    reader = reader_for(args)
    try:
        if args.action == "list":
            return _list(reader, args)
        if args.action == "show":
            return _show(reader, args)
        letters = _chosen(reader, args)
    finally:
        reader.close()
    return _replay(letters, args)


_COLUMNS = (
    "kafka_topic, kafka_partition, kafka_offset, dead_lettered_at, reason, field, message, event_id"
)


def _list(reader: Reader, args: argparse.Namespace) -> int:
    found = rows(
        reader,
        f"SELECT {_COLUMNS} FROM audit.dead_letters "
        "WHERE {reason:String} IN ('', reason) "
        "ORDER BY dead_lettered_at DESC, kafka_topic, kafka_partition, kafka_offset "
        "LIMIT {limit:UInt32}",
        {"reason": args.reason or "", "limit": args.limit},
    )
    if args.json:
        print_json(found)
        return 0
    table = [
        [_place(row), row["dead_lettered_at"][:19], row["reason"], row["message"]] for row in found
    ]
    print_table(("place", "when", "reason", "message"), table)
    return 0


def _place(row: dict[str, Any]) -> str:
    return f"{row['kafka_topic']}/{row['kafka_partition']}/{row['kafka_offset']}"


def _parse_place(text: str) -> dict[str, object]:
    topic, _, rest = text.partition("/")
    partition, _, offset = rest.partition("/")
    if not (topic and partition.isdigit() and offset.isdigit()):
        raise ConfigError(
            f"{text!r} is not a place; write TOPIC/PARTITION/OFFSET as 'dlq list' does"
        )
    return {"topic": topic, "partition": partition, "offset": offset}


_AT_PLACE = (
    "kafka_topic = {topic:String} AND kafka_partition = {partition:UInt32} "
    "AND kafka_offset = {offset:UInt64}"
)


def _show(reader: Reader, args: argparse.Namespace) -> int:
    place = _parse_place(args.place)
    found = rows(
        reader,
        f"SELECT * EXCEPT (value, headers, key) FROM audit.dead_letters WHERE {_AT_PLACE}",
        place,
    )
    if not found:
        print(f"there is no dead letter at {printable(args.place)}")
        return 1
    letter = _letters(reader, _AT_PLACE, place)[0]
    if args.json:
        value = letter.value or b""
        print_json(found[0] | {"value": value.decode("utf-8", "backslashreplace")})
        return 0
    for name, value in found[0].items():
        print(printable(f"{name:17} {value}"))
    for name, value in letter.headers:
        print(printable(f"header            {name}: {value.decode('utf-8', 'backslashreplace')}"))
    print("value:")
    sys.stdout.flush()
    sys.stdout.buffer.write((letter.value or b"") + b"\n")
    return 0


def _letters(reader: Reader, condition: str, parameters: dict[str, object]) -> list[DeadLetterRow]:
    found = rows(
        reader,
        "SELECT kafka_topic, kafka_partition, kafka_offset, reason, hex(value) AS value, "
        "isNull(key) AS no_key, hex(ifNull(key, '')) AS key, "
        "mapKeys(headers) AS names, arrayMap(v -> hex(v), mapValues(headers)) AS contents "
        f"FROM audit.dead_letters WHERE {condition} "
        "ORDER BY kafka_topic, kafka_partition, kafka_offset",
        parameters,
    )
    return [
        DeadLetterRow(
            topic=row["kafka_topic"],
            partition=row["kafka_partition"],
            offset=row["kafka_offset"],
            key=None if row["no_key"] else bytes.fromhex(row["key"]),
            value=None if row["reason"] == "tombstone" else bytes.fromhex(row["value"]),
            headers=tuple(
                (name, bytes.fromhex(content))
                for name, content in zip(row["names"], row["contents"], strict=True)
            ),
        )
        for row in found
    ]


def _chosen(reader: Reader, args: argparse.Namespace) -> list[DeadLetterRow]:
    if args.all == bool(args.places):
        raise ConfigError("name the places to replay, or --all with an optional --reason")
    if args.all:
        condition = "{reason:String} IN ('', reason) AND reason != 'tombstone'"
        return _letters(reader, condition, {"reason": args.reason or ""})
    chosen = []
    for text in args.places:
        letters = _letters(reader, _AT_PLACE, _parse_place(text))
        if not letters:
            raise ConfigError(f"there is no dead letter at {text}")
        if letters[0].value is None:
            raise ConfigError(f"{text} is a tombstone: it has no value that could be judged anew")
        chosen += letters
    return chosen


def _replay(letters: list[DeadLetterRow], args: argparse.Namespace) -> int:
    bootstrap = args.bootstrap
    if not bootstrap and not args.dry_run:
        running = DataDir(args.data_dir).running()
        if running is None:
            raise ConfigError("no stack runs here; name the Kafka brokers with --bootstrap")
        bootstrap = running.bootstrap_servers
    if not args.dry_run:
        redrive(letters, bootstrap, kafka_options())
    what = "would be sent" if args.dry_run else "sent"
    if args.json:
        places = [f"{le.topic}/{le.partition}/{le.offset}" for le in letters]
        print_json({"dry_run": args.dry_run, "sent": places})
    else:
        print(f"{len(letters)} dead letter(s) {what} again; each is judged anew at its new offset")
    return 0
