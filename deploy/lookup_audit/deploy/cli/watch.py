"""``lookup-audit watch``: one drift watcher, against a real ClickHouse and Kafka."""

import argparse
import logging
import os

from prometheus_client import start_http_server

from lookup_audit.collector.telemetry import make_telemetry
from lookup_audit.deploy import wiring
from lookup_audit.deploy.cli.drift_options import add_drift, drift_settings
from lookup_audit.deploy.cli.options import add_kafka, add_store, kafka_options, make_parser
from lookup_audit.deploy.cli.stage import stop_on_signals, wait_for_store
from lookup_audit.processors.drift.watcher import Watcher
from lookup_audit.processors.kafka_source import KafkaConfig


def parser() -> argparse.ArgumentParser:
    """Options of the verb."""
    made = make_parser(
        "watch",
        "Watch the rates of every stratum and raise alarms, until SIGTERM.\n"
        "Run two for safety: one leads, the other takes over within a minute.",
        "lookup-audit watch --store http://lookup_audit@clickhouse:8123 --bootstrap kafka:9092 \\\n"
        "    --webhook http://alertmanager:9093/api/v2/alerts",
    )
    add_store(made)
    add_kafka(made, required=False)
    add_drift(made)
    made.add_argument("--metrics-port", type=int, metavar="PORT", help="serve /metrics on loopback")
    return made


def run(args: argparse.Namespace) -> int:
    """Watch until a signal."""
    logging.getLogger("lookup_audit").setLevel(os.environ.get("LOOKUP_AUDIT_LOG_LEVEL", "INFO"))
    config = drift_settings(args)
    watcher: Watcher | None = None

    def stop() -> None:
        if watcher is not None:
            watcher.stop()

    stopping = stop_on_signals(stop)
    telemetry = make_telemetry("lookup-audit-watcher")
    if args.metrics_port is not None:
        start_http_server(args.metrics_port, addr="127.0.0.1", registry=telemetry.registry)
    alarms = wiring.AlarmTargets(
        kafka=KafkaConfig(bootstrap_servers=args.bootstrap, security=kafka_options())
        if args.bootstrap
        else None,
        webhook=args.webhook,
        webhook_token=os.environ.get("LOOKUP_AUDIT_WEBHOOK_TOKEN"),
        board=args.board,
    )
    store = wait_for_store(args.store, stopping)
    if store is None:
        return 0
    watcher = wiring.make_watcher(store, config, telemetry.meter_provider, alarms)
    watcher.run()
    store.close()
    return 0
