"""``lookup-audit judge``: verdicts from a sheet, a person or a model; agreement of judges."""

import argparse
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import get_args

from lookup_audit.deploy.cli.options import (
    add_source,
    collector_for,
    make_parser,
    print_json,
    print_table,
    printable,
    reader_for,
)
from lookup_audit.deploy.cli.sample import add_day
from lookup_audit.deploy.figures import NO_VALUE, number
from lookup_audit.deploy.judge_hook import Hook, JudgeFailedError, ask, command_hook, endpoint_hook
from lookup_audit.deploy.judge_terminal import judge_at_terminal
from lookup_audit.deploy.sender import Account, EventSender
from lookup_audit.processors.reading import Reader
from lookup_audit.processors.sampling.agreement import JudgePair, judge_pairs
from lookup_audit.processors.sampling.answers import Answer, answers, sampled_ids
from lookup_audit.processors.sampling.judgement import (
    JudgeName,
    make_judgement,
    recorded_verdicts,
)
from lookup_audit.processors.sampling.sheet import SheetContent, SheetVerdict, read_sheet
from lookup_audit.schemas.errors import ConfigError
from lookup_audit.schemas.names import JudgementSource, JudgementVerdict

_GIVE_UP_AFTER = 5
_PATH = "/v1/judgements"


def parser() -> argparse.ArgumentParser:
    """Options of the verb."""
    made = make_parser(
        "judge",
        "Record verdicts on sampled answers: from a filled sheet, at the terminal, or by a\n"
        "program or endpoint of your own. A sheet with a fault is not sent. Exit code 1 if\n"
        "anything could not be recorded.",
        "lookup-audit judge review.csv --judge-id reviewer-3",
    )
    made.add_argument("file", nargs="?", type=Path, metavar="FILE", help="a sheet of 'sample'")
    made.add_argument(
        "--interactive", action="store_true", help="judge a day's sample at the terminal"
    )
    made.add_argument(
        "--command",
        metavar="CMD",
        help='a program that gets one answer as JSON and prints {"verdict", "comment"}',
    )
    made.add_argument("--endpoint", metavar="URL", help="the same over HTTP, by POST")
    made.add_argument(
        "--agreement", action="store_true", help="Cohen's kappa of each two judges, by mode"
    )
    made.add_argument("--judge-id", metavar="ID", help="who judges")
    made.add_argument("--judge-version", metavar="V", help="of the model, prompt or guide")
    made.add_argument(
        "--source",
        choices=get_args(JudgementSource),
        help="kind of judge (default: human; llm for --command and --endpoint)",
    )
    made.add_argument("--partial", action="store_true", help="send a sheet's good rows anyway")
    made.add_argument(
        "--dry-run", action="store_true", help="read, check and ask, but record nothing"
    )
    made.add_argument("--limit", type=int, metavar="N", help="judge at most N answers")
    made.add_argument(
        "--timeout", type=float, default=60.0, help="seconds a try (default: %(default)s)"
    )
    made.add_argument("--retries", type=int, default=2, help="further tries (default: %(default)s)")
    made.add_argument(
        "--days", type=int, default=30, help="for --agreement: how far back (default: %(default)s)"
    )
    made.add_argument(
        "--collector", metavar="URL", help="where to send (default: the running stack)"
    )
    add_day(made, required=False)
    made.add_argument("--json", action="store_true", help="machine-readable answer")
    add_source(made)
    return made


def run(args: argparse.Namespace) -> int:
    """Do one of the four."""
    ways = [
        args.file,
        args.interactive or None,
        args.command,
        args.endpoint,
        args.agreement or None,
    ]
    if sum(way is not None for way in ways) != 1:
        raise ConfigError(
            "say one of: a FILE, --interactive, --command, --endpoint, or --agreement"
        )
    if args.agreement:
        return _agreement(args)
    judge = _judge(args)
    if args.file is not None:
        return _judge_sheet(args, judge)
    if args.day is None:
        raise ConfigError("say which day's sample to judge, with --day YYYY-MM-DD")
    if args.command is not None:
        return _judge_by_hook(args, judge, command_hook(args.command))
    if args.endpoint is not None:
        token = os.environ.get("LOOKUP_AUDIT_JUDGE_TOKEN")
        return _judge_by_hook(args, judge, endpoint_hook(args.endpoint, token))
    return _judge_interactively(args, judge)


