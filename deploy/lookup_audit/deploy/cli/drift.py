"""``lookup-audit drift``: what is watched, what has moved, and which change is meant."""

import argparse
import os
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from lookup_audit.deploy.cli import drift_explain
from lookup_audit.deploy.cli.options import (
    add_source,
    make_parser,
    print_json,
    print_table,
    printable,
    reader_for,
)
from lookup_audit.deploy.writer import open_writer
from lookup_audit.processors.drift.config import DriftConfig
from lookup_audit.processors.drift.ledger import acceptance_row
from lookup_audit.processors.drift.patience import calls_to_see
from lookup_audit.processors.reading import rows
from lookup_audit.schemas.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Action:
    """One sub-verb.

    Args:
        help: What it is for.
        run: Does it; returns the exit code.
        add_arguments: Its own options; ``--store``, ``--data-dir`` and ``--json`` are there.
    """

    help: str
    run: Callable[[argparse.Namespace], int]
    add_arguments: Callable[[argparse.ArgumentParser], None] = lambda parser: None


def parser() -> argparse.ArgumentParser:
    """Options of the verb."""
    made = make_parser(
        "drift",
        "State of every watched rate, and the alarms. Exit code 1 while an alarm is open.",
        'lookup-audit drift accept 8edd08fc9b3e7b3b --by mia --comment "new index, as planned"',
    )
    add_source(made)
    made.add_argument("--json", action="store_true", help=_JSON)
    actions = made.add_subparsers(dest="action", metavar="|".join(ACTIONS))
    for name, action in ACTIONS.items():
        sub = actions.add_parser(name, help=action.help, description=action.help)
        _add_shared(sub)
        action.add_arguments(sub)
    return made


def run(args: argparse.Namespace) -> int:
    """Do what was asked; without a sub-verb print the state."""
    return ACTIONS[args.action or "status"].run(args)


_JSON = "machine-readable answer"


def _add_shared(parser: argparse.ArgumentParser) -> None:
    """The options of the verb once more: what was given before a sub-verb holds unless repeated."""
    unset = argparse.SUPPRESS
    parser.add_argument("--store", default=unset, metavar="URL", help="ClickHouse server")
    parser.add_argument(
        "--data-dir", type=Path, default=unset, metavar="DIR", help="of an embedded stack"
    )
    parser.add_argument("--json", action="store_true", default=unset, help=_JSON)


_STRATA = """
SELECT s.*, m.calls AS calls_last_week, m.late AS late_last_week, m.missed AS missed_last_week
FROM audit.drift_strata AS s
LEFT JOIN (
    SELECT
        metric, tenant, service, mode, model_version, quality_basis,
        sum(n) AS calls, sum(late) AS late, sum(missed) AS missed
    FROM audit.drift_minutes
    WHERE minute >= (SELECT max(minute) FROM audit.drift_minutes) - INTERVAL 7 DAY
    GROUP BY ALL
) AS m USING (metric, tenant, service, mode, model_version, quality_basis)
ORDER BY s.metric, s.mode, s.tenant, s.service, s.model_version, s.quality_basis
"""
_ALARMS = "SELECT * FROM audit.drift_alarms ORDER BY state = 'open' DESC, detected_at DESC"
_CLOSED_TO = """
SELECT count() AS n, max(minute) + INTERVAL 1 MINUTE AS closed_to FROM audit.drift_minutes
"""


def _status(args: argparse.Namespace) -> int:
    reader = reader_for(args)
    try:
        strata, alarms = rows(reader, _STRATA), rows(reader, _ALARMS)
        closed = rows(reader, _CLOSED_TO)[0]
    finally:
        reader.close()
    for stratum in strata:
        stratum |= {"finds_10_points_after_days": _days_to_see(stratum)}
    is_open = any(alarm["state"] == "open" for alarm in alarms)
    if args.json:
        until = closed["closed_to"] if closed["n"] else None
        print_json({"closed_to": until, "strata": strata, "alarms": alarms})
        return int(is_open)
    if not strata:
        print(
            "Nothing is watched yet: no minute has been closed. Minutes are closed by\n"
            "'lookup-audit up' or 'lookup-audit watch', some minutes after their lookups."
        )
        return 0
    print_table(_STRATUM_COLUMNS, [_stratum_line(stratum) for stratum in strata])
    late = sum(stratum["late_last_week"] for stratum in strata)
    missed = sum(stratum["missed_last_week"] for stratum in strata)
    print(
        f"\nMinutes are closed until {closed['closed_to']} UTC. Too late for their minute in the "
        f"last week: {late}; stored after it was closed: {missed}.\n"
        "finds 10 points: how long a change by 10 points would go unseen, at last week's traffic."
    )
    _print_alarms(alarms)
    return int(is_open)


_STRATUM_COLUMNS = (
    "rate",
    "mode",
    "tenant",
    "service",
    "model",
    "basis",
    "reference",
    "ignores",
    "finds 10 points",
    "state",
)


