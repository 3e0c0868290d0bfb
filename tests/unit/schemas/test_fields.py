from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import PydanticCustomError

from lookup_audit.schemas.fields import (
    Count,
    Id,
    Opaque,
    Record,
    Similarity,
    format_instant,
    known_spellings,
    parse_instant,
)
from lookup_audit.schemas.lookup import Candidate, LookupResult
from lookup_audit.schemas.names import Degradation
from tests.support.strategies import examples


class Box(BaseModel):
    model_config = ConfigDict(strict=True)

    id: Id = "x"
    count: Count = 0
    similarity: Similarity = 0.0
    opaque: Opaque = None


class Part(Record):
    chunk_id: str | None = None
    tokens: Count | None = None


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        pytest.param("2026-11-30T12:00:00Z", datetime(2026, 11, 30, 12, tzinfo=UTC), id="utc"),
        pytest.param(
            "2026-11-30T14:30:00+02:30", datetime(2026, 11, 30, 12, tzinfo=UTC), id="offset"
        ),
        pytest.param(
            "2026-11-30T12:00:59.999999999Z",
            datetime(2026, 11, 30, 12, 0, 59, 999999, UTC),
            id="nanoseconds-are-cut",
        ),
        pytest.param(
            "2026-11-30T12:00:00.1Z", datetime(2026, 11, 30, 12, 0, 0, 100000, UTC), id="tenth"
        ),
        pytest.param("0001-01-01T00:00:00Z", datetime(1, 1, 1, tzinfo=UTC), id="first-moment"),
    ],
)
def test_an_rfc_3339_time_is_read_as_utc(text: str, instant: datetime) -> None:
    assert parse_instant(text) == instant


@pytest.mark.parametrize(
    "value",
    [
        pytest.param("2026-11-30T12:00:00", id="naive"),
        pytest.param("2026-11-30", id="date"),
        pytest.param("2026-11-30 12:00:00Z", id="blank-for-t"),
        pytest.param("2026-11-30T12:00Z", id="no-seconds"),
        pytest.param("20261130T120000Z", id="basic-format"),
        pytest.param("2026-11-30T12:00:00,5Z", id="comma"),
        pytest.param("2026-11-30T12:00:00.Z", id="empty-fraction"),
        pytest.param("2026-11-30T12:00:00Z\n", id="line-end"),
        pytest.param(" 2026-11-30T12:00:00Z", id="leading-blank"),
        pytest.param("2026-11-30T12:00:00+0200", id="offset-without-colon"),
        pytest.param("2026-11-30T12:00:00+01:60", id="offset-of-60-minutes"),
        pytest.param("2026-11-30T12:00:00+24:00", id="offset-of-a-day"),
        pytest.param("２026-11-30T12:00:00Z", id="full-width-digit"),
        pytest.param("2026-13-01T00:00:00Z", id="month-13"),
        pytest.param("2026-02-29T00:00:00Z", id="no-leap-year"),
        pytest.param("2026-11-30T24:00:00Z", id="hour-24"),
        pytest.param("2026-06-30T23:59:60Z", id="leap-second"),
        pytest.param("0001-01-01T00:00:00+05:00", id="before-the-calendar"),
        pytest.param("9999-12-31T23:59:59-05:00", id="after-the-calendar"),
        pytest.param(1796040000, id="seconds"),
        pytest.param(1796040000.5, id="float-seconds"),
        pytest.param(1796040000123456789, id="nanoseconds"),
        pytest.param("1796040000", id="seconds-as-text"),
        pytest.param(True, id="boolean"),
        pytest.param(datetime(2026, 11, 30), id="naive-datetime"),
    ],
)
def test_any_other_time_is_refused(value: object) -> None:
    with pytest.raises(PydanticCustomError) as error:
        parse_instant(value)

    assert error.value.type == "time_format"


@given(
    st.datetimes(),
    st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes))),
)
@examples(100)
def test_a_written_time_reads_as_the_same_instant(moment: datetime, zone: timezone) -> None:
    aware = moment.replace(tzinfo=zone if 1 < moment.year < 9999 else UTC)

    assert parse_instant(format_instant(aware)) == aware


def test_a_written_time_has_four_digits_for_the_year() -> None:
    assert format_instant(datetime(33, 4, 3, tzinfo=UTC)) == "0033-04-03T00:00:00.000000Z"


@pytest.mark.parametrize("value", [1234567890123456789, "1234567890123456789"])
def test_an_id_is_its_exact_text(value: object) -> None:
    assert Box.model_validate({"id": value}).id == "1234567890123456789"


@pytest.mark.parametrize("value", ["", "x" * 129, 1.0, True, None, 10**128])
def test_what_is_no_id_is_refused(value: object) -> None:
    with pytest.raises(ValidationError):
        Box.model_validate({"id": value})


