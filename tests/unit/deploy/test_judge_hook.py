import json
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from lookup_audit.deploy.judge_hook import (
    HookVerdict,
    JudgeFailedError,
    ask,
    command_hook,
    endpoint_hook,
    read_verdict,
)
from lookup_audit.schemas.errors import ConfigError
from tests.unit.processors.sampling.test_sheet import make_answer

GOOD = HookVerdict("partly", "对")


def script(tmp_path: Path, text: str) -> str:
    path = tmp_path / "judge.py"
    path.write_text(f"import json, sys, time\n{text}", encoding="utf-8")
    return f"{sys.executable} '{path}'"


def judge(command: str, timeout_seconds: float = 30.0) -> HookVerdict:
    return ask(command_hook(command), make_answer(), timeout_seconds=timeout_seconds, retries=0)


def test_a_command_gets_the_answer_and_its_verdict_is_read(tmp_path: Path) -> None:
    command = script(
        tmp_path,
        "a = json.load(sys.stdin)\n"
        "assert a['queries'] == ['默认超时是多少？'] and a['evidence'][0]['excerpt']\n"
        "print(json.dumps({'verdict': 'partly', 'comment': '对', 'model': 'x'}))",
    )
    assert judge(command) == GOOD


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("sys.exit('no key')", "exits with 1: no key"),
        ("print('yes')", "no JSON"),
        ("print('[]')", "no JSON object"),
        ("print('{}')", "verdict null is none of"),
        ("print(json.dumps({'verdict': 'CORRECT'}))", '"CORRECT" is none of'),
        ("print(json.dumps({'verdict': 'correct', 'comment': 1}))", "comment is no text"),
        ("print(json.dumps({'verdict': 'correct', 'comment': chr(0xd800)}))", "is no text"),
        ("print('x' * 10_000_000)", "more than 64 KiB"),
    ],
)
def test_an_unusable_answer_is_a_failure_with_the_reason(
    text: str, words: str, tmp_path: Path
) -> None:
    with pytest.raises(JudgeFailedError, match=words):
        judge(script(tmp_path, text))


def test_a_command_that_hangs_is_ended_with_its_children(tmp_path: Path) -> None:
    started, survived = tmp_path / "started", tmp_path / "survived"
    text = f"(touch '{started}'; sleep 3; touch '{survived}') & sleep 60"
    with pytest.raises(JudgeFailedError, match="no answer within 2 seconds"):
        judge(f'sh -c "{text}"', timeout_seconds=2.0)
    assert started.exists()
    threading.Event().wait(2.0)
    assert not survived.exists()


@pytest.mark.parametrize("command", ["", "   ", "'open", "/no/such/program"])
def test_a_command_that_cannot_be_run_is_the_users_mistake(command: str) -> None:
    with pytest.raises(ConfigError):
        judge(command)


def test_a_command_is_not_given_to_a_shell(tmp_path: Path) -> None:
    command = script(tmp_path, "print(json.dumps({'verdict': 'correct', 'comment': sys.argv[1]}))")
    assert judge(f"{command} '$(id); echo `id`'").comment == "$(id); echo `id`"


def test_failures_are_tried_again_with_growing_waits() -> None:
    waits: list[float] = []
    answers = [b"", b"{", b'{"verdict": "partly", "comment": "\xe5\xaf\xb9"}']

    def hook(body: bytes, timeout_seconds: float) -> bytes:
        return answers.pop(0)

    assert ask(hook, make_answer(), timeout_seconds=1, retries=2, sleep=waits.append) == GOOD
    assert waits == [1.0, 2.0]


def test_the_last_failure_is_the_one_reported() -> None:
    with pytest.raises(JudgeFailedError, match="no JSON"):
        ask(lambda body, limit: b"", make_answer(), timeout_seconds=1, retries=0)


@contextmanager
def endpoint(*answers: tuple[int, bytes]) -> Iterator[tuple[str, list[tuple[str, bytes]]]]:
    """A server that gives these answers in turn; yields its URL and what it was sent."""
    left, got = list(answers), []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            got.append((self.headers.get("Authorization", ""), body))
            status, data = left.pop(0)
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v", got
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


OK = (200, b'{"verdict": "partly", "comment": "\xe5\xaf\xb9"}')


def test_an_endpoint_is_posted_to_and_tried_again_after_its_own_trouble() -> None:
    with endpoint((503, b"busy"), OK) as (url, got):
        hook = endpoint_hook(url, "secret")
        found = ask(hook, make_answer(), timeout_seconds=5, retries=1, sleep=lambda s: None)
    assert found == GOOD
    assert [token for token, _ in got] == ["Bearer secret"] * 2
    assert json.loads(got[0][1]) == json.loads(json.dumps(make_answer().as_json()))


def test_an_endpoint_that_refuses_is_not_asked_again() -> None:
    with (
        endpoint((400, b"bad prompt"), OK) as (url, got),
        pytest.raises(JudgeFailedError, match="answers 400: bad prompt"),
    ):
        ask(endpoint_hook(url), make_answer(), timeout_seconds=5, retries=3)
    assert len(got) == 1


def test_an_endpoint_that_is_not_there_is_a_failure() -> None:
    with pytest.raises(JudgeFailedError, match="does not answer"):
        endpoint_hook("http://127.0.0.1:1/")(b"{}", 1.0)


@pytest.mark.parametrize("url", ["", "judge.example", "file:///etc/passwd", "ftp://x/y"])
def test_an_endpoint_must_be_http(url: str) -> None:
    with pytest.raises(ConfigError, match="--endpoint"):
        endpoint_hook(url)


def test_a_comment_is_bounded() -> None:
    with pytest.raises(JudgeFailedError, match="longer than 10000"):
        read_verdict(json.dumps({"verdict": "correct", "comment": "x" * 10_001}).encode())
