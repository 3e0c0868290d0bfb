"""``lookup-audit up``: the whole stack in one process."""

import argparse
import logging
import os
import signal
import threading
from pathlib import Path
from types import FrameType

from lookup_audit.collector.auth import load_token_hashes
from lookup_audit.collector.redaction import load_redaction
from lookup_audit.deploy import wiring
from lookup_audit.deploy.cli.drift_options import add_drift, drift_settings
from lookup_audit.deploy.cli.options import add_data_dir, make_parser
from lookup_audit.deploy.embedded.stack import Stack, StackConfig

logger = logging.getLogger(__name__)


def parser() -> argparse.ArgumentParser:
    """Options of the verb."""
    made = make_parser(
        "up",
        "Run broker, engine, collector and processor in one process, until Ctrl-C.\n"
        "For trials and tests: events not yet stored when it is killed are lost (under a second).",
        "lookup-audit up --data-dir ./lookup-audit-data --port 4318",
    )
    add_data_dir(made)
    add_http(made)
    made.add_argument(
        "--broker-port", type=int, metavar="PORT", help="Kafka port on loopback (default: any)"
    )
    add_drift(made)
    return made


def add_http(made: argparse.ArgumentParser) -> None:
    """``--host``, ``--port``, ``--tokens`` and ``--redaction``."""
    made.add_argument("--host", default="127.0.0.1", help="address (default: %(default)s)")
    made.add_argument(
        "--port", type=int, default=4318, help="HTTP port, 0 for any (default: %(default)s)"
    )
    made.add_argument(
        "--tokens",
        type=Path,
        metavar="FILE",
        help="bearer tokens, one a line; also LOOKUP_AUDIT_TOKENS",
    )
    made.add_argument(
        "--redaction",
        type=Path,
        metavar="FILE",
        help="what is redacted before anything is written, JSON; also LOOKUP_AUDIT_REDACTION",
    )


def run(args: argparse.Namespace) -> int:
    """Serve until a signal, then drain."""
    logging.getLogger("lookup_audit").setLevel(os.environ.get("LOOKUP_AUDIT_LOG_LEVEL", "INFO"))
    config = StackConfig(
        data_dir=args.data_dir,
        host=args.host,
        port=args.port,
        broker_port=args.broker_port,
        token_hashes=load_token_hashes(args.tokens, os.environ),
        redaction=load_redaction(args.redaction, os.environ),
        drift=drift_settings(args),
        webhook=args.webhook,
        webhook_token=os.environ.get("LOOKUP_AUDIT_WEBHOOK_TOKEN"),
        board=args.board,
    )
    with Stack(config) as stack:
        wiring.tune_garbage_collection()
        print(welcome(stack, args.data_dir), flush=True)
        wait_for_signal(stack)
        print("Storing what was received …", flush=True)
    return 0


def welcome(stack: Stack, data_dir: Path) -> str:
    """Where everything is."""
    return f"Lookup Audit is up; data in {data_dir}. Stop with Ctrl-C.\n{stack.describe()}"


def wait_for_signal(stack: Stack) -> None:
    """Return on SIGINT or SIGTERM; says when something keeps events from being stored."""
    asked = threading.Event()

    def ask(number: int, frame: FrameType | None) -> None:
        if asked.is_set():
            raise KeyboardInterrupt
        asked.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, ask)
    said: str | None = None
    while not asked.wait(1.0):
        problem = stack.problem
        if problem not in (said, "starting"):
            said = problem
            logger.warning("%s", problem or "Events are being stored again.")
