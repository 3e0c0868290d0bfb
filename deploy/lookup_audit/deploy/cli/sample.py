"""``lookup-audit sample``: draw the lookups of a day that people or models will judge."""

import argparse
import os
import sys
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from lookup_audit.deploy.cli.options import (
    add_source,
    make_parser,
    print_json,
    print_table,
    reader_for,
)
from lookup_audit.deploy.writer import open_writer
from lookup_audit.processors.sampling import (
    DEFAULT_SIZE,
    DaySample,
    draw_day,
    tenants_of,
    write_day,
)
from lookup_audit.processors.sampling.answers import sampled_answers
from lookup_audit.processors.sampling.sheet import write_sheet
from lookup_audit.schemas.errors import ConfigError


def parser() -> argparse.ArgumentParser:
    """Options of the verb."""
    made = make_parser(
        "sample",
        "Draw a day's sample: stratified by mode, model version, level and class, with lookups\n"
        "near a threshold and mismatching ones oversampled. Drawing again adds late lookups by\n"
        "the same rule; a larger --size adds to the sample and removes nothing.",
        "lookup-audit sample --day 2026-11-30 --size 200 --export review.csv",
    )
    add_day(made)
    made.add_argument(
        "--size",
        type=int,
        metavar="N",
        help=f"lookups to expect a tenant (default: as drawn before, else {DEFAULT_SIZE})",
    )
    made.add_argument(
        "--seed", help="fixed by a day's first draw (default: from the day and the tenant)"
    )
    made.add_argument(
        "--export",
        type=Path,
        metavar="FILE",
        help="write the reviewers' sheet, .csv or .jsonl; without levels, scores and thresholds",
    )
    made.add_argument(
        "--refused", action="store_true", help="list refused questions in the sheet as well"
    )
    made.add_argument("--force", action="store_true", help="let --export replace a file")
    made.add_argument("--dry-run", action="store_true", help="draw, but store and export nothing")
    made.add_argument("--json", action="store_true", help="machine-readable answer")
    add_source(made)
    return made


def add_day(made: argparse.ArgumentParser, *, required: bool = True) -> None:
    """``--day`` and ``--tenant``."""
    made.add_argument(
        "--day", type=a_day, required=required, metavar="YYYY-MM-DD", help="a day in UTC"
    )
    made.add_argument("--tenant", help="only this tenant (default: each, as a population apart)")


def a_day(text: str) -> date:
    """A day as an option's value."""
    try:
        return datetime.strptime(text, "%Y-%m-%d").date()
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no day; write YYYY-MM-DD") from None


def run(args: argparse.Namespace) -> int:
    """Draw, store, export, print."""
    if args.export is not None:
        check_target(args.export, force=args.force)
    now = datetime.now(UTC)
    if args.day >= now.date():
        print(
            f"lookup-audit sample: {args.day} is not over in UTC; later lookups are drawn by the "
            "probabilities fixed now",
            file=sys.stderr,
        )
    samples = _draw(args)
    if not args.dry_run:
        _store(args, samples, now)
    exported = _export(args) if args.export is not None and not args.dry_run else None
    if args.json:
        print_json({"samples": list(map(_described, samples)), "exported": exported})
    else:
        _print(args, samples, exported)
    return 0


def check_target(path: Path, *, force: bool) -> None:
    """Refuse a file to write that has no known form, or exists; raises ConfigError."""
    if path.suffix.lower() not in (".csv", ".jsonl"):
        raise ConfigError(f"the sheet's name must end with .csv or .jsonl, not {path.name!r}")
    if not path.parent.is_dir():
        raise ConfigError(f"cannot write {path}: {path.parent} is no directory")
    if path.exists() and not force:
        raise ConfigError(
            f"{path} exists and may hold verdicts; name another file, or replace it with --force"
        )


def _draw(args: argparse.Namespace) -> list[DaySample]:
    reader = reader_for(args)
    try:
        tenants = tenants_of(reader, args.day) if args.tenant is None else [args.tenant]
        return [
            draw_day(reader, args.day, tenant, size=args.size, seed=args.seed) for tenant in tenants
        ]
    finally:
        reader.close()


def _store(args: argparse.Namespace, samples: list[DaySample], now: datetime) -> None:
    if not any(sample.plan.added or sample.unwritten for sample in samples):
        return
    writer = open_writer(args.store, args.data_dir, os.environ.get("LOOKUP_AUDIT_TOKEN"))
    try:
        for sample in samples:
            write_day(writer, sample, now)
    finally:
        writer.close()


def _export(args: argparse.Namespace) -> int:
    reader = reader_for(args)
    try:
        answers = sampled_answers(reader, args.day, args.tenant, refused=args.refused)
        return write_sheet(args.export, answers)
    finally:
        reader.close()


def _described(sample: DaySample) -> dict[str, Any]:
    counts = sample.counts()
    return {
        "tenant": sample.tenant,
        "day": sample.day.isoformat(),
        "seed": sample.plan.seed,
        "size": sample.plan.size,
        "drawn": len(sample.drawn),
        "stored_now": len(sample.unwritten),
        "strata": [
            {
                "mode": stratum.mode,
                "model_version": stratum.model_version,
                "level": stratum.level,
                "class": stratum.lookup_class,
                "population": population,
                "inclusion_probability": sample.plan.strata[stratum].probability,
                "drawn": counts[stratum],
            }
            for stratum, population in sorted(sample.populations.items())
        ],
    }


def _print(args: argparse.Namespace, samples: list[DaySample], exported: int | None) -> None:
    if not any(sample.populations for sample in samples):
        print(f"there are no lookups on {args.day}")
        return
    columns = ("tenant", "mode", "model version", "level", "class", "lookups", "p", "drawn")
    table = [
        [
            sample.tenant or "(none)",
            stratum["mode"],
            stratum["model_version"],
            stratum["level"],
            stratum["class"],
            stratum["population"],
            round(stratum["inclusion_probability"], 6),
            stratum["drawn"],
        ]
        for sample in samples
        for stratum in _described(sample)["strata"]
    ]
    print_table(columns, table)
    print()
    what = "would be stored" if args.dry_run else "stored now"
    for sample in samples:
        print(
            f"{sample.tenant or '(none)'}: {len(sample.drawn)} of "
            f"{sum(sample.populations.values())} lookups of {sample.day} drawn "
            f"(size {sample.plan.size}, seed {sample.plan.seed}), {len(sample.unwritten)} {what}"
        )
    if exported is not None:
        print(f"{exported} answers written to {args.export}")
