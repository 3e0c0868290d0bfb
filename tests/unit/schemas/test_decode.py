import json
import os
import time
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from pydantic import BaseModel
from pydantic.alias_generators import to_camel

from lookup_audit.schemas import lookup, outcome, records
from lookup_audit.schemas.decode import (
    CODECS,
    LOOKUPS,
    OUTCOMES,
    Decoded,
    EventCodec,
    format_path,
    guess_outcome_type,
    is_real_time,
)
from lookup_audit.schemas.errors import Rejected
from lookup_audit.schemas.fields import parse_instant
from lookup_audit.schemas.lookup import LookupResult
from lookup_audit.schemas.names import Degradation, EventType, Reason
from tests.support.audits import accepted, rejected
from tests.support.events import (
    Event,
    encode,
    make_candidate,
    make_judgement,
    make_lookup,
    make_outcome,
)
from tests.support.strategies import INSTANTS, examples, lookups

EVENT_MODELS: list[type[BaseModel]] = [
    model
    for module in (lookup, outcome)
    for model in vars(module).values()
    if isinstance(model, type)
    and issubclass(model, BaseModel)
    and model.__module__ == module.__name__
]
FACTORIES: dict[EventType, Callable[[], Event]] = {
    EventType.LOOKUP: make_lookup,
    EventType.OUTCOME: make_outcome,
    EventType.JUDGEMENT: make_judgement,
}
BARE: Event = {
    "event_id": "e",
    "occurred_at": "2026-11-30T12:00:00Z",
    "mode": "dense",
    "model_version": "m",
    "candidates": [],
}


def camel(value: Any) -> Any:
    if isinstance(value, dict):
        return {to_camel(key): camel(member) for key, member in value.items()}
    return [camel(member) for member in value] if isinstance(value, list) else value


def plain(value: Any) -> Any:
    """A record or model as JSON values without nulls, times as instants."""
    if isinstance(value, BaseModel):
        value = json.loads(value.model_dump_json(include=set(type(value).model_fields)))
    return _tidy(value)


def _tidy(value: Any, name: str = "") -> Any:
    if isinstance(value, msgspec.Struct):
        value = msgspec.structs.asdict(value)
    if isinstance(value, dict):
        return {key: _tidy(member, key) for key, member in value.items() if member is not None}
    if isinstance(value, list):
        return [_tidy(member) for member in value]
    if name in ("occurred_at", "document_updated_at"):
        return parse_instant(value)
    return value


def fast(codec: EventCodec[Any], raw: bytes) -> records.Struct | None:
    """The record of the compiled decoders alone, where they take the event."""
    for decoder in codec._fast:
        try:
            record: records.Struct = decoder.decode(raw)
        except (msgspec.MsgspecError, RecursionError):
            continue
        return record if codec._is_sound(record) else None
    return None


# --- the twins -----------------------------------------------------------------------------


@pytest.mark.parametrize("model", EVENT_MODELS, ids=lambda model: model.__name__)
def test_a_struct_has_the_fields_of_its_model_in_order(model: type[BaseModel]) -> None:
    struct = getattr(records, model.__name__)

    assert list(struct.__struct_fields__) == list(model.model_fields), (
        "change schemas/lookup_audit/schemas/records.py together with the model"
    )


@pytest.mark.parametrize("model", EVENT_MODELS, ids=lambda model: model.__name__)
def test_a_struct_requires_what_its_model_requires(model: type[BaseModel]) -> None:
    struct = getattr(records, model.__name__)

    required = [field.name for field in msgspec.structs.fields(struct) if field.required]

    assert required == [name for name, field in model.model_fields.items() if field.is_required()]


@pytest.mark.parametrize("model", EVENT_MODELS, ids=lambda model: model.__name__)
def test_a_struct_bounds_its_fields_as_its_model_does(model: type[BaseModel]) -> None:
    _, theirs = msgspec.json.schema_components(
        [getattr(records, model.__name__)], ref_template="#/$defs/{name}"
    )
    mine = model.model_json_schema(mode="serialization")

    assert {
        name: _rules(schema) for name, schema in theirs[model.__name__]["properties"].items()
    } == {name: _rules(schema) for name, schema in mine["properties"].items()}


