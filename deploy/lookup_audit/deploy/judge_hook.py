"""A judge of the user's own: a command or an HTTP endpoint that is given one answer at a time.

It gets what a reviewer gets, as one JSON object, and answers ``{"verdict": …, "comment": …}``.
Nothing here is called unless the user names it. What it answers is checked; it has a time limit, a
few tries, and a bounded answer.
"""

import contextlib
import json
import os
import shlex
import signal
import subprocess
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from lookup_audit.processors.sampling.answers import Answer
from lookup_audit.processors.sampling.sheet import VERDICTS, is_whole
from lookup_audit.schemas.errors import ConfigError, LookupAuditError
from lookup_audit.schemas.names import JudgementVerdict

_MAX_ANSWER_BYTES: Final = 64 * 1024
_MAX_COMMENT: Final = 10_000
_WAIT_SECONDS: Final = 1.0


class JudgeFailedError(LookupAuditError):
    """The judge gave no usable verdict on one answer.

    Args:
        message: What happened.
        retriable: Whether another try may help.
    """

    def __init__(self, message: str, *, retriable: bool = True):
        super().__init__(message)
        self.retriable = retriable


@dataclass(frozen=True, slots=True)
class HookVerdict:
    """What the judge said."""

    verdict: JudgementVerdict
    comment: str


# Takes the answer as JSON and a time limit in seconds; gives the judge's bytes.
Hook = Callable[[bytes, float], bytes]


def ask(
    hook: Hook,
    answer: Answer,
    *,
    timeout_seconds: float,
    retries: int,
    sleep: Callable[[float], None] = time.sleep,
) -> HookVerdict:
    """Have one answer judged.

    Args:
        hook: The judge.
        answer: What it judges.
        timeout_seconds: For each try.
        retries: Further tries after the first, with growing waits between.
        sleep: Waits.

    Raises:
        JudgeFailedError: The last try gave no usable verdict.
    """
    body = json.dumps(answer.as_json(), ensure_ascii=False).encode()
    for attempt in range(retries + 1):
        try:
            return read_verdict(hook(body, timeout_seconds))
        except JudgeFailedError as error:
            if attempt == retries or not error.retriable:
                raise
            sleep(_WAIT_SECONDS * 2**attempt)
    raise AssertionError("the last try returns or raises")


def read_verdict(data: bytes) -> HookVerdict:
    """Check what a judge answered; raises JudgeFailedError."""
    if len(data) > _MAX_ANSWER_BYTES:
        raise JudgeFailedError(f"answers more than {_MAX_ANSWER_BYTES >> 10} KiB")
    try:
        found: Any = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise JudgeFailedError(f"answers no JSON: {data[:80]!r}") from error
    if not isinstance(found, dict):
        raise JudgeFailedError("answers no JSON object")
    verdict = next((v for v in VERDICTS if v == found.get("verdict")), None)
    if verdict is None:
        given = json.dumps(found.get("verdict"), ensure_ascii=False)[:60]
        raise JudgeFailedError(f"its verdict {given} is none of {', '.join(VERDICTS)}")
    comment = found.get("comment")
    if comment is not None and not (isinstance(comment, str) and is_whole(comment)):
        raise JudgeFailedError("its comment is no text")
    if len(comment or "") > _MAX_COMMENT:
        raise JudgeFailedError(f"its comment is longer than {_MAX_COMMENT} characters")
    return HookVerdict(verdict, comment or "")


def command_hook(command: str) -> Hook:
    """A judge that is a program: JSON on its standard input, JSON on its standard output.

    Args:
        command: Split like a shell's, and run without one.

    Raises:
        ConfigError: The command is empty or its quotes do not match.
    """
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise ConfigError(f"--command {command!r}: {error}") from error
    if not words:
        raise ConfigError("--command is empty; give a program and its arguments")

    def run(body: bytes, timeout_seconds: float) -> bytes:
        # Files and no pipes: what a runaway program prints does not fill our memory.
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            try:
                process = subprocess.Popen(
                    words, stdin=subprocess.PIPE, stdout=out, stderr=err, start_new_session=True
                )
            except OSError as error:
                raise ConfigError(f"cannot run {words[0]!r}: {error.strerror}") from error
            try:
                process.communicate(body, timeout=timeout_seconds)
            except subprocess.TimeoutExpired as error:
                raise JudgeFailedError(f"no answer within {timeout_seconds:g} seconds") from error
            finally:
                # Its children too, and also when we are interrupted.
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            if process.returncode != 0:
                err.seek(0)
                text = err.read(300).decode("utf-8", "replace").strip()
                raise JudgeFailedError(f"exits with {process.returncode}: {text}")
            out.seek(0)
            return out.read(_MAX_ANSWER_BYTES + 1)

    return run


def endpoint_hook(url: str, token: str | None = None) -> Hook:
    """A judge behind HTTP: the JSON is posted to it.

    Args:
        url: ``http`` or ``https``.
        token: Sent as a bearer token.

    Raises:
        ConfigError: The URL is neither.
    """
    parts = urllib.parse.urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigError(f"--endpoint {url!r} must look like https://judge.example/verdict")
    headers = {"Content-Type": "application/json", "Accept": "application/json"}
    if token:
        headers["Authorization"] = f"Bearer {token}"

    def post(body: bytes, timeout_seconds: float) -> bytes:
        request = urllib.request.Request(url, body, headers)
        try:
            with urllib.request.urlopen(request, timeout=timeout_seconds) as response:
                data: bytes = response.read(_MAX_ANSWER_BYTES + 1)
                return data
        except urllib.error.HTTPError as error:
            text = error.read(300).decode("utf-8", "replace").strip()
            again = error.code in (408, 425, 429) or error.code >= 500
            raise JudgeFailedError(f"answers {error.code}: {text}", retriable=again) from error
        except OSError as error:
            raise JudgeFailedError(f"does not answer: {error}") from error

    return post