def _stratum_line(stratum: dict[str, Any]) -> list[object]:
    rate, error = stratum["reference_rate"], stratum["reference_error"]
    known = None if rate is None else f"{100 * rate:.1f} ± {100 * error:.1f} %"
    days = stratum["finds_10_points_after_days"]
    return [
        stratum["metric"].removesuffix("_rate"),
        stratum["mode"],
        stratum["tenant"],
        stratum["service"],
        stratum["model_version"],
        stratum["quality_basis"],
        known,
        f"{stratum['ignore_points']:.1f} points",
        None if days is None else _duration(days),
        _state(stratum),
    ]


def _state(stratum: dict[str, Any]) -> str:
    if stratum["alarm_id"]:
        return f"alarm {stratum['alarm_id']}"
    if stratum["phase"] != "warming":
        compared = f", against {stratum['compared_to']}" if stratum["compared_to"] else ""
        return f"watching{compared}"
    calls, needed = int(stratum["reference_calls"]), int(stratum["calls_needed"])
    if calls < needed:
        return f"not watching yet: {calls} of {needed} calls"
    return f"not watching yet: {calls} calls, but not yet of a full day"


def _days_to_see(stratum: dict[str, Any]) -> float | None:
    """Days until a change by ten points is seen; ``None`` where it would never be."""
    a_day = stratum["calls_last_week"] / 7.0
    rate = stratum["reference_rate"]
    if not a_day or rate is None:
        return None
    defaults = DriftConfig()
    # Errors and refusals are watched for a rise, PRECISE for a fall first of all.
    change = -0.1 if stratum["metric"] == "precise_rate" and rate > 0.1 else 0.1
    calls = calls_to_see(
        rate,
        change,
        calls_between_alarms=max(
            defaults.false_alarm_days * a_day, float(defaults.calls_per_alarm)
        ),
        dispersion=stratum["design_effect"],
    )
    return float(calls / a_day)


def _duration(days: float) -> str:
    if days >= 60:
        return f"{days / 30:.0f} months: too few calls to page"
    if days >= 2:
        return f"{days:.0f} days"
    return f"{24 * days:.0f} hours" if days >= 1 / 12 else f"{max(1.0, 1440 * days):.0f} minutes"


def _print_alarms(alarms: list[dict[str, Any]]) -> None:
    if not alarms:
        print("\nNo alarm has been raised.")
        return
    print()
    lines = [[a["alarm_id"], a["state"], a["detected_at"][:16], a["summary"]] for a in alarms]
    print_table(("alarm", "state", "raised (UTC)", "what"), lines)


def _list_alarms(args: argparse.Namespace) -> int:
    reader = reader_for(args)
    try:
        alarms = rows(reader, _ALARMS)
    finally:
        reader.close()
    if args.json:
        print_json(alarms)
    else:
        _print_alarms(alarms)
    return int(any(alarm["state"] == "open" for alarm in alarms))


def _add_accept(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("alarm", metavar="ALARM", help="the alarm's id")
    parser.add_argument("--by", required=True, metavar="WHO", help="who says that it is meant")
    parser.add_argument("--comment", default="", help="why")
    parser.add_argument("--dry-run", action="store_true", help="only say what would be accepted")


def _accept(args: argparse.Namespace) -> int:
    if not args.by.strip():
        raise ConfigError("--by needs a name: the acceptance is kept with it")
    alarm = _alarm(args)
    if alarm["state"] != "open":
        by = f" by {alarm['accepted_by']}" if alarm["accepted_by"] else ""
        raise ConfigError(f"alarm {alarm['alarm_id']} is not open: it is {alarm['state']}{by}")
    if not args.dry_run:
        token = os.environ.get("LOOKUP_AUDIT_TOKEN")
        writer = open_writer(args.store, args.data_dir, token)
        try:
            now = datetime.now(UTC)
            batch = acceptance_row(
                alarm["alarm_id"], accepted_by=args.by, comment=args.comment, accepted_at=now
            )
            writer.insert(
                "audit_store.drift_acceptances",
                batch,
                token=f"accept;{alarm['alarm_id']};{now.isoformat()}",
            )
        finally:
            writer.close()
    if args.json:
        print_json({"dry_run": args.dry_run, "accepted": alarm["alarm_id"], "by": args.by})
        return 0
    what = "would be accepted" if args.dry_run else "accepted"
    print(f"{what}: {printable(alarm['summary'])}")
    if not args.dry_run:
        print("The new rate is the reference from the next closed minute on.")
    return 0


def _alarm(args: argparse.Namespace) -> dict[str, Any]:
    reader = reader_for(args)
    try:
        found = rows(
            reader,
            "SELECT * FROM audit.drift_alarms WHERE alarm_id = {id:String}",
            {"id": args.alarm},
        )
    finally:
        reader.close()
    if not found:
        raise ConfigError(f"there is no alarm {args.alarm}; 'lookup-audit drift alarms' lists them")
    return found[0]


ACTIONS = {
    "status": Action("every watched rate and its state (the default)", _status),
    "alarms": Action("all alarms, open ones first", _list_alarms),
    "explain": Action(
        "split a change of the PRECISE rate by cause",
        drift_explain.run,
        drift_explain.add_options,
    ),
    "accept": Action("take the rate of an open alarm as the new reference", _accept, _add_accept),
}
