"""``lookup-audit process``: one processor, against a real Kafka and ClickHouse."""

import argparse
import logging
import os

from prometheus_client import start_http_server

from lookup_audit.collector.telemetry import make_telemetry
from lookup_audit.deploy import wiring
from lookup_audit.deploy.cli.options import (
    add_kafka,
    add_retention,
    add_store,
    kafka_options,
    make_parser,
)
from lookup_audit.deploy.cli.stage import stop_on_signals, wait_for_store
from lookup_audit.deploy.workers import Workers, WorkerTask
from lookup_audit.processors.kafka_source import KafkaConfig
from lookup_audit.processors.processor import MOST_WORKERS, Processor, ProcessorConfig


def parser() -> argparse.ArgumentParser:
    """Options of the verb."""
    made = make_parser(
        "process",
        "Audit events from Kafka and store them in ClickHouse, until SIGTERM.\n"
        "Run as many as there are partitions; they share the work as one consumer group.",
        "lookup-audit process --bootstrap kafka:9092 --store http://lookup_audit@clickhouse:8123",
    )
    add_kafka(made)
    add_store(made)
    add_retention(made)
    made.add_argument(
        "--group", default="lookup-audit", help="consumer group (default: %(default)s)"
    )
    made.add_argument(
        "--metrics-port",
        type=int,
        metavar="PORT",
        help="serve /metrics on loopback; worker n at PORT + n",
    )
    made.add_argument(
        "--workers",
        type=worker_count,
        default=0,
        metavar="N",
        help="processes that share the partitions, for more cores; 0 for this one alone (default)",
    )
    return made


def worker_count(text: str) -> int:
    """A number of worker processes.

    Raises:
        ArgumentTypeError: It is none.
    """
    if not (text.isascii() and text.isdecimal() and int(text) <= MOST_WORKERS):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 0 to {MOST_WORKERS}")
    return int(text)


def run(args: argparse.Namespace) -> int:
    """Work until a signal, then drain."""
    logging.getLogger("lookup_audit").setLevel(os.environ.get("LOOKUP_AUDIT_LOG_LEVEL", "INFO"))
    running: Processor | Workers | None = None

    def stop() -> None:
        if running is not None:
            running.stop()

    stopping = stop_on_signals(stop)
    kafka = KafkaConfig(
        bootstrap_servers=args.bootstrap, group_id=args.group, security=kafka_options()
    )
    telemetry = make_telemetry("lookup-audit-processor")
    if args.metrics_port is not None and not args.workers:
        start_http_server(args.metrics_port, addr="127.0.0.1", registry=telemetry.registry)
    store = wait_for_store(args.store, stopping)
    if store is None:
        return 0
    config = ProcessorConfig(
        flush_seconds=1.0, retention_days=args.retention_days, workers=args.workers
    )
    if args.workers:
        task = WorkerTask(
            kafka=kafka, processor=config, store=args.store, metrics_port=args.metrics_port
        )
        running = Workers(task)
    else:
        running = wiring.make_processor(kafka, store, config, telemetry.meter_provider)
        wiring.tune_garbage_collection()
    if not stopping.is_set():
        running.run()
    return 0
