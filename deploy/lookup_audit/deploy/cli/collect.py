"""``lookup-audit collect``: the collector alone, against a real Kafka."""

import argparse
import logging
import os
from pathlib import Path

from lookup_audit.collector.auth import load_token_hashes
from lookup_audit.collector.config import CollectorConfig
from lookup_audit.collector.redaction import load_redaction
from lookup_audit.collector.server import serve
from lookup_audit.deploy.cli.options import (
    add_kafka,
    add_retention,
    kafka_options,
    make_parser,
)
from lookup_audit.deploy.cli.up import add_http


def parser() -> argparse.ArgumentParser:
    """Options of the verb."""
    made = make_parser(
        "collect",
        "Receive events over HTTP and publish them to Kafka, until SIGTERM.",
        "lookup-audit collect --bootstrap kafka:9092 --host 0.0.0.0 --tokens /run/secrets/tokens",
    )
    add_kafka(made)
    add_http(made)
    add_retention(made)
    made.add_argument(
        "--otlp-spool",
        type=Path,
        metavar="DIR",
        help="let OTLP spans wait a few seconds for their parents, kept here (default: no waiting)",
    )
    return made


def run(args: argparse.Namespace) -> int:
    """Serve until a signal."""
    logging.getLogger("lookup_audit").setLevel(os.environ.get("LOOKUP_AUDIT_LOG_LEVEL", "INFO"))
    serve(
        CollectorConfig.load(
            host=args.host,
            port=args.port,
            bootstrap_servers=args.bootstrap,
            kafka_options=kafka_options(),
            token_hashes=load_token_hashes(args.tokens, os.environ),
            redaction=load_redaction(args.redaction, os.environ),
            retention_days=args.retention_days,
            otlp_spool_dir=args.otlp_spool,
        )
    )
    return 0
