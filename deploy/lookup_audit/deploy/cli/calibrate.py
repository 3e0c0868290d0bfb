"""``lookup-audit calibrate``: thresholds held against a gold set, and fragility without one."""

import argparse
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from lookup_audit.deploy.calibration.plain import plain
from lookup_audit.deploy.calibration.text import (
    print_fragility,
    print_left_out,
    print_stratum,
    say,
)
from lookup_audit.deploy.cli.ingest import kind_of, read_events
from lookup_audit.deploy.cli.options import (
    add_source,
    make_parser,
    print_json,
    reader_for,
)
from lookup_audit.deploy.files import write_whole
from lookup_audit.deploy.ruleset_file import read_ruleset, write_ruleset
from lookup_audit.processors.calibration.asked import Asked
from lookup_audit.processors.calibration.emitted import Emitted, read_emitted
from lookup_audit.processors.calibration.fragility import fragility
from lookup_audit.processors.calibration.gold import GoldQuestion, read_gold
from lookup_audit.processors.calibration.matching import StratumTrials, match, never_asked
from lookup_audit.processors.calibration.report import StratumReport, calibrate
from lookup_audit.processors.calibration.stored import Scope, stored_lookups
from lookup_audit.processors.calibration.strategies import refuse_pooling
from lookup_audit.schemas.errors import ConfigError
from lookup_audit.schemas.ruleset import Appointment, Registry

_LONG_AGO = datetime(1900, 1, 1, tzinfo=UTC)


def parser() -> argparse.ArgumentParser:
    """Options of the verb."""
    made = make_parser(
        "calibrate",
        "Hold thresholds and layers against a gold set, per model version and mode: recall,\n"
        "precision and recall of PRECISE over the whole grid, the operating curve, reliability,\n"
        "and a ruleset for an error budget. --fragility needs no gold set: score bands, and how\n"
        "many labels hang on 0.01 of a threshold.\n\n"
        "A gold file has one question a line:\n"
        '  {"question": "…", "supporting_chunk_ids": ["…"], "category": "…"}\n'
        "An empty list says that the corpus has no answer. Where chunk ids depend on the model\n"
        'version: "supporting": {"<model version>": ["…"]}. Questions are found by their text\n'
        "(NFKC, case and spacing ignored); of several lookups of one question the last counts.",
        "lookup-audit calibrate --gold gold.jsonl --error-budget 0.2 --picture curve.svg",
    )
    made.add_argument("--gold", type=Path, metavar="FILE", help="the gold set (JSON lines)")
    made.add_argument(
        "--fragility", action="store_true", help="score bands and flips instead, without a gold set"
    )
    made.add_argument("--model-version", default="", metavar="V", help="only this model version")
    made.add_argument("--mode", default="", metavar="M", help="only this mode")
    made.add_argument("--tenant", default="", metavar="T", help="only this tenant")
    made.add_argument("--days", type=int, metavar="N", help="only the last N days (default: all)")
    made.add_argument(
        "--error-budget",
        type=float,
        default=0.05,
        metavar="RATE",
        help="highest high-score-error rate, held against the upper 95 %% end (default: 0.05)",
    )
    made.add_argument(
        "--events", metavar="FILE", help="lookups from a file of events, not from the store"
    )
    made.add_argument(
        "--ruleset", type=Path, metavar="FILE", help="with --events: ruleset to audit them by"
    )
    made.add_argument("--write-ruleset", type=Path, metavar="FILE", help="write the recommendation")
    made.add_argument(
        "--picture", type=Path, metavar="FILE", help="draw the operating curves (.svg or .png)"
    )
    made.add_argument("--json", action="store_true", help="machine-readable answer, all cuts")
    add_source(made)
    return made


def run(args: argparse.Namespace) -> int:
    """Calibrate, or tell the fragility."""
    refuse_pooling(args.mode)
    scope = scope_of(args, datetime.now(UTC))
    if args.fragility:
        return _fragility(args, scope)
    _check(args)
    gold = read_gold(args.gold)
    lookups, emitted = _lookups(args, gold, scope)
    strata = match(gold, lookups)
    reports = [calibrate(stratum, args.error_budget) for stratum in strata]
    # Before the tables: their reader may stop reading.
    notes = [*_write_ruleset(args, reports), *_draw(args, reports)]
    _print(args, gold, strata, reports, emitted)
    if not args.json:
        for note in notes:
            say(f"\n{note}")
    return 0 if reports and not (emitted and emitted.rejected) and not _missed(args, reports) else 1


def scope_of(args: argparse.Namespace, now: datetime) -> Scope:
    """Which lookups the options mean.

    Raises:
        ConfigError: ``--days`` is no number of days.
    """
    since = Scope().since
    if args.days is not None:
        if not 1 <= args.days <= 36_500:
            raise ConfigError("--days must be a whole number from 1 to 36500")
        since = (now - timedelta(days=args.days)).isoformat()
    return Scope(
        tenant=args.tenant,
        model_version=getattr(args, "model_version", ""),
        mode=getattr(args, "mode", ""),
        since=since,
    )


