"""A secret planted anywhere: not in Kafka, not in the spool, not in a dead letter, not in a log."""

import contextlib
import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lookup_audit.collector import LookupEmitter
from lookup_audit.collector.emitter.transport import TryAgain
from lookup_audit.collector.redaction import RedactionConfig, redactor
from lookup_audit.schemas.errors import Rejected
from lookup_audit.schemas.names import EventType, Reason
from tests.support.events import encode, make_judgement, make_lookup, make_outcome
from tests.support.twins import make_encoder, make_message
from tests.unit.collector.emitter.receiving import SteeredTransport
from tests.unit.collector.running import Running, running

SECRETS = {
    "email": "jane.doe@mail.example.com",
    "card": "4111 1111 1111 1111",
    "national_id": "11010519491231002X",
    "phone": "13800138000",
    "token": "sk-proj-abcdefghijklmnop1234",
}
MAKERS = {
    EventType.LOOKUP: make_lookup,
    EventType.OUTCOME: make_outcome,
    EventType.JUDGEMENT: make_judgement,
}
PATHS = {
    EventType.LOOKUP: "/v1/lookups",
    EventType.OUTCOME: "/v1/outcomes",
    EventType.JUDGEMENT: "/v1/judgements",
}
CONFIG = RedactionConfig.model_validate(
    {"key": "k" * 32, "fields": {"candidates.*.excerpt": "hash", "further.free": "drop"}}
)
SLOW = settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place of an event that holds a text or nothing."""
    if isinstance(value, dict):
        for key, member in value.items():
            yield from places(member, (*path, key))
    elif isinstance(value, list):
        for index, member in enumerate(value):
            yield from places(member, (*path, index))
    elif value is None or isinstance(value, str):
        yield path


@st.composite
def planted(draw: st.DrawFn) -> tuple[EventType, Any, list[str]]:
    """An event with secrets in some of its texts, names and unknown fields."""
    kind = draw(st.sampled_from(list(EventType)))
    event = MAKERS[kind]()
    event["further"] = {"deep": [{"free": "x"}, 1], "free": "y"}
    event["context_pack"] = {"blocks": ["z"]}
    used = []
    chosen = draw(
        st.lists(st.sampled_from(list(places(event))), min_size=1, max_size=5, unique=True)
    )
    for path in chosen:
        secret = SECRETS[draw(st.sampled_from(list(SECRETS)))]
        text = draw(st.sampled_from(["{}", "see {} now", "请看 {}。", "{}\n"])).format(secret)
        *parents, last = path
        target: Any = event
        for step in parents:
            target = target[step]
        target[last] = text
        used.append(secret)
    if draw(st.booleans()):
        secret = SECRETS[draw(st.sampled_from(list(SECRETS)))]
        event["further"][secret] = {secret: secret}
        used.append(secret)
    return kind, event, used


def survivors(data: bytes, secrets: list[str]) -> list[str]:
    """Secrets in bytes, as such or under JSON's escapes."""
    text = data.decode("utf-8", "replace")
    with contextlib.suppress(ValueError):
        text += json.dumps(json.loads(text), ensure_ascii=False)
    return [secret for secret in secrets if secret in text]


@pytest.fixture(scope="module")
def collector() -> Iterator[Running]:
    with running(redaction=CONFIG) as made:
        yield made


@SLOW
@given(case=planted(), escaped=st.booleans())
def test_no_secret_is_in_a_record_a_dead_letter_or_a_log(
    case: tuple[EventType, Any, list[str]],
    escaped: bool,
    collector: Running,
    caplog: pytest.LogCaptureFixture,
) -> None:
    kind, event, secrets = case
    caplog.set_level(logging.DEBUG)
    collector.records.clear()
    collector.post(json.dumps(event).encode() if escaped else encode(event), PATHS[kind])
    written = b""
    for record in collector.records:
        written += record.value + record.key + record.event_id.encode()
        written += b"".join(name.encode() + value for name, value in record.headers)
        message = make_message(
            record.value, topic=record.topic, headers=record.headers, key=record.key
        )
        batch = make_encoder().encode([message])
        for letter in batch.dead_letters:
            written += repr(letter).encode()
    assert survivors(written, secrets) == []
    logged = "".join(record.getMessage() + str(record.args) for record in caplog.records)
    assert survivors(logged.encode(), secrets) == []