def _judge(args: argparse.Namespace) -> JudgeName:
    if not args.judge_id:
        raise ConfigError("say who judges, with --judge-id ID")
    if args.retries < 0 or args.timeout <= 0 or (args.limit is not None and args.limit < 1):
        raise ConfigError("--timeout and --limit must be positive, --retries not negative")
    by_machine = args.command is not None or args.endpoint is not None
    if by_machine and args.source not in (None, "llm"):
        raise ConfigError("what --command and --endpoint say is recorded with the source llm")
    source: JudgementSource = "llm" if by_machine else args.source or "human"
    return JudgeName(source, args.judge_id, args.judge_version)


class _Recorder:
    """Sends judgements and keeps the account."""

    def __init__(self, args: argparse.Namespace, judge: JudgeName):
        # A dry run needs no collector.
        self._sender = None
        if not args.dry_run:
            url = collector_for(args.collector, args.data_dir, option="--collector")
            self._sender = EventSender(url, os.environ.get("LOOKUP_AUDIT_TOKEN"))
        self._judge = judge

    def add(
        self,
        place: str,
        tenant: str,
        outcome_id: str,
        verdict: JudgementVerdict,
        comment: str,
        judged_at: datetime,
    ) -> None:
        event = make_judgement(
            self._judge,
            tenant=tenant,
            outcome_id=outcome_id,
            verdict=verdict,
            comment=comment,
            judged_at=judged_at,
        )
        if self._sender is not None:
            self._sender.add(_PATH, place, json.dumps(event, ensure_ascii=False).encode())

    def add_now(self, answer: Answer, verdict: JudgementVerdict, comment: str) -> None:
        """Send one at once, so that it is recorded whatever happens next."""
        now = datetime.now(UTC)
        self.add(answer.outcome_id, answer.tenant, answer.outcome_id, verdict, comment, now)
        self.finish()

    def finish(self) -> Account:
        return self._sender.finish() if self._sender is not None else Account()


def _judge_sheet(args: argparse.Namespace, judge: JudgeName) -> int:
    content = read_sheet(args.file)
    known = _known(args, judge)
    fresh = [
        one
        for one in content.verdicts
        if known.get((one.tenant, one.outcome_id)) != (one.verdict, one.comment)
    ]
    sends = not args.dry_run and (args.partial or not content.faults)
    account = Account()
    if sends and fresh:
        recorder = _Recorder(args, judge)
        changed_at = datetime.fromtimestamp(args.file.stat().st_mtime, UTC)
        for one in fresh:
            recorder.add(
                f"row {one.row}",
                one.tenant,
                one.outcome_id,
                one.verdict,
                one.comment,
                one.judged_at or changed_at,
            )
        account = recorder.finish()
    _report_sheet(args, content, fresh, account, sends=sends)
    return 1 if content.faults or account.rejected else 0


def _known(args: argparse.Namespace, judge: JudgeName) -> dict[tuple[str, str], tuple[str, str]]:
    """What the judge recorded before, where there is a store to ask.

    A sheet that is filled and sent in several goes must not record its first rows again each time.
    """
    try:
        reader = reader_for(args)
    except ConfigError:
        return {}
    try:
        return recorded_verdicts(reader, judge)
    finally:
        reader.close()


def _report_sheet(
    args: argparse.Namespace,
    content: SheetContent,
    fresh: list[SheetVerdict],
    account: Account,
    *,
    sends: bool,
) -> None:
    known = len(content.verdicts) - len(fresh)
    if args.json:
        print_json(
            {
                "recorded": account.accepted,
                "recorded_before": known,
                "not_judged": content.open_rows,
                "faults": [
                    {"row": f.row, "column": f.column, "message": f.message} for f in content.faults
                ],
                "rejected": account.rejected,
            }
        )
        return
    for fault in content.faults:
        print(printable(f"{args.file}: {fault}"))
    for rejected in account.rejected:
        print(printable(f"{args.file}: {rejected['place']}: {rejected['message']}"))
    if not sends and content.faults:
        print("nothing was sent; mend these rows, or send the others with --partial")
    elif not sends:
        print(f"{len(fresh)} verdict(s) would be sent")
    print(
        f"{account.accepted} recorded, {known} recorded before, {content.open_rows} not judged "
        f"yet, {len(content.faults) + len(account.rejected)} at fault"
    )


