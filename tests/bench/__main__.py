"""``python -m tests.bench``: the architecture's numbers, measured side by side in one run.

Peers run in turn, as often as ``--repeat`` says, and each ratio is the median of the ratios within
one turn, so that a machine that grows slower half-way favours nobody. Nothing here is a test: the
table says what is held, and the exit code is 0 either way.
"""

import argparse
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lookup_audit.deploy import wiring
from lookup_audit.deploy.embedded.broker import EmbeddedBroker
from tests.bench import emitter, latency, memory, otlp, queries
from tests.bench.load import events, publish
from tests.bench.measure import Task, run_child
from tests.bench.table import Goal, render

_MILLION = 1_000_000


def main() -> int:
    """Measure and print."""
    args = _parser().parse_args()
    goals: list[Goal] = []
    throughput = [row for row in ("processor", "engine") if row in args.rows]
    if throughput:
        goals += _throughput(args, throughput)
    for row, measure in _OTHERS.items():
        if row in args.rows:
            goals += measure(args)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    print(f"\n{cores} cores, Python {platform.python_version()}, {args.events:,} events a run\n")
    print(render(goals))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    rows = ("processor", "engine", *_OTHERS)
    parser.add_argument(
        "--rows", type=lambda text: text.split(","), default=list(rows), help=",".join(rows)
    )
    parser.add_argument("--events", type=int, default=60_000, help="a run (default: %(default)s)")
    parser.add_argument("--repeat", type=int, default=3, help="turns (default: %(default)s)")
    parser.add_argument(
        "--workers", type=int, default=2, help="of ours on all cores, 0 for none (default: 2)"
    )
    parser.add_argument("--seconds", type=int, help="of the latency and memory rows (30 and 60)")
    parser.add_argument("--stored", type=int, default=_MILLION, help="lookups the queries search")
    parser.add_argument(
        "--full", action="store_const", const=10 * _MILLION, dest="stored", help="ten million"
    )
    return parser


@contextmanager
def _broker() -> Iterator[tuple[Path, EmbeddedBroker]]:
    with (
        tempfile.TemporaryDirectory(prefix="lookup-audit-bench-") as directory,
        EmbeddedBroker(Path(directory) / "broker") as broker,
    ):
        wiring.make_topics(broker.bootstrap)
        yield Path(directory), broker


def _throughput(args: argparse.Namespace, rows: Sequence[str]) -> list[Goal]:
    sides: dict[str, tuple[str, dict[str, Any]]] = {"ours": ("ours", {})}
    if "processor" in rows:
        sides |= {"quix same": ("quix_same", {}), "quix plain": ("quix_plain", {})}
    if "engine" in rows:
        sides["engine"] = ("engine", {})
        if args.workers:
            sides["ours, all cores"] = ("ours", {"workers": args.workers})
    turns: list[dict[str, dict[str, float]]] = []
    with _broker() as (directory, broker):
        size = publish(broker.bootstrap, events(args.events)) // args.events
        _say(f"{args.events:,} events of {size:,} bytes are in the broker")
        for turn in range(args.repeat):
            turns.append({})
            for name, (module, options) in sides.items():
                fresh = directory / f"{module}-{name.count(' ')}-{turn}"
                task = Task(str(fresh), broker.bootstrap, args.events, options)
                turns[-1][name] = run_child(module, task)
                _say(f"turn {turn + 1}, {name}: {_rate(turns[-1:], name, args.events)}")
    return _ratios(turns, args.events, rows)


def _ratios(
    turns: list[dict[str, dict[str, float]]], count: int, rows: Sequence[str]
) -> list[Goal]:
    def against(what: str, peer: str, limit: float, side: str = "ours") -> Goal:
        ratio = statistics.median(turn[peer]["seconds"] / turn[side]["seconds"] for turn in turns)
        absolute = f"{_rate(turns, side, count)} : {_rate(turns, peer, count)}"
        return Goal(what, absolute, ratio, "x", ">=", limit)

    goals = []
    if "processor" in rows:
        goals.append(against("one process : the same job in Quix Streams", "quix same", 1.5))
        goals.append(
            against("one process : Quix Streams without checks and raw", "quix plain", 1.0)
        )
    if "engine" in rows:
        side = "ours, all cores" if "ours, all cores" in turns[0] else "ours"
        goals.append(against(f"{side} : bare engine, JSONEachRow", "engine", 0.6, side))
    return goals


def _rate(turns: list[dict[str, dict[str, float]]], side: str, count: int) -> str:
    per_second = statistics.median(count / turn[side]["seconds"] for turn in turns)
    cpu = statistics.median(turn[side]["cpu_seconds"] / count * 1e6 for turn in turns)
    return f"{per_second:,.0f}/s ({cpu:.0f} us CPU)"