@SLOW
@given(case=planted())
def test_no_secret_is_in_the_spool_or_on_the_wire(
    case: tuple[EventType, Any, list[str]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    kind, event, secrets = case
    sent: list[bytes] = []

    def refuse(_: EventType, values: Any) -> TryAgain:
        sent.extend(values)
        return TryAgain("away")

    directory: Path = tmp_path_factory.mktemp("spool")
    logging.getLogger("lookup_audit.collector.emitter.worker").setLevel(logging.ERROR)
    emitter = LookupEmitter(
        "http://unused.example",
        make_transport=lambda: SteeredTransport(refuse),
        spool_dir=directory,
        linger_seconds=0.01,
        redaction=CONFIG,
    )
    emit = {
        EventType.LOOKUP: emitter.emit,
        EventType.OUTCOME: emitter.emit_outcome,
        EventType.JUDGEMENT: emitter.emit_judgement,
    }
    assert emit[kind](event)
    emitter.flush(0.05)
    emitter.close(0)
    stats = emitter.stats()
    assert stats.pending + sum(stats.dropped.values()) == 1
    kept = b"".join(file.read_bytes() for file in directory.rglob("*") if file.is_file())
    assert survivors(kept, secrets) == []
    for value in sent:
        assert survivors(value, secrets) == []


def test_a_redactor_that_fails_makes_a_dead_letter_without_content(
    collector: Running, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(text: str, patterns: object) -> str:
        raise RuntimeError(text)

    collector.records.clear()
    monkeypatch.setattr(redactor, "scrub", fail)
    events = [make_lookup(tenant="nobody-may-see"), make_lookup(tenant="nobody-may-see")]
    answer = collector.post(encode(events))
    assert (answer.status, answer.json) == (202, {"accepted": 2, "rejected": []})
    first, second = collector.records
    assert first.value == second.value == b"{}"
    assert first.event_id != second.event_id
    assert "nobody-may-see" not in repr(collector.records) + caplog.text
    shown = collector.call("GET", "/metrics").body.decode()
    assert "\nlookup_audit_ingest_withheld_total 2.0\n" in shown
    message = make_message(first.value, topic=first.topic, headers=first.headers, key=first.key)
    (letter,) = make_encoder().encode([message]).dead_letters
    assert isinstance(letter.rejected, Rejected)
    assert letter.rejected.reason is Reason.REDACTION_FAILED
    caplog.clear()


def test_a_redactor_that_fails_in_the_service_sends_nothing_and_counts_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(text: str, patterns: object) -> str:
        raise RuntimeError(text)

    monkeypatch.setattr(redactor, "scrub", fail)
    transport = SteeredTransport()
    emitter = LookupEmitter(
        "http://unused.example",
        make_transport=lambda: transport,
        spool_dir=tmp_path,
        redaction=CONFIG,
    )
    emitter.emit(make_lookup())
    emitter.flush(5)
    emitter.close(5)
    assert emitter.stats().dropped == {"redaction_failed": 1}
    assert transport.received == []
    caplog.clear()


def test_spans_are_redacted_like_events(collector: Running) -> None:
    secret = SECRETS["email"]
    sample = Path(__file__).parents[3] / "samples" / "otlp" / "lc_oi_retriever.otlp.json"
    body = json.loads(sample.read_text())
    for resource in body["resourceSpans"]:
        for scope in resource["scopeSpans"]:
            for span in scope["spans"]:
                for attribute in span["attributes"]:
                    value = attribute["value"]
                    if "stringValue" in value and not value["stringValue"].isupper():
                        value["stringValue"] += f" {secret}"
    collector.records.clear()
    answer = collector.post(json.dumps(body).encode(), "/v1/traces")
    assert answer.status == 200
    assert len(collector.records) >= 1
    written = b"".join(
        record.value + record.key + b"".join(value for _, value in record.headers)
        for record in collector.records
    )
    assert survivors(written, [secret]) == []
    assert b"[email]" in written
