import contextlib
import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookup_audit.collector.split import Split, TooManyEventsError, split
from tests.support.events import encode, make_lookup
from tests.support.strategies import examples

GOOD_1, GOOD_2 = b'{"a": 1}', b'{"b": [2, "}{]["]}'
NAN = b'{"score": NaN, "t": "}"}'
HALF = b'{"t": "x\\ud83d"}'
NOT_UTF8 = b'{"t": "\xff\xfe"}'


def cut(body: bytes) -> list[bytes]:
    result = split(body, limit=1000)
    assert result.fault == ""
    return result.events


@pytest.mark.parametrize("bad", [NAN, HALF, NOT_UTF8, b'{"a": 01}', b'{"a": [1, 2}', b"{'a': 1}"])
@pytest.mark.parametrize("around", [b"", b" ", b"\r\n  "])
def test_a_bad_element_of_an_array_leaves_its_neighbours_whole(bad: bytes, around: bytes) -> None:
    body = b"[" + around + (around + b"," + around).join([GOOD_1, bad, GOOD_2]) + around + b"]"
    assert cut(body) == [GOOD_1, bad, GOOD_2]


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\n\n  \n"])
@pytest.mark.parametrize("bad", [NAN, HALF, NOT_UTF8, b'{"a": 1', b'{"a": "', b"nonsense", b"}"])
def test_a_bad_line_leaves_its_neighbours_whole(bad: bytes, end: bytes) -> None:
    assert cut(end.join([GOOD_1, bad, GOOD_2])) == [GOOD_1, bad, GOOD_2]
    assert cut(end.join([bad, GOOD_1, GOOD_2]) + end) == [bad, GOOD_1, GOOD_2]


@pytest.mark.parametrize("indent", [None, 0, 1, 4])
@pytest.mark.parametrize("broken", [False, True])
def test_one_object_is_one_event_however_it_is_printed(indent: int | None, broken: bool) -> None:
    event = make_lookup(quality_score=float("nan") if broken else 0.5)
    text = json.dumps(event, indent=indent).encode()
    assert cut(text) == [text]


@pytest.mark.parametrize("broken", [False, True])
def test_a_pretty_printed_array_is_cut_into_its_events(broken: bool) -> None:
    events = [make_lookup(), make_lookup(top_k=float("nan") if broken else 3), make_lookup()]
    text = json.dumps(events, indent=2).encode()
    assert [json.loads(event)["event_id"] for event in cut(text)] == [e["event_id"] for e in events]


@pytest.mark.parametrize("broken", [False, True])
def test_an_array_with_an_element_on_each_line_is_no_ndjson(broken: bool) -> None:
    middle = NAN if broken else GOOD_1
    assert cut(b"[\n" + b",\n".join([GOOD_1, middle, GOOD_2]) + b"\n]") == [GOOD_1, middle, GOOD_2]


def test_pretty_printed_objects_one_after_another_are_events() -> None:
    parts = [json.dumps(make_lookup(), indent=2).encode() for _ in range(3)]
    assert cut(b"\n".join(parts)) == parts
    assert cut(GOOD_1 + GOOD_2 + NAN) == [GOOD_1, GOOD_2, NAN]


def test_a_byte_order_mark_and_space_around_are_no_part_of_an_event() -> None:
    assert cut(b"\xef\xbb\xbf" + GOOD_1) == [GOOD_1]
    assert cut(b"\xef\xbb\xbf\r\n [" + GOOD_1 + b" ] \n") == [GOOD_1]


@pytest.mark.parametrize("body", [b"", b" \r\n\t", b"\xef\xbb\xbf"])
def test_an_empty_body_is_one_empty_event(body: bytes) -> None:
    assert split(body, limit=1) == Split([b""])


def test_an_empty_array_holds_no_event() -> None:
    assert split(b" [ ] ", limit=1) == Split([])


def test_a_cut_array_gives_its_whole_events_and_says_so() -> None:
    result = split(b"[" + GOOD_1 + b", " + GOOD_2, limit=9)
    assert result == Split([GOOD_1, GOOD_2], "the array is not closed: the body was cut")
    assert split(b"[" + GOOD_1 + b', {"b": ', limit=9) == Split([GOOD_1, b'{"b":'])


def test_data_after_an_array_is_told() -> None:
    result = split(b"[" + GOOD_1 + b"] {}", limit=9)
    assert result == Split([GOOD_1], "there is data after the end of the array; it was not read")


def test_an_unclosed_string_takes_the_rest_and_not_what_came_before() -> None:
    tail = b'{"a": "b}, ' + GOOD_2.replace(b'"', b"") + b"]"
    assert split(b"[" + GOOD_1 + b", " + tail, limit=9).events == [GOOD_1, tail]


