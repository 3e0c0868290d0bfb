"""What callers see on the three native routes: every status, every reason, exact bodies."""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from lookup_audit.collector.memory import MemoryPublisher
from lookup_audit.schemas.names import Header, Topic
from tests.support.events import encode, make_judgement, make_lookup, make_outcome
from tests.unit.collector.running import NDJSON, Answer, running

NOW = datetime.now(UTC)


def reasons(answer: Answer) -> list[tuple[int, str]]:
    return [(item["index"], item["reason"]) for item in answer.json["rejected"]]


@pytest.mark.parametrize(
    ("path", "make", "topic"),
    [
        ("/v1/lookups", make_lookup, Topic.RESULTS),
        ("/v1/outcomes", make_outcome, Topic.OUTCOMES),
        ("/v1/judgements", make_judgement, Topic.OUTCOMES),
    ],
)
def test_one_object_an_array_and_ndjson_are_accepted_and_kept_byte_for_byte(
    path: str, make: Callable[[], dict[str, Any]], topic: Topic
) -> None:
    events = [encode(make()) for _ in range(5)]
    with running() as collector:
        for body, count in (
            (events[0], 1),
            (b"[" + b", ".join(events[1:3]) + b"]", 2),
            (b"\n".join(events[3:]) + b"\n", 2),
        ):
            answer = collector.post(body, path)
            assert (answer.status, answer.json) == (202, {"accepted": count, "rejected": []})
            assert answer.headers["content-type"] == "application/json"
    assert collector.values == events
    assert {record.topic for record in collector.records} == {topic}


def test_a_partly_good_request_is_answered_with_exactly_what_was_refused() -> None:
    bad = make_lookup(event_id="evt-bad", candidates=None)
    with running() as collector:
        answer = collector.post(
            encode([make_lookup(), bad, make_lookup(), 7, make_lookup(event_id=4711, mode="fuzzy")])
        )
    assert answer.status == 202
    assert answer.json == {
        "accepted": 2,
        "rejected": [
            {
                "index": 1,
                "event_id": "evt-bad",
                "reason": "wrong_type",
                "field": "candidates",
                "message": answer.json["rejected"][0]["message"],
            },
            {
                "index": 3,
                "event_id": "",
                "reason": "not_an_object",
                "field": "",
                "message": "an event is a JSON object",
            },
            {
                "index": 4,
                "event_id": "4711",
                "reason": "invalid_value",
                "field": "mode",
                "message": answer.json["rejected"][2]["message"],
            },
        ],
    }
    assert "candidates" in answer.json["rejected"][0]["message"]
    assert len(collector.records) == 2


def test_a_request_with_nothing_acceptable_is_answered_422_with_the_same_body() -> None:
    with running() as collector:
        answer = collector.post(encode(make_lookup(event_id="e-1", mode=None)))
    assert answer.status == 422
    assert answer.json["accepted"] == 0
    assert [item["event_id"] for item in answer.json["rejected"]] == ["e-1"]
    assert collector.records == []


def test_an_empty_array_is_a_batch_of_none() -> None:
    with running() as collector:
        answer = collector.post(b"[]")
    assert (answer.status, answer.json) == (202, {"accepted": 0, "rejected": []})


@pytest.mark.parametrize("body", [b"", b"\r\n  \n", b"\xef\xbb\xbf"])
def test_an_empty_body_is_a_missing_event(body: bytes) -> None:
    with running() as collector:
        answer = collector.post(body)
    assert (answer.status, reasons(answer)) == (422, [(0, "empty_value")])


@pytest.mark.parametrize("separator", [b",", b"\n"], ids=["array", "ndjson"])
def test_a_nan_between_two_good_events_harms_neither(separator: bytes) -> None:
    good = [make_lookup(event_id="evt-g01-before"), make_lookup(event_id="evt-g01-after")]
    bad = make_lookup(event_id="evt-g01")
    bad["candidates"][0]["similarity_score"] = float("nan")
    body = separator.join(map(encode, [good[0], bad, good[1]]))
    with running() as collector:
        answer = collector.post(b"[" + body + b"]" if separator == b"," else body)
    assert answer.status == 202
    assert answer.json["accepted"] == 2
    [refused] = answer.json["rejected"]
    assert (refused["index"], refused["event_id"]) == (1, "evt-g01")
    assert refused["reason"] == "non_finite"
    assert refused["field"] == "candidates[0].similarity_score"
    assert collector.values == [encode(good[0]), encode(good[1])]