def _check(args: argparse.Namespace) -> None:
    if args.gold is None:
        raise ConfigError(
            "name a gold set with --gold FILE, or ask for --fragility, which needs none; "
            "'lookup-audit demo' leaves a gold.jsonl in its data directory"
        )
    if not 0.0 < args.error_budget < 1.0:
        raise ConfigError("--error-budget must be a rate between 0 and 1, such as 0.05")
    if args.ruleset is not None and args.events is None:
        raise ConfigError("--ruleset goes with --events; stored lookups have been audited already")
    if args.picture is not None:
        from lookup_audit.deploy.calibration.picture import check_picture_name

        check_picture_name(args.picture)


def _lookups(
    args: argparse.Namespace, gold: list[GoldQuestion], scope: Scope
) -> tuple[list[Asked], Emitted | None]:
    if args.events is None:
        reader = reader_for(args)
        try:
            return stored_lookups(reader, gold, scope), None
        finally:
            reader.close()
    appointed = [] if args.ruleset is None else [Appointment(read_ruleset(args.ruleset), _LONG_AGO)]
    emitted = read_emitted(_lookup_events(args.events), Registry(appointed))
    wanted = [
        lookup
        for lookup in emitted.lookups
        if scope.tenant in ("", lookup.tenant)
        and scope.model_version in ("", lookup.model_version)
        and scope.mode in ("", lookup.mode)
        and datetime.fromisoformat(lookup.occurred_at) >= datetime.fromisoformat(scope.since)
    ]
    return wanted, emitted


def _lookup_events(name: str) -> Iterator[tuple[str, bytes]]:
    """The file's lookups; outcomes and judgements beside them are passed over."""
    return ((place, raw) for place, raw in read_events(name) if kind_of(raw) == "lookup")


def _print(
    args: argparse.Namespace,
    gold: list[GoldQuestion],
    strata: list[StratumTrials],
    reports: list[StratumReport],
    emitted: Emitted | None,
) -> None:
    missing = never_asked(gold, strata)
    rejected = emitted.rejected if emitted else []
    if args.json:
        faults = [{"place": place, **plain(fault)} for place, fault in rejected]
        print_json(
            {
                "gold_questions": len(gold),
                "never_asked": plain(missing),
                "rejected_events": faults,
                "strata": plain(reports),
            }
        )
        return
    say(
        f"{len(gold)} gold questions, {sum(q.answerable for q in gold)} answerable. Right is a "
        "lookup whose top kept chunk supports\nthe answer. Rates hold for this mix of questions. "
        "Modes are never pooled."
    )
    for place, fault in rejected[:20]:
        say(f"event at {place} refused: {fault.message}")
    for report in reports:
        print_stratum(report)
    if not reports:
        say("\nNo lookup of a gold question is there; ask the service these questions first.")
        print_left_out(missing)


def _draw(args: argparse.Namespace, reports: list[StratumReport]) -> list[str]:
    if args.picture is None or not reports:
        return []
    from lookup_audit.deploy.calibration.picture import operating_picture

    write_whole(args.picture, operating_picture(reports, args.picture.suffix))
    return [f"operating curve drawn in {args.picture}"]


def _missed(args: argparse.Namespace, reports: list[StratumReport]) -> bool:
    """Whether a ruleset was asked for and none is recommended."""
    return args.write_ruleset is not None and reports[0].recommendation.ruleset is None


def _write_ruleset(args: argparse.Namespace, reports: list[StratumReport]) -> list[str]:
    if args.write_ruleset is None or not reports:
        return []
    if len(reports) > 1:
        names = "\n".join(f"  --model-version {r.model_version} --mode {r.mode}" for r in reports)
        raise ConfigError(
            f"a ruleset is for one model version and mode; name one for --write-ruleset:\n{names}"
        )
    ruleset = reports[0].recommendation.ruleset
    if ruleset is None:
        return [f"no ruleset is recommended: {args.write_ruleset} is not written"]
    write_ruleset(args.write_ruleset, ruleset)
    return [f"ruleset {ruleset.ruleset_id} written to {args.write_ruleset}"]


def _fragility(args: argparse.Namespace, scope: Scope) -> int:
    for name in ("gold", "events", "ruleset", "write_ruleset", "picture"):
        if getattr(args, name) is not None:
            option = name.replace("_", "-")
            raise ConfigError(f"--fragility reads stored lookups alone; leave out --{option}")
    reader = reader_for(args)
    try:
        found = fragility(reader, scope)
    finally:
        reader.close()
    if args.json:
        print_json(plain(found))
    elif found:
        print_fragility(found)
    else:
        say("no lookup is stored in this scope")
    return 0 if found else 1