def _rules(schema: Any) -> Any:
    """What a schema demands, without words, order and the two ways to write a time."""
    if isinstance(schema, list):
        return sorted((_rules(member) for member in schema), key=repr)
    if not isinstance(schema, dict):
        return schema
    if schema.get("format") == "date-time":
        return "time"
    if "$ref" in schema:
        return schema["$ref"]
    kept = {
        key: _rules(member)
        for key, member in schema.items()
        if key not in ("default", "description", "format", "title", "pattern")
    }
    if "enum" in kept:
        return {"enum": kept["enum"]}
    return {k: float(v) if isinstance(v, int) else v for k, v in sorted(kept.items())}


@pytest.mark.parametrize("kind", EventType)
def test_every_way_in_fills_the_same_kind_of_record(kind: EventType) -> None:
    codec, example = CODECS[kind], FACTORIES[kind]()
    struct = getattr(records, codec.model.__name__)

    for event in (example, camel(example), example | {"news": 1}):
        result = codec.decode(encode(event))
        assert isinstance(result, Decoded)
        assert isinstance(result.record, struct)


@given(lookups())
@examples(150)
def test_what_the_fast_path_accepts_the_model_accepts_with_equal_values(event: Event) -> None:
    raw = encode(event)
    record = fast(LOOKUPS, raw)
    assume(record is not None)

    assert plain(record) == plain(LookupResult.model_validate_json(raw))


@given(lookups())
@examples(60)
def test_the_models_way_gives_the_record_of_the_fast_path(event: Event) -> None:
    raw = encode(event)

    by_model = LOOKUPS._decode_by_model(raw)

    assert isinstance(by_model, Decoded)
    assert plain(by_model.record) == plain(accepted(raw).record)


@given(lookups())
@examples(60)
def test_camel_case_gives_the_record_of_snake_case(event: Event) -> None:
    event.pop("context_pack", None)  # opaque: its keys are the producer's

    assert plain(accepted(camel(event)).record) == plain(accepted(event).record)


@given(lookups(), st.data())
@examples(60)
def test_mixed_spelling_gives_the_record_of_snake_case(event: Event, data: st.DataObject) -> None:
    mixed = {to_camel(k) if data.draw(st.booleans()) else k: v for k, v in event.items()}

    assert plain(accepted(mixed).record) == plain(accepted(event).record)


@given(INSTANTS)
@examples(200)
def test_both_paths_agree_on_every_time(text: str) -> None:
    raw = encode(BARE | {"occurred_at": text})

    assert type(LOOKUPS.decode(raw)) is type(LOOKUPS._decode_by_model(raw))


# --- what is accepted ----------------------------------------------------------------------


@pytest.mark.parametrize("kind", EventType)
def test_a_clean_event_has_no_unknown_fields(kind: EventType) -> None:
    result = CODECS[kind].decode(encode(FACTORIES[kind]()))

    assert isinstance(result, Decoded)
    assert result.unknown_fields == ()


def test_the_original_bytes_stay_readable() -> None:
    raw = b"  " + encode(make_lookup(zzz=1)) + b"\n"

    assert accepted(raw).raw == raw


@pytest.mark.parametrize("name", ["evidenceBlocks", "evidence_blocks"])
def test_evidence_blocks_are_the_candidates(name: str) -> None:
    event = make_lookup()
    event[name] = event.pop("candidates")

    record = accepted(event).record

    assert [c.chunk_id for c in record.candidates] == ["doc-1#chunk-0", "doc-2#chunk-0"]


def test_evidence_blocks_are_not_unknown() -> None:
    event = make_lookup()
    event["evidenceBlocks"] = event.pop("candidates")

    assert accepted(event).unknown_fields == ()


def test_a_plain_string_query_is_its_text() -> None:
    record = accepted(make_lookup(query="how long?")).record

    assert plain(record.query) == {"text": "how long?"}


