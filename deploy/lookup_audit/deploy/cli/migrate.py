"""``lookup-audit migrate``: create or update the tables, and the topics where Kafka is named."""

import argparse

from lookup_audit.deploy import wiring
from lookup_audit.deploy.cli.options import (
    add_kafka,
    add_retention,
    add_store,
    kafka_options,
    make_parser,
    print_json,
)
from lookup_audit.processors import migrate
from lookup_audit.processors.store import open_store


def parser() -> argparse.ArgumentParser:
    """Options of the verb."""
    made = make_parser(
        "migrate",
        "Apply what the database lacks of the numbered migrations; create missing topics.",
        "lookup-audit migrate --store http://admin@clickhouse:8123 --bootstrap kafka:9092",
    )
    add_store(made)
    add_kafka(made, required=False)
    add_retention(made)
    made.add_argument("--dry-run", action="store_true", help="only say what would be applied")
    made.add_argument("--json", action="store_true", help="machine-readable answer")
    return made


def run(args: argparse.Namespace) -> int:
    """Apply and say what was done."""
    store = open_store(args.store)
    done = migrate.pending(store) if args.dry_run else migrate.migrate(store)
    if not args.dry_run:
        migrate.set_retention(store, args.retention_days)
    topics = {}
    if args.bootstrap and not args.dry_run:
        topics = wiring.make_topics(args.bootstrap, kafka_options())
    store.close()
    names = [f"{migration.number:04d}_{migration.name}" for migration in done]
    if args.json:
        print_json({"dry_run": args.dry_run, "migrations": names, "topics": topics})
        return 0
    what = "would be applied" if args.dry_run else "applied"
    for name in names:
        print(f"{what}: {name}")
    if not names:
        print("the database is up to date")
    for topic, partitions in topics.items():
        print(f"topic {topic}: {partitions} partition(s)")
    return 0
