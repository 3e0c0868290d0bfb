from __future__ import annotations

import logging

import pytest

from lookup_audit.deploy.demo.delivery import Delivery, JsonPoster, UndeliveredError
from tests.unit.demo.stub_collector import StubCollector, stub_collector


def deliver(stub: StubCollector, count: int) -> Delivery:
    poster = JsonPoster(stub.url)
    delivery = Delivery(poster, "/v1/lookups", batch_size=4, retry_seconds=0.01)
    for number in range(count):
        delivery.send({"event_id": f"e-{number}"})
    delivery.close(5)
    poster.close()
    return delivery


def test_every_event_arrives_once_and_in_order() -> None:
    with stub_collector() as stub:
        delivery = deliver(stub, 30)
        assert [e["event_id"] for e in stub.take("/v1/lookups")] == [f"e-{n}" for n in range(30)]
    assert (delivery.state.accepted, delivery.state.refused) == (30, [])


def test_back_pressure_is_waited_out_without_loss() -> None:
    with stub_collector() as stub:
        stub.answers = [(503, {}, {"retry-after": "0"}), (429, {}, {})]
        delivery = deliver(stub, 3)
        assert len(stub.take("/v1/lookups")) == 3
    assert delivery.state.accepted == 3


def test_a_refused_event_is_named_and_its_neighbours_count(
    caplog: pytest.LogCaptureFixture,
) -> None:
    refusal = {"index": 0, "event_id": "e-0", "reason": "missing", "field": "mode", "message": "m"}
    with stub_collector() as stub, caplog.at_level(logging.CRITICAL):
        stub.answers = [(422, {"accepted": 0, "rejected": [refusal]}, {})]
        poster = JsonPoster(stub.url)
        delivery = Delivery(poster, "/v1/lookups", batch_size=1)
        delivery.send({"event_id": "e-0"})
        delivery.send({"event_id": "e-1"})
        delivery.close(5)
        poster.close()
    assert [(r.event["event_id"], r.reason) for r in delivery.state.refused] == [("e-0", "missing")]
    assert delivery.state.accepted == 1


def test_an_unexpected_status_refuses_the_batch_by_name(caplog: pytest.LogCaptureFixture) -> None:
    with stub_collector() as stub, caplog.at_level(logging.CRITICAL):
        stub.answers = [(401, {}, {})]
        delivery = deliver(stub, 1)
    assert [refusal.reason for refusal in delivery.state.refused] == ["http_401"]


def test_flush_tells_how_many_events_wait_for_an_absent_collector(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with stub_collector() as stub:
        url = stub.url
    poster = JsonPoster(url, timeout_seconds=0.5)
    delivery = Delivery(poster, "/v1/lookups", retry_seconds=0.01)
    with caplog.at_level(logging.CRITICAL):
        delivery.send({"event_id": "e-0"})
        with pytest.raises(UndeliveredError, match="1 events .* is the collector up"):
            delivery.close(0.1)
    poster.close()


def test_a_token_goes_into_the_authorization_header() -> None:
    poster = JsonPoster("http://127.0.0.1:1", token="secret")
    assert poster.headers["authorization"] == "Bearer secret"
