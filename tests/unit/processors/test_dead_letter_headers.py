import pytest

from lookup_audit.processors.batch import DeadLetter
from lookup_audit.processors.kafka_dead_letters import dead_letter_headers
from lookup_audit.schemas.errors import Rejected
from lookup_audit.schemas.names import Header, Reason
from tests.support.twins import make_message

REJECTED = Rejected(Reason.NON_FINITE, "candidates[0].dense_distance", "send a number", "evt-1")


def headers(*given: tuple[str, bytes]) -> list[tuple[str, bytes]]:
    message = make_message(b"x", 41, partition=3, timestamp_ms=1796040000000, headers=given)
    return dead_letter_headers(DeadLetter(message, REJECTED))


def test_the_original_headers_stay_in_order_and_the_origin_follows() -> None:
    original = [("ce_type", b"t"), ("own", b"1"), ("own", b"2"), ("traceparent", b"00-a-b-01")]
    found = headers(*original)
    assert found[:4] == original
    assert dict(found[4:]) == {
        Header.DLQ_REASON: b"non_finite",
        Header.DLQ_FIELD: b"candidates[0].dense_distance",
        Header.DLQ_MESSAGE: b"send a number",
        Header.DLQ_TOPIC: b"lookup.results.v1",
        Header.DLQ_PARTITION: b"3",
        Header.DLQ_OFFSET: b"41",
        Header.DLQ_TIMESTAMP: b"1796040000000",
        Header.DLQ_ATTEMPT: b"1",
    }


def test_a_second_dead_letter_replaces_the_first_ones_headers_and_counts_on() -> None:
    again = headers(*headers(("own", b"1")))
    names = [name for name, _ in again]
    assert len(names) == len(set(names)) == 9
    assert dict(again)[Header.DLQ_ATTEMPT] == b"2"


@pytest.mark.parametrize("attempt", [b"x", b"", b"-1", b"\xff", "²".encode()])
def test_an_attempt_that_is_no_number_begins_anew(attempt: bytes) -> None:
    assert dict(headers((Header.DLQ_ATTEMPT, attempt)))[Header.DLQ_ATTEMPT] == b"1"