@pytest.mark.parametrize(
    ("place", "path"),
    [
        pytest.param((), "news", id="in-the-event"),
        pytest.param(("service",), "service.news", id="in-an-object"),
        pytest.param(("candidates", 1), "candidates[1].news", id="in-a-candidate"),
        pytest.param(
            ("projection", "evidence", 0), "projection.evidence[0].news", id="in-the-projection"
        ),
    ],
)
def test_an_unknown_field_is_kept_and_named(place: tuple[Any, ...], path: str) -> None:
    event = make_lookup()
    target: Any = event
    for step in place:
        target = target[step]
    target["news"] = 1

    assert accepted(event).unknown_fields == (path,)


def test_an_unknown_field_is_noted() -> None:
    assert Degradation.UNKNOWN_FIELDS in accepted(make_lookup(news=1)).notes


def test_an_unknown_field_changes_no_other_value() -> None:
    event = make_lookup()

    assert plain(accepted(event | {"news": 1}).record) == plain(accepted(event).record)


def test_unknown_fields_inside_an_unknown_part_of_the_projection_are_named() -> None:
    event = make_lookup()
    event["projection"]["debug"] = {"hits": [{"rrf_score": 1}]}

    assert "projection.debug.hits[0].rrf_score" in accepted(event).unknown_fields


@pytest.mark.parametrize("value", [1234567890123456789, 10**40, 0, -5])
def test_an_integer_id_keeps_its_exact_digits(value: int) -> None:
    assert accepted(make_lookup(event_id=value)).record.event_id == str(value)


@pytest.mark.parametrize("name", ["selected_chunk_ids", "selectedChunkIds"])
def test_integer_ids_in_lists_keep_their_exact_digits(name: str) -> None:
    event = {**BARE, name: [2**63 + 1]}

    assert accepted(event).record.selected_chunk_ids == [str(2**63 + 1)]


@pytest.mark.parametrize("text", [b"4.0", b"4", b"4e0", b"40e-1"])
def test_a_whole_number_is_an_integer_however_written(text: bytes) -> None:
    raw = encode(BARE | {"top_k": "@"}).replace(b'"@"', text)

    assert accepted(raw).record.top_k == 4


def test_null_means_absent() -> None:
    event = make_lookup()
    optional = set(event) - set(BARE)

    nulls = accepted(BARE | dict.fromkeys(optional)).record

    assert plain(nulls) == plain(accepted(BARE).record)


@pytest.mark.parametrize(
    "both",
    [
        pytest.param({"top_similarity": 0.5, "topSimilarity": None}, id="camel-is-null"),
        pytest.param({"top_similarity": None, "topSimilarity": 0.5}, id="snake-is-null"),
        pytest.param({"top_similarity": 0.5, "topSimilarity": 0.5}, id="equal"),
        pytest.param({"topSimilarity": 0.5, "top_similarity": 0.5}, id="equal-camel-first"),
    ],
)
def test_two_spellings_that_agree_are_one_field(both: Event) -> None:
    assert accepted(BARE | both).record.top_similarity == 0.5


@pytest.mark.parametrize(
    "both",
    [
        pytest.param({"trace_id": "a", "traceId": "a"}, id="text"),
        pytest.param(
            {"selected_chunk_ids": ["7"], "selectedChunkIds": [7]}, id="integer-and-text-id"
        ),
        pytest.param({"query": {"text": "q"}, "runId": "r", "run_id": "r"}, id="other-field"),
        pytest.param(
            {
                "retrieval_trace": {"category_filter": "x"},
                "retrievalTrace": {"categoryFilter": "x"},
            },
            id="nested",
        ),
        pytest.param({"candidates": [], "evidenceBlocks": []}, id="candidates"),
        pytest.param(
            {"top_similarity": 1.0000001, "topSimilarity": 1.0000001}, id="same-overshoot"
        ),
        pytest.param({"occurred_at": "2026-01-01T00:00:00Z"}, id="one-time"),
        pytest.param({"occurredAt": "2026-11-30T14:00:00+02:00"}, id="same-instant"),
    ],
)
def test_equal_values_in_two_spellings_are_accepted(both: Event) -> None:
    accepted(BARE | both)


