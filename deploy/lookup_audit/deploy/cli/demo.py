"""``lookup-audit demo``: a real retrieval service, audited from its first lookup to the table."""

import argparse
import logging
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

from lookup_audit.deploy import wiring
from lookup_audit.deploy.cli.lookup import collect, show
from lookup_audit.deploy.cli.options import add_data_dir, make_parser
from lookup_audit.deploy.cli.up import wait_for_signal, welcome
from lookup_audit.deploy.demo.gold import GOLD_FILE
from lookup_audit.deploy.demo.run import DemoSummary, Progress, run_demo
from lookup_audit.deploy.demo.scoring import registry_entries
from lookup_audit.deploy.embedded.stack import Stack, StackConfig
from lookup_audit.deploy.files import write_whole
from lookup_audit.deploy.reader import open_reader
from lookup_audit.deploy.report import example_lookups, print_headline, print_levels
from lookup_audit.processors.ratio import Period, headlines
from lookup_audit.processors.reading import Reader
from lookup_audit.schemas.ruleset import Appointment, Ruleset

_SERVICE = "handbook-knowledge"


def parser() -> argparse.ArgumentParser:
    """Options of the verb."""
    made = make_parser(
        "demo",
        "Start the stack, ask a real retrieval service 112 questions in two model versions and\n"
        "two modes, judge the answers by a gold set, and print what the audit says.",
        "lookup-audit demo && lookup-audit query 'SELECT * FROM cells LIMIT 5'",
    )
    add_data_dir(made)
    made.add_argument("--port", type=int, help="HTTP port (default: any; with --serve 4318)")
    made.add_argument("--serve", action="store_true", help="stay up afterwards, until Ctrl-C")
    return made


def run(args: argparse.Namespace) -> int:
    """Run to the table; with ``--serve`` stay."""
    logging.getLogger("lookup_audit").setLevel("WARNING")
    port = args.port if args.port is not None else 4318 if args.serve else 0
    started = time.monotonic()
    config = StackConfig(data_dir=args.data_dir, port=port, appointments=demo_rulesets())
    with Stack(config) as stack:
        wiring.tune_garbage_collection()
        _say(f"stack is up after {time.monotonic() - started:.1f} s at {stack.url}")
        summary = run_demo(stack.url, on_progress=_Bar().show)
        write_whole(args.data_dir / GOLD_FILE, summary.gold.encode())
        stack.wait_until_stored()
        _say(
            f"{summary.lookups} lookups, {summary.outcomes} outcomes, {summary.judgements} "
            f"judgements stored; {time.monotonic() - started:.0f} s in all\n"
        )
        reader = open_reader(None, args.data_dir)
        _report(reader, summary, args.data_dir, serving=args.serve)
        if args.serve:
            print(welcome(stack, args.data_dir), flush=True)
            wait_for_signal(stack)
    return 0


def demo_rulesets() -> tuple[Appointment, ...]:
    """The demo service's rulesets, as an auditor would appoint them in the registry."""
    entries = registry_entries(_SERVICE, (datetime.now(UTC) - timedelta(minutes=1)).isoformat())
    return tuple(
        Appointment(
            Ruleset.model_validate({n: entry[n] for n in Ruleset.model_fields if n in entry}),
            datetime.fromisoformat(str(entry["effective_from"])),
            str(entry["service"]),
            str(entry["mode"]),
        )
        for entry in entries
    )


def _report(reader: Reader, summary: DemoSummary, data_dir: Path, *, serving: bool) -> None:
    print_headline(headlines(reader, ("model_version", "mode"), Period()))
    print()
    print_levels(reader)
    print(
        "\nn: sampled lookups, which are all of a day until it is sampled."
        "\nerror rate: of judged PRECISE answers, how many were wrong."
        "\nrefusal rate: of lookups with level NONE, how many the agent refused to answer."
        "\nratio: high-score errors for each low-score refusal. The two modes' levels are on"
        "\ndifferent rulers and are never summed."
    )
    for number, (event_id, why) in enumerate(example_lookups(reader), 1):
        print(f"\n--- example {number}: {why} ---")
        for found in collect(reader, event_id):
            show(found)
    if summary.refused:
        print(f"\n{len(summary.refused)} event(s) were refused; the first: {summary.refused[0]}")
    option = "" if data_dir == Path("lookup-audit-data") else f" --data-dir {data_dir}"
    print(
        "\nWhere to look next"
        f'\n  lookup-audit query{option} "SELECT cell, count() FROM cells GROUP BY cell"'
        f"\n  lookup-audit lookup{option} EVENT_ID"
        f"\n  lookup-audit calibrate{option} --gold {data_dir / GOLD_FILE}"
        + ("" if serving else f"\n  lookup-audit up{option}        serve this data over HTTP")
    )


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


class _Bar:
    """Progress on standard error: a line that moves on a terminal, one line a stage elsewhere."""

    def __init__(self) -> None:
        self._stage = ""

    def show(self, progress: Progress) -> None:
        if sys.stderr.isatty():
            end = "\n" if progress.done >= progress.total else ""
            text = f"\r{progress.stage:10} {progress.done}/{progress.total}"
            print(text, end=end, file=sys.stderr, flush=True)
        elif progress.stage != self._stage:
            _say(f"{progress.stage} …")
        self._stage = progress.stage
