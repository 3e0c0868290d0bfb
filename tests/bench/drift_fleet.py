"""``python -m tests.bench.drift_fleet``: 50 strata for 90 days, with every nuisance and no change.

Traffic of 10 to 316 000 calls a day, most of an agent run's calls sharing their outcome (design
effect about 2.2), a daily season of +-3 points, and an hourly wander of half a point. Nothing
else happens, so that every alarm is a false one; the fleet's budget allows 3.
"""

import argparse
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np

from lookup_audit.processors.drift.config import MINUTES_A_DAY, DriftConfig
from lookup_audit.processors.drift.family import Count, Family
from lookup_audit.processors.drift.series import SeriesKey
from lookup_audit.schemas.names import ALL, DriftMetric


def a_day(
    source: np.random.Generator, keys: Sequence[SeriesKey], day: int
) -> Iterator[tuple[int, list[Count]]]:
    """One day of every stratum, by minute."""
    minutes: dict[int, list[Count]] = defaultdict(list)
    time = np.arange(MINUTES_A_DAY)
    phase = np.sin(2 * np.pi * time / MINUTES_A_DAY)
    for index, key in enumerate(keys):
        calls = 10 ** (1 + 4.5 * index / (len(keys) - 1))
        wander = np.repeat(source.normal(0, 0.005, 24), 60)
        rate = np.clip(0.3 + 0.6 * index / len(keys) + 0.03 * phase + wander, 0.01, 0.99)
        runs = source.poisson(calls / MINUTES_A_DAY / 5 * (1 + 0.8 * phase))
        n = 5 * runs
        # A minute of runs of five with correlation 0.3 has this design effect.
        inside = 2.2
        size = np.maximum(n, 1)
        scale = (size - inside) / (inside - 1)
        spread = np.where(size > 2.5, np.maximum(scale, 0.01), 1.0)
        shares = source.beta(rate * spread, (1 - rate) * spread)
        successes = source.binomial(n, shares)
        for minute in np.flatnonzero(n).tolist():
            count = Count(day * MINUTES_A_DAY + minute, key, int(successes[minute]), int(n[minute]))
            minutes[count.minute].append(count)
    yield from sorted(minutes.items())


def false_alarms(seed: int, days: int, config: DriftConfig, strata: int = 50) -> list[str]:
    """Every alarm of one fleet."""
    source = np.random.default_rng([19, seed])
    keys = [
        SeriesKey(DriftMetric.PRECISE, f"t{index:02}", "kb", "dense", "m1", ALL)
        for index in range(strata)
    ]
    family, found = Family(config), []
    for day in range(days):
        for _, counts in a_day(source, keys, day):
            for told in family.minute(counts):
                if told.transition.what == "opened":
                    found.append(f"day {day}: {told.key.tenant}")
    return found


def main(argv: Sequence[str] | None = None) -> int:
    """Count and print."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.drift_fleet", description=__doc__)
    parser.add_argument("--fleets", type=int, default=2)
    parser.add_argument("--days", type=int, default=90)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args(argv)
    for seed in range(args.seed, args.seed + args.fleets):
        found = false_alarms(seed, args.days, DriftConfig())
        allowed = args.days / DriftConfig().fleet_false_alarm_days
        print(f"fleet {seed}: {len(found)} false alarms, {allowed:g} allowed; {found}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
