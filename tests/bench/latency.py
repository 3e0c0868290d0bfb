"""Row "latency": event to visible in a query, through the whole embedded stack.

The stack runs in a child. The parent posts batches of ten over HTTP on a fixed schedule, counts
each event from the instant its batch was due (a late sender is part of the delay), and asks over
HTTP which events a query sees.
"""

import http.client
import json
import subprocess
import sys
import threading
import time
import urllib.parse
import urllib.request
from itertools import islice
from pathlib import Path

from lookup_audit.deploy import wiring
from lookup_audit.deploy.embedded.stack import Stack, StackConfig
from tests.bench.load import events

EVENTS_PER_SECOND = 1_000
BATCH = 10
SECONDS = 30
_SENDERS = 2
_POLL_SECONDS = 0.025
_PATIENCE_SECONDS = 30.0

_NEW = """
SELECT service_sequence, toString(ingested_at) FROM audit.lookups
WHERE ingested_at > {since:DateTime64(6)} ORDER BY ingested_at FORMAT JSONCompactEachRow
"""


def measure(directory: Path, seconds: int = SECONDS) -> list[float]:
    """Delays in seconds, sorted, one an event.

    Raises:
        RuntimeError: Not every event came out.
    """
    command = [sys.executable, "-m", __name__, str(directory)]
    stack = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert stack.stdin is not None, "it is a pipe"
    assert stack.stdout is not None, "it is a pipe"
    try:
        url = stack.stdout.readline().strip()
        # A first event wakes what is made at first use; its sequence is not counted.
        _post(http.client.HTTPConnection(urllib.parse.urlsplit(url).netloc), list(events(1)))
        time.sleep(2.0)
        return _delays(url, seconds)
    finally:
        stack.stdin.close()
        stack.wait()


def _delays(url: str, seconds: int) -> list[float]:
    count = seconds * EVENTS_PER_SECOND
    values = events(count, first=1)
    batches = [list(islice(values, BATCH)) for _ in range(count // BATCH)]
    due = [n * BATCH / EVENTS_PER_SECOND for n in range(len(batches))]
    begin = time.perf_counter() + 0.5

    def send(share: int) -> None:
        connection = http.client.HTTPConnection(urllib.parse.urlsplit(url).netloc)
        for number in range(share, len(batches), _SENDERS):
            time.sleep(max(0.0, begin + due[number] - time.perf_counter()))
            _post(connection, batches[number])

    senders = [threading.Thread(target=send, args=(n,), daemon=True) for n in range(_SENDERS)]
    for sender in senders:
        sender.start()
    delays: dict[int, float] = {}
    since = "1970-01-01 00:00:00"
    while len(delays) < count:
        seen = _query(url, since)
        now = time.perf_counter()
        for sequence, ingested_at in seen:
            since = ingested_at
            if int(sequence):
                delays[int(sequence)] = now - begin - due[(int(sequence) - 1) // BATCH]
        if time.perf_counter() > begin + seconds + _PATIENCE_SECONDS:
            raise RuntimeError(f"{len(delays)} of {count} events came out")
        time.sleep(_POLL_SECONDS)
    return sorted(delays.values())


def _post(connection: http.client.HTTPConnection, batch: list[bytes]) -> None:
    headers = {"Content-Type": "application/x-ndjson"}
    connection.request("POST", "/v1/lookups", b"\n".join(batch), headers)
    answer = connection.getresponse()
    body = answer.read()
    if answer.status not in (200, 202):
        raise RuntimeError(f"the collector answers {answer.status}: {body[:500]!r}")


def _query(url: str, since: str) -> list[tuple[str, str]]:
    options = urllib.parse.urlencode({"param_since": since})
    with urllib.request.urlopen(f"{url}/clickhouse?{options}", _NEW.encode()) as answer:
        return [tuple(json.loads(line)) for line in answer.read().splitlines()]


def main() -> None:
    """Run a stack until the parent closes our input."""
    with Stack(StackConfig(Path(sys.argv[1]), port=0)) as stack:
        wiring.tune_garbage_collection()
        print(stack.url, flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()