@pytest.mark.parametrize(
    ("both", "field"),
    [
        pytest.param({"top_k": 1, "topK": 2}, "top_k", id="numbers"),
        pytest.param({"trace_id": "a", "traceId": "b"}, "trace_id", id="texts"),
        pytest.param({"event_id": "e", "eventId": "f"}, "event_id", id="ids"),
        pytest.param(
            {"occurredAt": "2026-11-30T12:00:01Z", "occurred_at": "2026-11-30T12:00:00Z"},
            "occurred_at",
            id="times",
        ),
        pytest.param({"truncated": False, "topK": True, "top_k": 1}, "top_k", id="true-is-not-1"),
        pytest.param({"evidenceBlocks": [{"originalRank": 1}]}, "candidates", id="candidates"),
        pytest.param(
            {"context_budget": {"limit_tokens": 1}, "contextBudget": {"limitTokens": 2}},
            "context_budget",
            id="nested",
        ),
    ],
)
def test_two_spellings_that_differ_are_rejected(both: Event, field: str) -> None:
    refusal = rejected(BARE | both)

    assert (refusal.reason, refusal.field) == (Reason.CONFLICTING_SPELLINGS, field)


def test_an_integer_id_may_be_any_event_types() -> None:
    result = OUTCOMES.decode(encode(make_outcome(lookup_event_ids=[17])))

    assert isinstance(result, Decoded)
    assert result.record.lookup_event_ids == ["17"]


@pytest.mark.parametrize("version", [None, "1", "1.0", "1.1", "1.12", "1.0.3"])
def test_every_1_x_version_is_read(version: str | None) -> None:
    accepted(BARE | {"schema_version": version})


@pytest.mark.parametrize("version", ["2", "2.0", "0.9", "", "one", "1.next", "1.", "١"])
def test_another_version_is_refused_as_such(version: str) -> None:
    # Whatever else may differ in a version that is not known, the version is the reason.
    refusal = rejected({"schema_version": version, "candidates": "elsewhere"})

    assert (refusal.reason, refusal.field) == (Reason.UNSUPPORTED_VERSION, "schema_version")


# --- what is refused -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        pytest.param(b"", Reason.EMPTY_VALUE, id="empty"),
        pytest.param(b" \n", Reason.EMPTY_VALUE, id="blank"),
        pytest.param(b"not-json", Reason.INVALID_JSON, id="words"),
        pytest.param(b"{}x", Reason.INVALID_JSON, id="trailing-words"),
        pytest.param(b"{} {}", Reason.INVALID_JSON, id="two-objects"),
        pytest.param(b'{"a":1,}', Reason.INVALID_JSON, id="trailing-comma"),
        pytest.param(b"\xff\xfe", Reason.INVALID_TEXT, id="not-utf-8"),
        pytest.param("{}".encode("utf-16"), Reason.INVALID_TEXT, id="utf-16"),
        pytest.param(b"[]", Reason.NOT_AN_OBJECT, id="array"),
        pytest.param(b"null", Reason.NOT_AN_OBJECT, id="null"),
        pytest.param(b"1", Reason.NOT_AN_OBJECT, id="number"),
        pytest.param(b'"{}"', Reason.NOT_AN_OBJECT, id="text"),
        pytest.param(b"[" * 100_000, Reason.INVALID_JSON, id="deep"),
        pytest.param(b"[" * 900 + b"]" * 900, Reason.INVALID_JSON, id="deep-and-closed"),
        pytest.param(b'{"a":' + b"9" * 5000 + b"}", Reason.INVALID_JSON, id="endless-number"),
        pytest.param(b"{}", Reason.MISSING_FIELD, id="nothing-in-it"),
    ],
)
def test_bytes_that_are_no_event_are_refused_with_a_reason(raw: bytes, reason: Reason) -> None:
    assert rejected(raw).reason == reason


@pytest.mark.parametrize("name", list(BARE))
def test_a_required_field_may_not_be_absent(name: str) -> None:
    event = {key: value for key, value in BARE.items() if key != name}

    assert (rejected(event).reason, rejected(event).field) == (Reason.MISSING_FIELD, name)