def test_half_a_surrogate_pair_is_refused_and_whole_text_arrives_unchanged() -> None:
    half = encode(make_lookup(event_id="evt-g13")).replace(b"what is", b"warranty \\ud83d")
    whole = encode(make_lookup(event_id="evt-g13-ok", query="保证期 🛡️ garantía"))
    with running() as collector:
        answer = collector.post(b"[" + half + b"," + whole + b"]")
    assert answer.status == 202
    [refused] = answer.json["rejected"]
    assert (refused["event_id"], refused["reason"]) == ("evt-g13", "invalid_text")
    assert refused["field"] == "query.text"
    assert collector.values == [whole]


def test_half_a_surrogate_pair_in_a_member_name_is_refused_and_not_a_failure() -> None:
    body = encode(make_lookup()).replace(b'"top_k"', b'"top_k\\ud83d"')
    with running() as collector:
        answer = collector.post(body)
    assert (answer.status, reasons(answer)) == (422, [(0, "invalid_text")])


def test_the_same_event_sent_three_times_is_accepted_three_times() -> None:
    body = encode(make_lookup(event_id="evt-g15"))
    with running() as collector:
        answers = [collector.post(body) for _ in range(3)]
    assert [answer.status for answer in answers] == [202] * 3
    assert collector.values == [body] * 3


def test_an_event_that_is_too_large_is_refused_and_its_neighbours_arrive() -> None:
    large = make_lookup(event_id="evt-g11")
    large["candidates"][0]["excerpt"] = "a" * 1_200_000
    small = [make_lookup(), make_lookup()]
    with running() as collector:
        answer = collector.post(b"\n".join(map(encode, [small[0], large, small[1]])))
        alone = collector.post(encode(large))
        metrics = collector.call("GET", "/metrics").body.decode()
    assert (answer.status, answer.json["accepted"]) == (202, 2)
    [refused] = answer.json["rejected"]
    assert (refused["index"], refused["event_id"]) == (1, "evt-g11")
    assert refused["reason"] == "too_large"
    assert (alone.status, reasons(alone)) == (422, [(0, "too_large")])
    assert collector.values == [encode(event) for event in small]
    assert 'error_type="too_large"' in metrics


def test_an_event_from_the_future_or_from_before_the_retention_is_refused() -> None:
    def at(**ago: float) -> dict[str, Any]:
        moment = NOW - timedelta(**ago)
        return make_lookup(occurred_at=moment.isoformat().replace("+00:00", "Z"))

    events = [at(), at(minutes=-9), at(hours=-27), at(hours=26), at(days=29), at(days=31)]
    events.append(make_lookup(occurred_at="2150-01-01T00:00:00Z"))
    with running(clock=lambda: NOW, retention_days=30) as collector:
        answer = collector.post(encode(events))
    assert answer.json["accepted"] == 4
    assert reasons(answer) == [(2, "future_time"), (5, "expired"), (6, "future_time")]
    assert {item["field"] for item in answer.json["rejected"]} == {"occurred_at"}
    assert "retention of 30 days" in answer.json["rejected"][1]["message"]


