"""``lookup-audit drift explain``: why the PRECISE rate differs between two periods."""

import argparse
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from pydantic_core import PydanticCustomError

from lookup_audit.deploy.cli.options import print_json, reader_for
from lookup_audit.deploy.explain_report import explain_document, print_explanation
from lookup_audit.deploy.outdated import says_if_outdated
from lookup_audit.processors.drift_causes.reading import Stratum, read_rows
from lookup_audit.processors.drift_causes.split import split
from lookup_audit.processors.drift_causes.table import make_table
from lookup_audit.processors.drift_causes.words import causes
from lookup_audit.processors.reading import Reader, rows
from lookup_audit.processors.replay.scope import Scope, store_time
from lookup_audit.schemas.errors import ConfigError
from lookup_audit.schemas.fields import parse_instant

# What an alarm's period is compared with, where nothing else is said.
_REFERENCE = timedelta(days=28)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Options of the sub-verb, beside ``--store``, ``--data-dir`` and ``--json`` of the verb."""
    parser.add_argument(
        "alarm", nargs="?", metavar="ALARM", help="id of an alarm of the PRECISE rate"
    )
    parser.add_argument("--from", dest="since", metavar="T", help="start of the period to explain")
    parser.add_argument("--to", dest="until", metavar="T", help="its end (default: now)")
    parser.add_argument(
        "--against-from",
        metavar="T",
        help="start of what it is compared with (default: as long, just before)",
    )
    parser.add_argument(
        "--against-to", metavar="T", help="its end (default: where the other begins)"
    )
    parser.add_argument("--mode", help="retrieval mode; needed where there are several")
    parser.add_argument("--model-version", default="", metavar="V", help="only this model version")
    parser.add_argument(
        "--against-model-version",
        default="",
        metavar="V",
        help="compare with this model version, in the same period unless another is named",
    )
    parser.add_argument("--tenant", default="", metavar="T", help="only this tenant")
    parser.add_argument("--service", default="", metavar="S", help="only this service")


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two strata of one mode whose rates are compared."""

    before: Stratum
    after: Stratum


def run(args: argparse.Namespace) -> int:
    """Split the change and print it."""
    now = datetime.now(UTC)
    reader = reader_for(args)
    try:
        comparison = (
            alarm_comparison(reader, args, now)
            if args.alarm
            else _period_comparison(reader, args, now)
        )
        with says_if_outdated():
            table = make_table(read_rows(reader, comparison.before, comparison.after))
    finally:
        reader.close()
    found = split(table)
    document = explain_document(
        comparison.before, comparison.after, found, causes(table, found), args.alarm
    )
    if args.json:
        print_json(document)
    else:
        print_explanation(document)
    return 0


def _time(text: str | None, option: str) -> datetime | None:
    if text is None:
        return None
    try:
        return parse_instant(text)
    except PydanticCustomError as error:
        raise ConfigError(f"{option} {text!r}: {error.message()}") from error


def _periods(
    args: argparse.Namespace,
    start: datetime,
    end: datetime,
    reference: timedelta,
    *,
    beside: bool = False,
) -> tuple[Scope, Scope]:
    """The period compared with and the one to explain.

    Args:
        args: What the user says of them.
        start: Start of the period to explain, where nothing is said.
        end: Its end.
        reference: How much longer ago the other one begins.
        beside: The two are of different model versions, and so may be of one time.

    Raises:
        ConfigError: They make no sense.
    """
    since = _time(args.since, "--from") or start
    until = _time(args.until, "--to") or end
    against_until = _time(args.against_to, "--against-to") or (until if beside else since)
    against_since = _time(args.against_from, "--against-from") or (
        (since if beside else against_until) - reference
    )
    if since >= until:
        raise ConfigError(f"the period ends ({until:%F %T}) before it begins ({since:%F %T}) (UTC)")
    if against_since >= against_until:
        raise ConfigError("--against-from must be before --against-to")
    if against_until > since and not beside:
        raise ConfigError(
            "the two periods overlap, so that a lookup would count on both sides; end the one "
            "compared with (--against-to) where the other begins (--from)"
        )
    return Scope(against_since, against_until, args.tenant), Scope(since, until, args.tenant)