@pytest.mark.parametrize("name", list(BARE))
def test_a_required_field_may_not_be_null(name: str) -> None:
    assert rejected(BARE | {name: None}).field == name


@pytest.mark.parametrize("version", [None, "1.0", "1", "1.0.2"])
def test_a_candidate_of_version_1_0_needs_its_rank(version: str | None) -> None:
    event = BARE | {"schema_version": version, "candidates": [{"chunk_id": "a"}]}

    refusal = rejected(event)

    assert (refusal.reason, refusal.field) == (
        Reason.MISSING_FIELD,
        "candidates[0].original_rank",
    )


def _candidate(**over: Any) -> Event:
    return BARE | {"candidates": [{"original_rank": 1} | over]}


@pytest.mark.parametrize(
    ("event", "reason", "field"),
    [
        pytest.param(
            _candidate(dense_distance="0.4"),
            Reason.WRONG_TYPE,
            "candidates[0].dense_distance",
            id="number-as-text",
        ),
        pytest.param(
            _candidate(denseDistance="0,4"),
            Reason.WRONG_TYPE,
            "candidates[0].denseDistance",
            id="comma-decimal-in-camel-case",
        ),
        pytest.param(
            _candidate(quality_score=True),
            Reason.WRONG_TYPE,
            "candidates[0].quality_score",
            id="boolean-as-number",
        ),
        pytest.param(
            _candidate(original_rank="1"),
            Reason.WRONG_TYPE,
            "candidates[0].original_rank",
            id="rank-as-text",
        ),
        pytest.param(
            _candidate(original_rank=1.5),
            Reason.WRONG_TYPE,
            "candidates[0].original_rank",
            id="half-a-rank",
        ),
        pytest.param(
            _candidate(original_rank=0),
            Reason.OUT_OF_RANGE,
            "candidates[0].original_rank",
            id="rank-counts-from-1",
        ),
        pytest.param(
            _candidate(kept=1), Reason.WRONG_TYPE, "candidates[0].kept", id="number-as-boolean"
        ),
        pytest.param(
            _candidate(dense_distance=-0.1),
            Reason.OUT_OF_RANGE,
            "candidates[0].dense_distance",
            id="negative-distance",
        ),
        pytest.param(
            _candidate(quality_score=1.01),
            Reason.OUT_OF_RANGE,
            "candidates[0].quality_score",
            id="quality-above-1",
        ),
        pytest.param(
            _candidate(layer="top"), Reason.INVALID_VALUE, "candidates[0].layer", id="unknown-word"
        ),
        pytest.param(BARE | {"mode": "sparse"}, Reason.INVALID_VALUE, "mode", id="unknown-mode"),
        pytest.param(BARE | {"event_id": "x" * 129}, Reason.OUT_OF_RANGE, "event_id", id="long-id"),
        pytest.param(BARE | {"event_id": ""}, Reason.OUT_OF_RANGE, "event_id", id="empty-id"),
        pytest.param(BARE | {"event_id": 1.5}, Reason.WRONG_TYPE, "event_id", id="fraction-id"),
        pytest.param(BARE | {"event_id": True}, Reason.WRONG_TYPE, "event_id", id="boolean-id"),
        pytest.param(
            BARE | {"candidates": [7]}, Reason.WRONG_TYPE, "candidates[0]", id="not-a-candidate"
        ),
        pytest.param(
            BARE | {"thresholds": {"max_l2_distance": 0}},
            Reason.OUT_OF_RANGE,
            "thresholds.max_l2_distance",
            id="no-distance-at-all",
        ),
    ],
)
def test_a_wrong_value_is_refused_with_its_path(event: Event, reason: Reason, field: str) -> None:
    refusal = rejected(event)

    assert (refusal.reason, refusal.field) == (reason, field)