@pytest.mark.parametrize("moment", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"])
def test_a_time_at_the_edge_of_the_calendar_is_refused_and_not_a_failure(moment: str) -> None:
    with running() as collector:
        assert collector.post(encode(make_lookup(occurred_at=moment))).status == 422


def test_a_naive_or_numeric_time_is_refused() -> None:
    with running() as collector:
        answer = collector.post(
            encode(
                [
                    make_lookup(occurred_at="2026-11-30T12:00:00"),
                    make_lookup(occurred_at=1796040000),
                ]
            )
        )
    assert answer.status == 422
    assert [item["field"] for item in answer.json["rejected"]] == ["occurred_at", "occurred_at"]


def test_events_sent_to_the_wrong_route_are_refused_by_field() -> None:
    with running() as collector:
        answer = collector.post(encode(make_outcome()))
    assert (answer.status, reasons(answer)) == (422, [(0, "missing_field")])


def test_what_the_broker_refuses_is_told_beside_what_we_refuse() -> None:
    publisher = MemoryPublisher(refused_ids=["evt-2"])
    events = [make_lookup(), make_lookup(event_id="evt-2"), make_lookup(mode=None), make_lookup()]
    with running(publisher) as collector:
        answer = collector.post(encode(events))
        alone = collector.post(encode(events[1]))
    assert (answer.status, answer.json["accepted"]) == (202, 2)
    assert reasons(answer) == [(1, "rejected_by_store"), (2, "invalid_value")]
    assert (alone.status, reasons(alone)) == (422, [(0, "rejected_by_store")])


def test_a_request_of_too_many_events_is_answered_413() -> None:
    with running(max_events=3) as collector:
        assert collector.post(encode([make_lookup()] * 3)).status == 202
        answer = collector.post(encode([make_lookup()] * 4))
    assert answer.status == 413
    assert "send it in parts" in answer.json["error"]
    assert len(collector.records) == 3


@pytest.mark.parametrize("depth", [10, 10_000, 1_000_000])
def test_deep_nesting_is_refused_and_not_a_failure(depth: int) -> None:
    with running() as collector:
        for body in (
            b'{"event_id": ' + b"[" * depth + b"]" * depth + b"}",
            b"[" * depth + b"]" * depth,
            b'{"a":' * depth + b"}" * depth,
        ):
            assert collector.post(body).status in (413, 422)


def test_twenty_megabytes_of_garbage_are_refused() -> None:
    garbage = bytes(range(256)) * 80_000
    with running() as collector:
        assert collector.post(garbage).status in (413, 422)
        assert collector.post(b"[" + garbage).status in (413, 422)
        assert collector.post(b"{" * 20_000_000).status == 422
        assert collector.post(encode(make_lookup())).status == 202
    assert len(collector.records) == 1


def test_a_large_batch_is_accepted_in_its_order() -> None:
    events = [encode(make_lookup()) for _ in range(2000)]
    with running() as collector:
        answer = collector.call("POST", "/v1/lookups", b"\n".join(events), NDJSON)
    assert (answer.status, answer.json["accepted"]) == (202, 2000)
    assert collector.values == events


def test_many_callers_at_once_each_get_the_answer_to_their_own_events() -> None:
    with running() as collector:

        def send(number: int) -> tuple[int, Any]:
            bad = make_lookup(event_id=f"bad-{number}", mode=None)
            answer = collector.post(encode([make_lookup(event_id=f"good-{number}"), bad]))
            return answer.json["accepted"], answer.json["rejected"][0]["event_id"]

        with ThreadPoolExecutor(16) as pool:
            answers = list(pool.map(send, range(200)))
    assert answers == [(1, f"bad-{number}") for number in range(200)]
    assert {r.event_id for r in collector.records} == {f"good-{n}" for n in range(200)}


def test_every_record_carries_exactly_one_traceparent() -> None:
    parent = f"00-{'c' * 32}-{'d' * 16}-01"
    events = [make_lookup(), make_lookup(trace_id=None), make_lookup(trace_id="t-1", span_id="s")]
    with running() as collector:
        collector.post(encode(events), headers={"traceparent": parent})
        collector.post(encode(events[1]))
        collector.post(encode(events[1]), headers={"traceparent": "nonsense"})
    found = [
        [value.decode() for name, value in record.headers if name == Header.TRACE_PARENT]
        for record in collector.records
    ]
    assert [len(values) for values in found] == [1] * 5
    assert found[0] == [f"00-{events[0]['trace_id']}-{events[0]['span_id']}-01"]
    assert found[1] == found[2] == [parent]
    assert found[3] != found[4]


def test_ids_with_a_nul_or_any_unicode_are_accepted() -> None:
    events = [make_lookup(event_id="a\x00b"), make_lookup(event_id="🛡️" * 40)]
    with running() as collector:
        answer = collector.post(json.dumps(events).encode())
    assert (answer.status, answer.json["accepted"]) == (202, 2)