def _latency(args: argparse.Namespace) -> list[Goal]:
    with tempfile.TemporaryDirectory(prefix="lookup-audit-bench-") as directory:
        found = latency.measure(Path(directory), args.seconds or latency.SECONDS)
    middle, late = found[len(found) // 2], found[len(found) * 99 // 100]
    absolute = f"p50 {middle:.2f} s, p99 {late:.2f} s, most {found[-1]:.2f} s"
    what = f"event to visible over HTTP at {latency.EVENTS_PER_SECOND:,}/s, p99"
    return [Goal(what, absolute, late, "s", "<", 2.0)]


def _otlp(args: argparse.Namespace) -> list[Goal]:
    with tempfile.TemporaryDirectory(prefix="lookup-audit-bench-") as directory:
        found = otlp.measure(Path(directory), args.events // otlp.BATCH * otlp.BATCH or otlp.BATCH)
    what = "OTLP to queryable (the peer, Arize Phoenix, is not installed)"
    return [Goal(what, otlp.describe(found), found.visible, "/s", ">=", None)]


def _memory(args: argparse.Namespace) -> list[Goal]:
    goals = []
    seconds = args.seconds or memory.SECONDS
    for with_engine in (False, True):
        with _broker() as (directory, broker):
            found = memory.measure(
                directory / "memory", broker.bootstrap, with_engine=with_engine, seconds=seconds
            )
        megabytes = [size / 1e6 for size in found]
        what = f"memory at {memory.EVENTS_PER_SECOND:,}/s, " + (
            "engine in the process" if with_engine else "processor alone"
        )
        absolute = " ".join(f"{size:,.0f}" for size in megabytes) + " at each quarter"
        limit = None if with_engine else 500.0
        goals.append(Goal(what, absolute, max(megabytes), "MB", "<", limit))
    return goals


def _emitter(args: argparse.Namespace) -> list[Goal]:
    seconds = args.seconds or emitter.SECONDS
    command = [sys.executable, "-m", "tests.bench.emitter", "receive"]
    goals = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as receiver:
        assert receiver.stdout is not None
        url = f"http://127.0.0.1:{receiver.stdout.readline().strip()}"
        sides: dict[str, dict[str, Any]] = {
            "to a collector": {"url": url},
            "over a spool": {"url": url, "spool": True},
            "collector away": {"url": "http://127.0.0.1:9", "max_queue_events": 2_000},
        }
        for name, options in sides.items():
            with tempfile.TemporaryDirectory(prefix="lookup-audit-bench-") as directory:
                count = seconds * emitter.EVENTS_PER_SECOND
                found = run_child("emitter", Task(directory, events=count, options=options))
            goals.append(_call_time(name, found))
        receiver.terminate()
    return goals


def _call_time(name: str, found: dict[str, Any]) -> Goal:
    def at(kind: str, share: float) -> float:
        times = found[kind]
        return float(times[int(len(times) * share)]) / 1000

    absolute = (
        f"p50 {at('wall', 0.5):.0f}, p99 {at('wall', 0.99):.0f} us; CPU p99 "
        f"{at('cpu', 0.99):.0f} us; grew {found['grown'] / 1e6:.0f} MB; "
        f"{found['dropped']} dropped"
    )
    what = f"emit(), 8 kB at {emitter.EVENTS_PER_SECOND}/s, {name}, p99"
    return Goal(what, absolute, at("wall", 0.99), "us", "<", 50.0)


def _queries(args: argparse.Namespace) -> list[Goal]:
    with tempfile.TemporaryDirectory(prefix="lookup-audit-bench-") as directory:
        found = run_child("queries", Task(directory, events=args.stored))
    among = f"among {args.stored:,} lookups"
    by_id, headline = queries.median(found["by_id"]), queries.median(found["headline"])
    return [
        Goal(f"one lookup by id {among}", _spread(found["by_id"]), by_id, "ms", "<", 50.0),
        Goal(
            f"headline over {found['outcomes']:,} outcomes {among}",
            _spread(found["headline"]),
            headline,
            "ms",
            "<",
            300.0,
        ),
    ]


def _replay(args: argparse.Namespace) -> list[Goal]:
    with tempfile.TemporaryDirectory(prefix="lookup-audit-bench-") as directory:
        found = run_child("replay", Task(directory, events=args.stored))
    goals = []
    for name, limit in (("replay", 5.0), ("sweep", None)):
        times = [seconds * 1000 for seconds in found[name]["seconds"]]
        cpu = queries.median(found[name]["cpu_seconds"])
        what = f"{name} of {args.stored:,} lookups under another ruleset"
        absolute = f"{_spread(times)} ({cpu:.1f} s CPU)"
        goals.append(Goal(what, absolute, queries.median(times) / 1000, "s", "<", limit))
    return goals


def _spread(times: Sequence[float]) -> str:
    return f"first {times[0]:.0f} ms, then {min(times[1:]):.0f} to {max(times[1:]):.0f}"


_OTHERS: dict[str, Callable[[argparse.Namespace], list[Goal]]] = {
    "latency": _latency,
    "otlp": _otlp,
    "memory": _memory,
    "emitter": _emitter,
    "queries": _queries,
    "replay": _replay,
}


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
