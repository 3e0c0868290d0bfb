"""Row "otlp": spans of an instrumented application to queryable, through the whole embedded stack.

Retriever spans of 5 kB with eight documents, OpenInference in protobuf with gzip, as the SDK's
exporter sends them: batches of 512, the next one when the last one is answered. The clock runs from
the first byte sent to the moment a query sees the last lookup. Run alone with
``python -m tests.bench.otlp``.
"""

import gzip
import http.client
import os
import random
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request
from pathlib import Path
from typing import NamedTuple

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

SPANS = 10_240
BATCH = 512
DOCUMENTS = 8
_CONTENT_CHARACTERS = 400
_PATIENCE_SECONDS = 120.0


class Result(NamedTuple):
    """What one run gave.

    Args:
        acknowledged: Spans a second until the last answer.
        visible: Spans a second until a query sees the last lookup.
        cpu_us: Microseconds of CPU a span in the stack's process (not the broker's); 0 if unknown.
        size: Bytes of one span.
    """

    acknowledged: float
    visible: float
    cpu_us: float
    size: int


def measure(directory: Path, spans: int = SPANS) -> Result:
    """Send spans to a stack of its own and wait until all are visible.

    Raises:
        RuntimeError: The collector refused a batch, or not every lookup came out.
    """
    command = [sys.executable, "-m", "tests.bench.latency", str(directory)]
    stack = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert stack.stdin is not None, "it is a pipe"
    assert stack.stdout is not None, "it is a pipe"
    try:
        url = stack.stdout.readline().strip()
        chance = random.Random(7)
        warm, plain = _batch(chance, 1), _batch(chance, BATCH)
        batches = [gzip.compress(_batch(chance, BATCH), 1) for _ in range(spans // BATCH)]
        connection = http.client.HTTPConnection(urllib.parse.urlsplit(url).netloc)
        _post(connection, gzip.compress(warm, 1))
        _wait_for(url, 1)
        begin, cpu = time.perf_counter(), _cpu_seconds(stack.pid)
        for body in batches:
            _post(connection, body)
        sent = time.perf_counter() - begin
        _wait_for(url, 1 + len(batches) * BATCH)
        visible = time.perf_counter() - begin
        count = len(batches) * BATCH
        used = _cpu_seconds(stack.pid) - cpu
        return Result(count / sent, count / visible, used / count * 1e6, len(plain) // BATCH)
    finally:
        stack.stdin.close()
        stack.wait()


def _cpu_seconds(pid: int) -> float:
    """CPU time of a process so far, where the system tells it in ``/proc``."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / float(os.sysconf("SC_CLK_TCK"))


def _batch(chance: random.Random, count: int) -> bytes:
    message = ExportTraceServiceRequest()
    group = message.resource_spans.add()
    group.resource.attributes.add(key="service.name").value.string_value = "bench"
    scope = group.scope_spans.add()
    scope.scope.name = "openinference.instrumentation.bench"
    for _ in range(count):
        now = time.time_ns()
        span = scope.spans.add(
            trace_id=chance.randbytes(16), span_id=chance.randbytes(8), name="VectorStoreRetriever"
        )
        span.start_time_unix_nano, span.end_time_unix_nano = now - 20_000_000, now
        texts = {"openinference.span.kind": "RETRIEVER", "input.value": _text(chance, 60)}
        for index in range(DOCUMENTS):
            start = f"retrieval.documents.{index}.document."
            texts[start + "id"] = f"doc-{chance.randrange(10**6)}#c{index}"
            texts[start + "content"] = _text(chance, _CONTENT_CHARACTERS)
            texts[start + "metadata"] = (
                f'{{"document_id": "doc-{index}", "source_url": "https://kb.example/{index}"}}'
            )
        for key, text in texts.items():
            span.attributes.add(key=key).value.string_value = text
        for index in range(DOCUMENTS):
            score = span.attributes.add(key=f"retrieval.documents.{index}.document.score")
            score.value.double_value = chance.random()
    return bytes(message.SerializeToString())


def _text(chance: random.Random, characters: int) -> str:
    return "".join(chance.choices("etaoin shrdlu", k=characters))


def _post(connection: http.client.HTTPConnection, body: bytes) -> None:
    headers = {"Content-Type": "application/x-protobuf", "Content-Encoding": "gzip"}
    connection.request("POST", "/v1/traces", body, headers)
    answer = connection.getresponse()
    text = answer.read()
    if answer.status != 200 or text:
        raise RuntimeError(f"the collector answers {answer.status}: {text[:500]!r}")


def _wait_for(url: str, count: int) -> None:
    give_up = time.perf_counter() + _PATIENCE_SECONDS
    while True:
        sql = b"SELECT count() FROM audit.lookups WHERE service = 'bench'"
        with urllib.request.urlopen(f"{url}/clickhouse", sql) as answer:
            found = int(answer.read())
        if found >= count:
            return
        if time.perf_counter() > give_up:
            raise RuntimeError(f"{found} of {count} lookups came out")
        time.sleep(0.05)


def describe(found: Result) -> str:
    """The figures in a line."""
    return (
        f"{found.visible:,.0f} spans/s of {found.size:,} bytes, {DOCUMENTS} documents "
        f"({found.acknowledged:,.0f}/s acknowledged, {found.cpu_us:,.0f} us CPU)"
    )


def main() -> None:
    """Measure and print; the peer, Arize Phoenix, is not installed here."""
    with tempfile.TemporaryDirectory(prefix="lookup-audit-bench-") as directory:
        print("OTLP to queryable: " + describe(measure(Path(directory))))
    print("Arize Phoenix: not installed, not measured")


if __name__ == "__main__":
    main()