def _period_comparison(reader: Reader, args: argparse.Namespace, now: datetime) -> Comparison:
    since = _time(args.since, "--from")
    if since is None:
        raise ConfigError("name an alarm, or a period with --from T [--to T]")
    until = _time(args.until, "--to") or now
    other = args.against_model_version or args.model_version
    beside = other != args.model_version
    if beside and not args.model_version:
        raise ConfigError("--against-model-version needs --model-version to compare with it")
    reference = timedelta(0) if beside else max(until - since, timedelta(0))
    before, after = _periods(args, since, until, reference, beside=beside)
    mode = args.mode or _only_mode(reader, before, after)
    return Comparison(
        Stratum(before, mode, args.service, other),
        Stratum(after, mode, args.service, args.model_version),
    )


def _only_mode(reader: Reader, before: Scope, after: Scope) -> str:
    found = rows(
        reader,
        "SELECT mode, count() AS n FROM audit.lookups "
        "WHERE occurred_at >= {since:DateTime64(6, 'UTC')} "
        "AND occurred_at < {until:DateTime64(6, 'UTC')} AND {tenant:String} IN ('', tenant) "
        "GROUP BY mode ORDER BY mode",
        {
            "since": store_time(before.since),
            "until": store_time(after.until),
            "tenant": after.tenant,
        },
    )
    modes = [row["mode"] for row in found]
    if len(modes) > 1:
        raise ConfigError(
            f"there are lookups of modes {', '.join(modes)}; their levels are on different rulers "
            "and are never pooled: choose one with --mode"
        )
    if not modes:
        raise ConfigError("there are no lookups in these periods, so there is no change to split")
    return str(modes[0])


_ALARM = """
SELECT alarm_id, metric, tenant, service, mode, model_version, quality_basis, compared_to,
    started_at, closed_at
FROM audit.drift_alarms WHERE startsWith(alarm_id, {alarm:String}) ORDER BY alarm_id LIMIT 3
"""


def alarm_comparison(reader: Reader, args: argparse.Namespace, now: datetime) -> Comparison:
    """What an alarm is of, since it began, against the weeks before or its predecessor.

    Raises:
        ConfigError: There is no such alarm, or it is of another rate.
    """
    named = (args.mode, args.model_version, args.against_model_version, args.tenant, args.service)
    if any(named):
        raise ConfigError("an alarm says itself which lookups it is of; leave out --mode and such")
    alarm = _one_alarm(reader, args.alarm)
    start = _stored(alarm["started_at"])
    end = _stored(alarm["closed_at"]) if alarm["closed_at"] else now
    # A new version is compared with the one it follows, which may still run beside it.
    predecessor = alarm["compared_to"]
    scopes = _periods(args, start, end, _REFERENCE, beside=bool(predecessor))
    before, after = (
        Stratum(
            replace(scope, tenant=alarm["tenant"]),
            alarm["mode"],
            alarm["service"],
            alarm["model_version"],
            alarm["quality_basis"],
        )
        for scope in scopes
    )
    if predecessor:
        before = replace(before, model_version=predecessor)
    return Comparison(before, after)


def _one_alarm(reader: Reader, alarm_id: str) -> dict[str, str]:
    """The alarm whose id begins so, with ``""`` for what it leaves free; raises ConfigError."""
    with says_if_outdated():
        found = rows(reader, _ALARM, {"alarm": alarm_id})
    if not found:
        raise ConfigError(f"there is no alarm {alarm_id}; 'lookup-audit drift' lists them")
    if len(found) > 1:
        raise ConfigError(f"{alarm_id!r} could be any of several alarms; write more of it")
    alarm = {name: "" if value == "*" else value for name, value in found[0].items()}
    if "precise" not in alarm["metric"]:
        raise ConfigError(
            f"this alarm is of {alarm['metric']}; only a change of the PRECISE rate can be split"
        )
    if alarm["mode"] == "":
        raise ConfigError("this alarm is of no single mode, and modes are never pooled")
    return alarm


def _stored(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)
