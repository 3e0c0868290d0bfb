from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

from lookup_audit.deploy.demo.delivery import Delivery, JsonPoster
from lookup_audit.deploy.demo.identifiers import Identifiers
from lookup_audit.deploy.demo.knowledge_service import (
    EVENT_ID_HEADER,
    KnowledgeService,
    served,
    trace_id_of,
)
from lookup_audit.deploy.demo.lookup import BASELINE, CANDIDATE, KnowledgeBase
from tests.unit.demo.conftest import noon
from tests.unit.demo.stub_collector import StubCollector, stub_collector

TRACE = "a1b2c3d4e5f60718293a4b5c6d7e8f90"


def make_request(**over: Any) -> dict[str, Any]:
    return {
        "query": "What is the default port of the collector?",
        "mode": "dense",
        "model_version": CANDIDATE.model_version,
        "run_id": "run-1",
        "tool_call_id": "call-1",
        **over,
    }


@pytest.fixture(scope="module")
def running(
    candidate: KnowledgeBase, baseline: KnowledgeBase
) -> Iterator[tuple[JsonPoster, StubCollector, Delivery]]:
    with stub_collector() as stub:
        to_collector = JsonPoster(stub.url)
        delivery = Delivery(to_collector, "/v1/lookups")
        ids = Identifiers(noon, random.Random(5))
        service = KnowledgeService(
            [candidate, baseline], delivery, tenant="demo", ids=ids, clock=noon
        )
        with served(service.app()) as url:
            poster = JsonPoster(url)
            yield poster, stub, delivery
            poster.close()
        delivery.close(5)
        to_collector.close()


def test_the_caller_gets_what_the_event_says_it_got(
    running: tuple[JsonPoster, StubCollector, Delivery],
) -> None:
    poster, stub, delivery = running
    traceparent = f"00-{TRACE}-0f1e2d3c4b5a6978-01"
    answer = poster("/lookup_knowledge", make_request(), {"traceparent": traceparent})
    event_id = poster.last_headers[EVENT_ID_HEADER]
    delivery.flush(5)
    (event,) = [e for e in stub.take("/v1/lookups") if e["event_id"] == event_id]
    assert answer.status == 200
    assert answer.body == event["projection"]
    assert event["trace_id"] == TRACE


def test_sequences_count_without_holes_for_each_instance(
    running: tuple[JsonPoster, StubCollector, Delivery],
) -> None:
    poster, stub, delivery = running
    for bundle in (CANDIDATE, BASELINE, CANDIDATE, BASELINE):
        poster("/lookup_knowledge", make_request(model_version=bundle.model_version))
    delivery.flush(5)
    counted: dict[str, list[int]] = {}
    for event in stub.take("/v1/lookups"):
        service = event["service"]
        counted.setdefault(service["instance_id"], []).append(service["sequence"])
    assert len(counted) == 2
    for sequence in counted.values():
        assert sequence == list(range(1, len(sequence) + 1))


@pytest.mark.parametrize(
    ("over", "message"),
    [
        pytest.param({"query": " "}, "query must be", id="query"),
        pytest.param({"mode": "lexical"}, "mode must be one of dense, hybrid", id="mode"),
        pytest.param({"model_version": "other"}, "model_version must be one of", id="model"),
        pytest.param({"top_k": 0}, "top_k must be a whole number", id="top_k"),
        pytest.param({"top_k": True}, "top_k must be a whole number", id="top_k boolean"),
        pytest.param({"category": 3}, "category must be a string", id="category"),
        pytest.param({"run_id": None}, "run_id must be", id="run_id"),
    ],
)
def test_a_bad_request_is_answered_with_what_to_send(
    over: dict[str, Any], message: str, running: tuple[JsonPoster, StubCollector, Delivery]
) -> None:
    answer = running[0]("/lookup_knowledge", make_request(**over))
    assert answer.status == 400
    assert message in answer.body["error"]


def test_a_body_that_is_no_object_is_refused(
    running: tuple[JsonPoster, StubCollector, Delivery],
) -> None:
    answer = running[0]("/lookup_knowledge", ["no object"])
    assert (answer.status, answer.body) == (400, {"error": "the body must be a JSON object"})


@pytest.mark.parametrize("header", [None, "", "00-abc-def-01"])
def test_an_unusable_traceparent_is_ignored(header: str | None) -> None:
    assert trace_id_of(header) is None