@pytest.mark.parametrize("token", [b"NaN", b"Infinity", b"-Infinity", b"1e999", b"-1e999"])
@pytest.mark.parametrize(
    "path",
    [
        "latency_ms",
        "top_k",
        "news",
        "context_pack",
        "query",
        "candidates[0].dense_distance",
        "candidates[0].original_rank",
        "candidates[0].news",
    ],
)
def test_what_is_not_finite_is_refused_with_its_path(token: bytes, path: str) -> None:
    event: Event = _candidate()
    target: Any = event["candidates"][0] if path.startswith("c") and "[" in path else event
    target[path.rpartition(".")[2]] = "@"
    raw = encode(event).replace(b'"@"', token)

    refusal = rejected(raw)

    assert (refusal.reason, refusal.field) == (Reason.NON_FINITE, path)


@pytest.mark.parametrize(
    ("event", "field"),
    [
        pytest.param(BARE | {"query": "@"}, "query", id="query"),
        pytest.param(_candidate(title="@"), "candidates[0].title", id="candidate"),
        pytest.param(BARE | {"news": ["@"]}, "news[0]", id="unknown-field"),
        pytest.param(BARE | {"context_pack": {"@": 1}}, "context_pack.?", id="key"),
        pytest.param(BARE | {"context_pack": {"k": "@"}}, "context_pack.k", id="opaque"),
    ],
)
def test_half_a_surrogate_pair_is_refused_with_its_path(event: Event, field: str) -> None:
    refusal = rejected(encode(event).replace(b"@", rb"\ud83d"))

    assert (refusal.reason, refusal.field) == (Reason.INVALID_TEXT, field)


def test_a_refusal_can_always_be_written_as_utf_8() -> None:
    refusal = rejected(rb'{"event_id":"\ud83d","\ud83d":{"\ud83d":["\ud83d"]}}')

    assert f"{refusal.field}{refusal.message}{refusal.event_id}".encode()


def test_a_refusal_stays_small_whatever_the_event_calls_its_fields() -> None:
    refusal = rejected(encode(BARE | {"x" * 100_000: float("nan")}))

    assert len(refusal.field) + len(refusal.message) < 4000


@pytest.mark.parametrize(
    "event",
    [{"event_id": "e-1"}, {"eventId": "e-1"}],
    ids=["snake", "camel"],
)
def test_a_refusal_names_the_event(event: Event) -> None:
    assert rejected(event).event_id == "e-1"


def test_a_refusal_names_an_integer_id() -> None:
    assert rejected({"event_id": 2**70}).event_id == str(2**70)


# --- the rest ------------------------------------------------------------------------------


@given(st.binary(max_size=60) | st.text(max_size=60).map(lambda t: t.encode("utf-8", "replace")))
@examples(150)
def test_decode_never_raises_for_any_bytes(raw: bytes) -> None:
    for codec in CODECS.values():
        assert isinstance(codec.decode(raw), (Decoded, Rejected))


JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.floats()
    | st.text(max_size=6)
    | st.sampled_from(["2026-11-30T12:00:00Z", "1.0", "dense"]),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.text(max_size=4) | st.sampled_from(["text", "chunkId", "original_rank"]),
            inner,
            max_size=2,
        )
    ),
    max_leaves=4,
)


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    if isinstance(value, (dict, list)):
        for key in list(value) if isinstance(value, dict) else range(len(value)):
            yield value, key
            yield from _places(value[key])


@given(st.data(), JSON_VALUES)
@examples(250)
def test_decode_decides_alike_on_every_path_for_any_mutation(
    data: st.DataObject, other: Any
) -> None:
    kind = data.draw(st.sampled_from(EventType))
    codec, event = CODECS[kind], FACTORIES[kind]()
    holder, key = data.draw(st.sampled_from(list(_places(event))))
    holder[key] = other
    raw = encode(camel(event) if data.draw(st.booleans()) else event)

    result = codec.decode(raw)
    by_model = codec._decode_by_model(raw)

    assert type(result) is type(by_model)
    if isinstance(result, Decoded) and isinstance(by_model, Decoded):
        assert plain(result.record) == plain(by_model.record)
        assert (result.unknown_fields, result.notes) == (by_model.unknown_fields, by_model.notes)