def test_an_id_may_have_128_characters_of_any_kind() -> None:
    assert len(Box.model_validate({"id": "\0🛡" * 64}).id) == 128


@pytest.mark.parametrize("value", [-1, 2**53 + 1, 1.5, "1", True, float("nan"), float("inf")])
def test_what_is_no_count_is_refused(value: object) -> None:
    with pytest.raises(ValidationError):
        Box.model_validate({"count": value})


def test_a_whole_float_is_a_count() -> None:
    count = Box.model_validate({"count": 4.0}).count

    assert (count, type(count)) == (4, int)


@pytest.mark.parametrize(
    ("value", "clamped"),
    [
        pytest.param(1.0000001192092896, 1.0, id="float32-overshoot"),
        pytest.param(-1.0000001192092896, -1.0, id="float32-undershoot"),
    ],
)
def test_a_similarity_a_hair_beyond_one_is_taken_as_one(value: float, clamped: float) -> None:
    assert Box.model_validate({"similarity": value}).similarity == clamped


def test_a_taken_overshoot_is_noted() -> None:
    notes: set[Degradation] = set()
    Box.model_validate({"similarity": 1.0000001192092896}, context=notes)

    assert notes == {Degradation.SIMILARITY_CLAMPED}


@pytest.mark.parametrize("value", [1.02, -1.02, 1.0000011, float("nan"), "1"])
def test_a_similarity_beyond_one_is_refused(value: object) -> None:
    with pytest.raises(ValidationError):
        Box.model_validate({"similarity": value})


def test_an_opaque_value_may_be_any_finite_json() -> None:
    value = {"a": [None, 1.5, {"b": "\0"}]}

    assert Box.model_validate({"opaque": value}).opaque == value


@pytest.mark.parametrize("value", [float("nan"), [float("inf")], {"a": [{"b": float("nan")}]}])
def test_an_opaque_value_may_not_hide_what_is_not_finite(value: object) -> None:
    with pytest.raises(ValidationError, match="NaN"):
        Box.model_validate({"opaque": value})


@pytest.mark.parametrize("text", ['{"chunk_id":"a"}', '{"chunkId":"a"}'])
def test_both_spellings_name_one_field(text: str) -> None:
    assert Part.model_validate_json(text).chunk_id == "a"


def test_a_null_spelling_gives_way_to_the_other() -> None:
    assert Part.model_validate_json('{"chunk_id":null,"chunkId":"a"}').chunk_id == "a"


@pytest.mark.parametrize(
    "text",
    [
        pytest.param('{"tokens":1,"chunk_id":"a","chunkId":"b"}', id="differ"),
        pytest.param('{"chunk_id":null,"chunkId":1}', id="other-is-no-value-of-the-field"),
        pytest.param('{"tokens":1,"Tokens":2,"chunkId":"b","chunk_id":"a"}', id="camel-first"),
    ],
)
def test_contradicting_spellings_are_refused(text: str) -> None:
    with pytest.raises(ValidationError, match="one field and differ"):
        Part.model_validate_json(text)


def test_an_unknown_field_is_kept() -> None:
    assert Part.model_validate_json('{"news":[1]}').model_extra == {"news": [1]}


def test_a_part_of_an_event_never_changes() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        setattr(Part(chunk_id="a"), "chunk_id", "b")  # noqa: B010  # mypy forbids it plainly


@pytest.mark.parametrize(
    ("spelling", "field"),
    [
        pytest.param("candidates", "candidates", id="canonical"),
        pytest.param("evidenceBlocks", "candidates", id="evidence-blocks"),
        pytest.param("retrievalTrace", "retrieval_trace", id="retrieval-trace"),
        pytest.param("completenessHint", "completeness_hint", id="completeness-hint"),
        pytest.param("contextPack", "context_pack", id="context-pack"),
        pytest.param("topSimilarity", "top_similarity", id="top-similarity"),
        pytest.param("relevanceLevel", "relevance_level", id="relevance-level"),
    ],
)
def test_the_producers_spellings_are_known(spelling: str, field: str) -> None:
    assert known_spellings(LookupResult)[spelling] == field


@pytest.mark.parametrize(
    ("spelling", "field"),
    [
        ("qualityScore", "quality_score"),
        ("originalRank", "original_rank"),
        ("denseDistance", "dense_distance"),
        ("scoreLabel", "score_label"),
        ("hitReasons", "hit_reasons"),
    ],
)
def test_the_producers_spellings_of_a_candidate_are_known(spelling: str, field: str) -> None:
    assert known_spellings(Candidate)[spelling] == field