@contextmanager
def _open_answers(
    args: argparse.Namespace, judge: JudgeName
) -> Iterator[tuple[int, Iterator[Answer]]]:
    """The sampled answers of the day that this judge has not judged, and their number."""
    reader: Reader = reader_for(args)
    try:
        done = recorded_verdicts(reader, judge)
        ids = [key for key in sampled_ids(reader, args.day, args.tenant) if key not in done]
        ids = ids[: args.limit] if args.limit is not None else ids
        yield len(ids), answers(reader, ids)
    finally:
        reader.close()


def _judge_interactively(args: argparse.Namespace, judge: JudgeName) -> int:
    recorder = _Recorder(args, judge)
    with _open_answers(args, judge) as (total, found):
        session = judge_at_terminal(found, total, recorder.add_now)
    rejected = recorder.finish().rejected
    for one in rejected:
        print(printable(f"{one['place']}: {one['message']}"))
    left = total - session.judged - session.skipped
    what = "judged and not recorded" if args.dry_run else "recorded"
    print(f"{session.judged} {what}, {session.skipped} skipped, {left} left of {total}")
    return 1 if rejected else 0


def _judge_by_hook(args: argparse.Namespace, judge: JudgeName, hook: Hook) -> int:
    recorder = _Recorder(args, judge)
    failures: list[dict[str, str]] = []
    in_a_row = judged = 0
    with _open_answers(args, judge) as (total, found):
        for answer in found:
            try:
                said = ask(hook, answer, timeout_seconds=args.timeout, retries=args.retries)
            except JudgeFailedError as error:
                failures.append({"outcome_id": answer.outcome_id, "message": str(error)})
                _say(f"{answer.outcome_id}: the judge {error}; skipped")
                in_a_row += 1
                if in_a_row == _GIVE_UP_AFTER:
                    _say(f"the judge failed {in_a_row} times in a row; the rest is left")
                    break
                continue
            in_a_row = 0
            judged += 1
            if args.dry_run:
                _say(f"{answer.outcome_id}: {said.verdict} {said.comment}")
            recorder.add_now(answer, said.verdict, said.comment)
    account = recorder.finish()
    if args.json:
        print_json(
            {"answers": total, "recorded": account.accepted, "failures": failures}
            | {"rejected": account.rejected}
        )
    else:
        for one in account.rejected:
            print(printable(f"{one['place']}: {one['message']}"))
        print(
            f"{account.accepted} recorded, {len(failures)} without a verdict, "
            f"{total - judged - len(failures)} left of {total}"
        )
    return 1 if failures or account.rejected else 0


def _say(text: str) -> None:
    print(printable(text), file=sys.stderr)


def _agreement(args: argparse.Namespace) -> int:
    if args.days < 1:
        raise ConfigError("--days must be at least 1")
    reader = reader_for(args)
    try:
        pairs = judge_pairs(reader, since=datetime.now(UTC) - timedelta(days=args.days))
    finally:
        reader.close()
    if args.json:
        print_json(list(map(_described, pairs)))
        return 0
    if not pairs:
        print(f"no two judges judged the same answer in the last {args.days} days")
        return 0
    columns = ("judge", "other judge", "mode", "answers", "same verdict", "kappa", "95 % interval")
    print_table(columns, [_row(pair) for pair in pairs])
    return 0


def _row(pair: JudgePair) -> list[object]:
    found = pair.agreement
    kappa = number(found.kappa, ".3f")
    interval = NO_VALUE
    if found.low is not None and found.high is not None:
        interval = f"{found.low:.3f} to {found.high:.3f}"
    mode = pair.mode or "(not stored)"
    return [pair.one, pair.other, mode, found.n, found.agreed, kappa, interval]


def _described(pair: JudgePair) -> dict[str, object]:
    found = pair.agreement
    return {
        "judge": pair.one,
        "other_judge": pair.other,
        "mode": pair.mode,
        "answers": found.n,
        "same_verdict": found.agreed,
        "kappa": found.kappa,
        "kappa_low": found.low,
        "kappa_high": found.high,
    }
