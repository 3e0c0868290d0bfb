"""``python -m tests.bench.drift``: our detector beside what others would do, in one run.

Every detector sees the same streams: a reference of 5000 events, then either 100 000 events
without a change, or 1000 and then a change. Seeds are fixed. ``--reps 300`` for a verdict; below
100 the delays are noise. A delay not far below a detector's own distance between false alarms is
luck, not detection.
"""

import argparse
import json
import math
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from tests.bench.drift_detector import ProductDetector
from tests.bench.drift_rivals import Detector, rivals
from tests.bench.drift_streams import batches, optimum
from tests.bench.table import Goal, render

REFERENCE: Final = 5_000
RATES: Final = (0.05, 0.3, 0.6, 0.9)
NUISANCES: Final = ("edge", "season", "burst")
HORIZON: Final = 30_000
BUDGET: Final = 50_000.0
OURS: Final = "e-SR (ours)"

Found = dict[str, Any]


def false_alarms(
    make: Callable[[], Detector], kind: str, rate: float, reps: int, size: int, seed: int
) -> list[int]:
    """Alarms of each stream in 100 000 events without a change."""
    reference = 7 * 1440 if kind == "season" else REFERENCE
    found = []
    for rep in range(reps):
        source = np.random.default_rng([seed, 1, hash_of(kind), round(100 * rate), rep])
        k, n = batches(kind, source, rate, reference + 100_000, size)
        cut = math.ceil(reference / size)
        detector = make()
        _warm(detector, k[:cut].tolist(), n[:cut].tolist())
        pairs = zip(k[cut:].tolist(), n[cut:].tolist(), strict=True)
        found.append(sum(detector.update(*pair) for pair in pairs))
    return found


def delays(
    make: Callable[[], Detector], rate: float, change: float, reps: int, size: int, seed: int
) -> list[float]:
    """Events from the change to the first alarm; infinite where it is not found in 30 000."""
    found = []
    for rep in range(reps):
        source = np.random.default_rng([seed, 2, round(100 * rate), rep])
        detector = make()
        count = REFERENCE // size
        _warm(detector, source.binomial(size, rate, count).tolist(), [size] * count)
        for k in source.binomial(size, rate, 1000 // size).tolist():
            detector.update(k, size)
        found.append(math.inf)
        for index, k in enumerate(source.binomial(size, rate + change, HORIZON // size).tolist()):
            if detector.update(k, size):
                found[-1] = (index + 1.0) * size
                break
    return found


def changes_of(rate: float) -> tuple[float, ...]:
    """Changes looked for at a rate."""
    return (0.05, 0.1) if rate < 0.1 else (-0.05, -0.1, -0.2)


def measure(make: Callable[[], Detector], reps: int, size: int, seed: int) -> Found:
    """All numbers of one detector."""
    found: Found = {"false": {}, "delay": {}, "nuisance": {}, "reps": reps, "size": size}
    for rate in RATES:
        found["false"][rate] = _summary(false_alarms(make, "iid", rate, reps, size, seed))
        for change in changes_of(rate):
            seen = delays(make, rate, change, reps, size, seed)
            found["delay"][rate, change] = {
                "mean": float(np.mean([min(d, HORIZON) for d in seen])),
                "late": float(np.quantile([min(d, HORIZON) for d in seen], 0.95)),
                "found": float(np.mean([d < math.inf for d in seen])),
                "optimum": optimum(rate, rate + change, BUDGET),
            }
    for kind in NUISANCES:
        found["nuisance"][kind] = _summary(false_alarms(make, kind, 0.6, reps, size, seed))
    return found


def goals(found: Found) -> list[Goal]:
    """What our detector is held to."""
    slack = 2 * math.sqrt(2 / found["reps"])

    def alarms(what: str, worst: float) -> Goal:
        return Goal(what, f"{worst:.2f} in 100,000 events", worst, "", "<", 2.0 + slack)

    def ratio(change: float, limit: float) -> Goal:
        cells = {rate: cell for (rate, c), cell in found["delay"].items() if c == change}
        worst = max((c["mean"] - found["size"]) / c["optimum"] for c in cells.values())
        shown = " ".join(f"{rate}: {cell['mean']:,.0f}" for rate, cell in cells.items())
        return Goal(f"{100 * change:+.0f} points over optimum", shown, worst, "x", "<", limit)

    missed = min(c["found"] for (_, d), c in found["delay"].items() if d <= -0.05)
    return [
        alarms("false alarms, no change", max(c["mean"] for c in found["false"].values())),
        *(alarms(f"false alarms, {kind}", c["mean"]) for kind, c in found["nuisance"].items()),
        ratio(-0.2, 2.0),
        ratio(-0.1, 2.0),
        ratio(-0.05, 3.0),
        ratio(0.05, 2.5),
        Goal("falls of 5 points or more found", "in 30,000 events", 100 * missed, "%", ">=", 97.0),
    ]


def show(results: dict[str, Found]) -> str:
    """Every detector's numbers as a Markdown table."""
    head = ["detector", *(f"FA p={rate}" for rate in RATES), *(f"FA {k}" for k in NUISANCES)]
    head += [f"{r}: {100 * c:+.0f}" for r in RATES for c in changes_of(r)]
    lines = [head, ["---"] * len(head)]
    for name, found in results.items():
        line = [name, *(f"{found['false'][rate]['mean']:.2f}" for rate in RATES)]
        line += [f"{found['nuisance'][kind]['mean']:.2f}" for kind in NUISANCES]
        for rate in RATES:
            for change in changes_of(rate):
                cell = found["delay"][rate, change]
                part = "" if cell["found"] == 1 else f" ({cell['found']:.0%})"
                line.append(f"{cell['mean']:,.0f}{part}")
        lines.append(line)
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def hash_of(kind: str) -> int:
    """A number for a kind of stream, the same in every process."""
    return ["iid", *NUISANCES].index(kind)


def _warm(detector: Detector, successes: Sequence[int], trials: Sequence[int]) -> None:
    for k, n in zip(successes, trials, strict=True):
        detector.warmup(k, n)


def _summary(values: Sequence[float]) -> dict[str, float]:
    return {"mean": float(np.mean(values)), "error": float(np.std(values) / len(values) ** 0.5)}


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(inner) for key, inner in value.items()}
    return value


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.drift", description=__doc__)
    parser.add_argument("--reps", type=int, default=100, help="streams (default: %(default)s)")
    parser.add_argument("--batch", type=int, default=20, help="events a batch, 1 to 60")
    parser.add_argument("--seed", type=int, default=0, help="other streams")
    parser.add_argument("--alone", action="store_true", help="without the others")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the numbers here")
    args = parser.parse_args(argv)
    makers: dict[str, Callable[[], Detector]] = {
        OURS: partial(ProductDetector, minutes=args.batch, arl=BUDGET)
    }
    if not args.alone:
        makers |= rivals()
    results = {}
    for name, make in makers.items():
        print(name, file=sys.stderr, flush=True)
        results[name] = measure(make, args.reps, args.batch, args.seed)
    print(
        f"{args.reps} streams, batches of {args.batch}; FA: false alarms in 100,000 events "
        "without a change;\nRATE: CHANGE: mean events until a change is found, and how many were "
        "if not all\n"
    )
    print(show(results))
    print(f"\n{render(goals(results[OURS]))}")
    if args.json:
        args.json.write_text(json.dumps(_plain(results), indent=1), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