@given(st.data(), JSON_VALUES)
@examples(400)
def test_decode_decides_alike_on_every_path_for_any_member_added(
    data: st.DataObject, other: Any
) -> None:
    kind = data.draw(st.sampled_from(EventType))
    codec, event = CODECS[kind], FACTORIES[kind]()
    objects = [event, *(h[k] for h, k in _places(event) if isinstance(h[k], dict))]
    names = st.text(max_size=4) | st.sampled_from(["news", "chunkId", "text", "eventId", "query"])
    for _ in range(data.draw(st.integers(1, 2))):
        data.draw(st.sampled_from(objects)).setdefault(data.draw(names), other)
    raw = encode(event)

    result = codec.decode(raw)
    by_model = codec._decode_by_model(raw)

    assert type(result) is type(by_model)
    if isinstance(result, Decoded) and isinstance(by_model, Decoded):
        assert plain(result.record) == plain(by_model.record)
        assert (result.unknown_fields, result.notes) == (by_model.unknown_fields, by_model.notes)


@pytest.mark.parametrize("kind", EventType)
def test_an_unknown_field_alone_needs_no_model(kind: EventType) -> None:
    event = FACTORIES[kind]() | {"news": {"a": [1, 2.5, None]}}
    decoded = CODECS[kind]._decode_with_unknown(encode(event))
    assert decoded is not None
    assert decoded.unknown_fields == ("news",)


@given(st.data())
@examples(150)
def test_decode_never_raises_for_damaged_events(data: st.DataObject) -> None:
    raw = bytearray(encode(make_lookup(candidates=[make_candidate()])))
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(raw) - 1))
        raw[start : start + data.draw(st.integers(0, 4))] = data.draw(st.binary(max_size=3))

    result = LOOKUPS.decode(bytes(raw))

    assert type(result) is type(LOOKUPS._decode_by_model(bytes(raw)))


@pytest.mark.parametrize(
    "text",
    ["2026-11-30T12:00:00", "2026-11-30T12:00:00Z", "2026-03-08T02:30:00-05:00"],
    ids=["naive", "utc", "in-a-dst-gap"],
)
def test_the_decision_does_not_depend_on_the_time_zone_of_the_machine(text: str) -> None:
    before = os.environ.get("TZ")
    results = []
    try:
        for zone in ("UTC", "America/New_York", "Asia/Tokyo"):
            os.environ["TZ"] = zone
            time.tzset()
            raw = encode(BARE | {"occurred_at": text, "news": 1})
            result = LOOKUPS.decode(raw)
            results.append(plain(result.record) if isinstance(result, Decoded) else result)
    finally:
        os.environ.pop("TZ", None) if before is None else os.environ.update(TZ=before)
        time.tzset()

    assert results[0] == results[1] == results[2]


@pytest.mark.parametrize("depth", [50, 99, 150, 250, 900])
def test_both_paths_agree_on_deep_nesting(depth: int) -> None:
    raw = encode(BARE | {"context_pack": "@"}).replace(b'"@"', b"[" * depth + b"]" * depth)

    assert type(LOOKUPS.decode(raw)) is type(LOOKUPS._decode_by_model(raw))


@pytest.mark.parametrize(
    "text",
    [
        "2026-13-01T00:00:00Z",
        "2026-02-30T00:00:00Z",
        "2026-01-01T24:00:00Z",
        "0001-01-01T00:00:00Z",
    ],
)
def test_a_time_that_may_not_exist_is_left_to_the_models(text: str) -> None:
    assert not is_real_time(text)


@pytest.mark.parametrize(
    ("raw", "kind"),
    [
        pytest.param(b'{"judgement_id":1}', EventType.JUDGEMENT, id="snake"),
        pytest.param(b'{"judgementId":1}', EventType.JUDGEMENT, id="camel"),
        pytest.param(b'{"outcome_id":1}', EventType.OUTCOME, id="outcome"),
        pytest.param(b"\xff", EventType.OUTCOME, id="unreadable"),
    ],
)
def test_a_headerless_value_is_told_by_its_id(raw: bytes, kind: EventType) -> None:
    assert guess_outcome_type(raw) == kind


def test_a_path_reads_as_in_json() -> None:
    assert format_path(("projection", "evidence", 0, "excerpt")) == "projection.evidence[0].excerpt"