def test_a_new_line_inside_a_string_is_the_fault_of_one_element() -> None:
    bad = b'{"t": "first\nsecond {"}'
    assert cut(b"[" + b", ".join([GOOD_1, bad, GOOD_2]) + b"]") == [GOOD_1, bad, GOOD_2]


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"[" + b",".join([GOOD_1] * 4) + b"]", id="array"),
        pytest.param(b"[" + b",".join([NAN] * 4) + b"]", id="broken-array"),
        pytest.param(b"\n".join([GOOD_1] * 4), id="ndjson"),
        pytest.param(GOOD_1 * 4, id="one-after-another"),
    ],
)
def test_more_events_than_the_limit_are_refused(body: bytes) -> None:
    assert len(split(body, limit=4).events) == 4
    with pytest.raises(TooManyEventsError, match="more than 3 events"):
        split(body, limit=3)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"[" + b"{}" * 2_000_000, id="objects"),
        pytest.param(b"[" + b"1," * 2_000_000, id="numbers"),
        pytest.param(b"[" + b"{" * 4_000_000, id="open"),
        pytest.param(b"[NaN,{" + b'"a":{},' * 600_000, id="members"),
        pytest.param(b'["' + b'\\"' * 2_000_000, id="escapes"),
        pytest.param(b"1" + b"\n" * 4_000_000 + b"x", id="blank-lines"),
        pytest.param(b"[NaN" + b" " * 4_000_000, id="space"),
        pytest.param(b"[" * 4_000_000, id="nested"),
    ],
)
def test_hostile_bodies_of_4_mb_cost_little_time(body: bytes) -> None:
    started = time.process_time()
    with contextlib.suppress(TooManyEventsError):
        split(body, limit=10_000)
    assert time.process_time() - started < 3


SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
)
DOCUMENTS = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)
# Pieces of JSON in any order: garbage that looks like the real thing.
SHARDS = st.lists(
    st.sampled_from(
        [b"{", b"}", b"[", b"]", b'"', b"\\", b",", b":", b"\n", b" ", b"NaN", b"1", b"a", b"\xff"]
    ),
    max_size=40,
).map(b"".join)


def dump(document: Any, ascii_only: bool, indent: int | None = None) -> bytes:
    return json.dumps(document, ensure_ascii=ascii_only, indent=indent).encode(
        "utf-8", "surrogatepass"
    )


@examples(150)
@given(st.lists(DOCUMENTS, max_size=6), st.booleans(), st.sampled_from([None, 0, 2]))
def test_any_array_of_documents_survives(
    documents: list[Any], ascii_only: bool, indent: int | None
) -> None:
    pieces = cut(dump(documents, ascii_only, indent))
    assert [json.loads(piece) for piece in pieces] == documents


@examples(150)
@given(st.lists(DOCUMENTS, min_size=1, max_size=6), st.booleans(), st.data())
def test_any_array_of_documents_survives_a_nan_among_them(
    documents: list[Any], ascii_only: bool, data: st.DataObject
) -> None:
    pieces = [dump(document, ascii_only) for document in documents]
    pieces.insert(data.draw(st.integers(0, len(pieces))), NAN)
    assert cut(b"[" + b", ".join(pieces) + b"]") == pieces


@examples(150)
@given(st.lists(DOCUMENTS, min_size=2, max_size=6), st.booleans())
def test_any_ndjson_survives(documents: list[Any], ascii_only: bool) -> None:
    lines = [dump(document, ascii_only) for document in documents]
    assert cut(b"\n".join(lines)) == lines


@examples(150)
@given(st.lists(st.dictionaries(st.text(), DOCUMENTS), min_size=1, max_size=5), SHARDS, st.data())
def test_any_ndjson_of_objects_survives_any_line_among_them(
    documents: list[Any], shard: bytes, data: st.DataObject
) -> None:
    bad = shard.replace(b"\n", b"").strip() or b"x"
    lines = [dump(document, True) for document in documents] + [encode(make_lookup())]
    lines.insert(data.draw(st.integers(1, len(lines))), bad)
    assert cut(b"\n".join(lines)) == lines


@examples(500)
@given(SHARDS)
def test_any_garbage_is_cut_without_an_exception_and_without_losing_a_byte(body: bytes) -> None:
    result = split(body, limit=1000)
    kept = b"".join(result.events)
    left_out = b"[], \r\n\t"
    if not result.fault:
        assert kept.translate(None, left_out) == body.translate(None, left_out)
