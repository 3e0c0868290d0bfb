import json
import signal
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.conftest import Up, run_command
from tests.support.events import encode, make_lookup

Start = Callable[..., Up]


def test_data_survives_a_restart_and_offsets_begin_anew(start: Start, tmp_path: Path) -> None:
    first = start()
    event = make_lookup()
    first.post("/v1/lookups", encode(event))
    assert first.stop() == 0
    second = start(tmp_path / "data")
    second.post("/v1/lookups", encode(make_lookup()))
    second.wait_for("SELECT count() FROM lookups", "2")
    assert second.query("SELECT uniqExact(kafka_cluster) FROM lookups") == "2"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "Ctrl-C"])
def test_everything_accepted_is_stored_before_it_stops(
    number: int, start: Start, tmp_path: Path
) -> None:
    stack = start()
    events = [make_lookup() for _ in range(2_000)]
    body = json.dumps(events).encode()
    assert stack.post("/v1/lookups", body)["accepted"] == 2_000
    assert stack.stop(number) == 0
    answer = run_command(
        "query", "SELECT count() AS n FROM lookups", "--json", "--data-dir", tmp_path / "data"
    )
    assert json.loads(answer.stdout) == [{"n": 2_000}]


def test_a_kill_loses_less_than_a_second_even_right_after_the_start(
    start: Start, tmp_path: Path
) -> None:
    stack = start()
    stack.post("/v1/lookups", json.dumps([make_lookup() for _ in range(200)]).encode())
    time.sleep(1.0)
    stack.process.kill()
    stack.process.wait(10)
    again = start(tmp_path / "data")
    assert again.query("SELECT count() FROM lookups") == "200"


def test_a_second_stack_on_one_directory_is_refused(start: Start, tmp_path: Path) -> None:
    start()
    answer = run_command("up", "--data-dir", tmp_path / "data", "--port", "0")
    assert answer.returncode == 2
    assert "is in use by process" in answer.stderr
    assert "--data-dir" in answer.stderr


def test_a_taken_port_is_named_and_nothing_is_left_behind(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        answer = run_command("up", "--data-dir", tmp_path / "data", "--port", port)
    assert answer.returncode == 2
    assert f"port {port}" in answer.stderr
    assert "Traceback" not in answer.stderr


def test_other_machines_are_kept_out_without_tokens(tmp_path: Path) -> None:
    answer = run_command("up", "--data-dir", tmp_path / "data", "--host", "0.0.0.0", "--port", "0")
    assert answer.returncode == 2
    assert "token" in answer.stderr


def test_tokens_guard_events_and_queries_alike(start: Start, tmp_path: Path) -> None:
    token = "t" * 40
    tokens = tmp_path / "tokens"
    tokens.write_text(token)
    stack = start(None, "--tokens", str(tokens))
    for path in ("/v1/lookups", "/clickhouse"):
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(urllib.request.Request(stack.url + path, b"SELECT 1"))
        assert refused.value.code == 401
        refused.value.close()
    request = urllib.request.Request(
        stack.url + "/clickhouse", b"SELECT 1", {"authorization": f"Bearer {token}"}
    )
    with urllib.request.urlopen(request) as answer:
        assert answer.read() == b"1\n"


def test_one_post_sent_three_times_counts_once(start: Start) -> None:
    stack = start()
    body = encode(make_lookup())
    answers = [stack.post("/v1/lookups", body) for _ in range(3)]
    assert answers == [{"accepted": 1, "rejected": []}] * 3
    stack.wait_for("SELECT count() FROM duplicates", "2")
    assert stack.query("SELECT count() FROM lookups") == "1"
    assert stack.query("SELECT sum(n) FROM precise_rate") == "1"
    assert stack.query("SELECT count() FROM dead_letters") == "0"


def test_a_plain_kafka_producer_is_a_first_class_citizen(start: Start) -> None:
    from kafka import KafkaProducer

    stack = start()
    producer = KafkaProducer(bootstrap_servers=stack.bootstrap_servers)
    producer.send("lookup.results.v1", encode(make_lookup()))
    producer.flush(10)
    producer.close()
    stack.wait_for("SELECT count(), any(level_check) FROM lookups", "1\tpass")
