"""What one retrieval's event says: every field, and the name of everything it cannot say."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookup_audit.collector.otlp import from_json, from_protobuf
from lookup_audit.collector.otlp.mapping import Past, map_trace
from lookup_audit.collector.otlp.spans import BadPayloadError
from lookup_audit.schemas.decode import CODECS, Decoded
from lookup_audit.schemas.ruleset import Registry
from lookup_audit.schemas.verdict import audit
from tests.support.audits import DEFAULT_REGISTRY
from tests.support.events import encode as encode_event
from tests.support.strategies import examples
from tests.unit.collector.otlp.mapped import lookup_of
from tests.unit.collector.otlp.payloads import (
    any_value,
    documents,
    encode,
    request,
    retriever,
    span,
)

SAMPLES = Path(__file__).parents[3] / "samples" / "otlp"


def level(event: dict[str, Any], registry: Registry = DEFAULT_REGISTRY) -> tuple[Any, str]:
    decoded = CODECS[next(iter(CODECS))].decode(encode_event(event))
    assert isinstance(decoded, Decoded)
    verdict = audit(decoded, registry).verdict()
    return verdict.recomputed_level, verdict.level_check


# --- documents ------------------------------------------------------------------------------


def test_indices_are_numbers_with_gaps_and_metadata_that_is_no_json_is_kept() -> None:
    attributes: dict[str, Any] = {"openinference.span.kind": "RETRIEVER"}
    for index, score in ((10, 0.7), (2, 0.86), (0, 0.9), (5, 0.8)):
        attributes[f"retrieval.documents.{index}.document.id"] = f"c-{index}"
        attributes[f"retrieval.documents.{index}.document.score"] = score
    attributes["retrieval.documents.5.document.metadata"] = "{'author': 'x'}"
    event = lookup_of(span("1", attributes))
    assert [(c["chunk_id"], c["original_rank"]) for c in event["candidates"]] == [
        ("c-0", 1),
        ("c-2", 3),
        ("c-5", 6),
        ("c-10", 11),
    ]
    assert event["origin"]["missing_documents"] == 7
    assert event["candidates"][2]["metadata"] == "{'author': 'x'}"
    assert {"documents_missing", "metadata_unparsable"} <= set(event["degradations"])
    assert (event["truncated"], "returned_count" in event) == (True, False)


def test_dropped_attributes_leave_what_is_missing_unknown() -> None:
    attributes: dict[str, Any] = {"openinference.span.kind": "RETRIEVER", "input.value": "q"}
    for index in range(31):
        start = f"retrieval.documents.{index}.document."
        attributes |= {
            start + "id": f"c-{index}",
            start + "score": 0.9 - index / 100,
            start + "content": "t",
            start + "metadata": "{}",
        }
    attributes["retrieval.documents.31.document.id"] = "c-31"
    attributes["retrieval.documents.31.document.score"] = 0.59
    assert len(attributes) == 128
    event = lookup_of(span("1", attributes, droppedAttributesCount=34))
    candidates = event["candidates"]
    assert [c["original_rank"] for c in candidates] == list(range(1, 33))
    assert "excerpt" not in candidates[31]
    assert (event["truncated"], event["origin"]["dropped_attributes"]) == (True, 34)
    assert "attributes_dropped" in event["degradations"]
    assert "returned_count" not in event


def test_integer_ids_keep_every_digit() -> None:
    told = documents("x") | {"retrieval.documents.0.document.id": 1234567890123456789}
    event = lookup_of(span("1", {"openinference.span.kind": "RETRIEVER", **told}))
    assert event["candidates"][0]["chunk_id"] == "1234567890123456789"


@pytest.mark.parametrize("content", [True, False], ids=["capture-on", "capture-off"])
def test_an_empty_list_found_nothing_and_an_absent_one_is_unknown(content: bool) -> None:
    attributes = {"gen_ai.operation.name": "retrieval"}
    if content:
        attributes["gen_ai.retrieval.documents"] = "[]"
    event = lookup_of(span("1", attributes))
    assert event["candidates"] == []
    assert event.get("evidence_status") == ("NO_EVIDENCE" if content else None)
    assert ("candidates_unknown" in event["degradations"]) is not content


def test_an_unknown_list_has_no_level() -> None:
    attributes = {"lookup_audit.retrieval.mode": "dense"}
    assert level(lookup_of(span("1", attributes))) == (None, "unverifiable")


# --- our own attributes ---------------------------------------------------------------------

OWN: dict[str, Any] = {
    "gen_ai.operation.name": "retrieval",
    "gen_ai.retrieval.documents": json.dumps(
        [{"id": "a", "score": 0.4, "content": "x"}, {"id": "b", "score": 0.9, "content": "y"}]
    ),
    "lookup_audit.retrieval.mode": "dense",
    "lookup_audit.retrieval.score.kind": "l2_distance",
    "lookup_audit.retrieval.selected_ids": ["a"],
    "lookup_audit.retrieval.quality.score": 0.8,
    "lookup_audit.retrieval.relevance.level": "PRECISE",
    "lookup_audit.retrieval.truncated": False,
    "lookup_audit.evidence.status": "EVIDENCE_FOUND",
    "lookup_audit.model.version": "bge-m3/4",
    "lookup_audit.tenant": "acme",
}


def test_our_own_attributes_make_a_level_that_can_be_checked() -> None:
    event = lookup_of(span("1", OWN))
    assert event["candidates"][0] == {
        "chunk_id": "a",
        "excerpt": "x",
        "score": 0.4,
        "score_label": "l2_distance",
        "dense_distance": 0.4,
        "original_rank": 1,
    }
    told = {name: event[name] for name in ("mode", "model_version", "tenant", "relevance_level")}
    assert told == {
        "mode": "dense",
        "model_version": "bge-m3/4",
        "tenant": "acme",
        "relevance_level": "PRECISE",
    }
    assert (event["selected_chunk_ids"], event["quality_score"]) == (["a"], 0.8)
    assert event["truncated"] is False
    assert event["degradations"] == ["query_unknown"]
    assert level(event) == ("PRECISE", "pass")


def test_a_wrong_level_of_our_own_attributes_is_found() -> None:
    told = OWN | {"lookup_audit.retrieval.relevance.level": "NONE"}
    assert level(lookup_of(span("1", told))) == ("PRECISE", "fail")


def test_a_score_of_a_kind_that_gives_no_distance_is_unverifiable() -> None:
    told = OWN | {"lookup_audit.retrieval.score.kind": "bm25"}
    event = lookup_of(span("1", told))
    assert event["candidates"][0]["score_label"] == "bm25"
    assert "dense_distance" not in event["candidates"][0]
    assert level(event) == (None, "unverifiable")


def test_a_guessed_mode_does_not_make_a_rank_a_level() -> None:
    event = lookup_of(retriever("1", "a", name="QueryFusionRetriever"))
    assert event["mode"] == "hybrid"
    assert level(event) == (None, "unverifiable")


@pytest.mark.parametrize("value", ["high", "", 5, ["PRECISE"], {"a": 1}])
def test_a_level_that_is_none_of_ours_is_unknown(value: Any) -> None:
    event = lookup_of(span("1", OWN | {"lookup_audit.retrieval.relevance.level": value}))
    assert "relevance_level" not in event
    assert "level_unknown" in event["degradations"]


# --- redaction ------------------------------------------------------------------------------


def test_a_hidden_query_is_not_taken_from_anywhere_else() -> None:
    told = retriever(
        "1", "a", query="__REDACTED__", attributes={"gen_ai.retrieval.query.text": "secret"}
    )
    told["attributes"].append({"key": "gen_ai.operation.name", "value": any_value("retrieval")})
    embedding = {
        "openinference.span.kind": "EMBEDDING",
        "embedding.embeddings.0.embedding.text": "secret",
    }
    event = lookup_of(told, span("2", embedding, parent="1"))
    assert "query_redacted" in event["degradations"]
    assert "secret" not in json.dumps(event)


def test_hidden_documents_are_not_taken_from_a_span_inside() -> None:
    hidden = retriever("1", attributes=documents("__REDACTED__", "__REDACTED__"))
    for attribute in hidden["attributes"]:
        if attribute["key"].endswith(".content"):
            attribute["value"] = any_value("__REDACTED__")
    event = lookup_of(hidden, retriever("2", "secret-1", "secret-2", parent="1", begin=1, end=9))
    assert "candidates_redacted" in event["degradations"]
    assert "secret" not in json.dumps(event)


# --- anything -------------------------------------------------------------------------------

LEAVES = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False)
    | st.text(max_size=8)
    | st.sampled_from(
        ["__REDACTED__", "[]", "{}", '{"documents": [{"id": 1}]}', '["{}"]', "[1]", '[{"node": 1}]']
    )
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=8,
)
KEYS = st.sampled_from(
    [
        "openinference.span.kind",
        "input.value",
        "output.value",
        "metadata",
        "retrieval.documents",
        "retrieval.documents.0.document.id",
        "retrieval.documents.0.document.score",
        "retrieval.documents.0.document.metadata",
        "retrieval.documents.99999.document.content",
        "retrieval.documents.x.document.content",
        "reranker.input_documents",
        "reranker.output_documents.1.document.content",
        "gen_ai.operation.name",
        "gen_ai.retrieval.documents",
        "gen_ai.retrieval.top_k",
        "gen_ai.request.model",
        "traceloop.span.kind",
        "traceloop.entity.name",
        "traceloop.entity.input",
        "traceloop.entity.output",
        "db.system",
        "lookup_audit.retrieval.mode",
        "lookup_audit.retrieval.score.kind",
        "lookup_audit.retrieval.selected_ids",
        "lookup_audit.retrieval.quality.score",
        "lookup_audit.answer.outcome",
        "lookup_audit.answer.citation_ids",
        "annotations.0.annotation.name",
        "annotations.0.annotation.score",
    ]
)
KINDS = st.sampled_from(["RETRIEVER", "RERANKER", "EMBEDDING", "TOOL", "EVALUATOR", ""])


@given(
    st.lists(
        st.tuples(KINDS, st.dictionaries(KEYS, VALUES, max_size=6), st.integers(0, 5)), max_size=5
    )
)
@examples(300)
def test_spans_of_any_attributes_make_events_that_are_accepted(
    told: list[tuple[str, dict[str, Any], int]],
) -> None:
    spans = []
    for number, (kind, attributes, parent) in enumerate(told, 1):
        made = {"openinference.span.kind": kind, **attributes} if kind else attributes
        spans.append(
            span(
                f"{number}",
                made,
                parent=str(parent) if parent else "",
                begin=number,
                end=50 + number,
            )
        )
    payload = from_json.read_traces(json.dumps(request(*spans)).encode())
    mapped = map_trace(payload.spans, Past())
    for kind, event, _ in mapped.events:
        assert isinstance(CODECS[kind].decode(encode_event(event)), Decoded)
    evaluations = sum(n for name, n in mapped.ignored.items() if name.startswith("evaluation_"))
    assert mapped.used + sum(mapped.ignored.values()) - evaluations == len(payload.spans)


@given(st.binary(max_size=200) | st.text(max_size=80).map(str.encode))
@examples(300)
def test_any_bytes_are_spans_or_a_bad_payload(body: bytes) -> None:
    for read in (from_json.read_traces, from_json.read_logs):
        try:
            read(body)
        except BadPayloadError:
            continue
    for read in (from_protobuf.read_traces, from_protobuf.read_logs):
        try:
            read(body)
        except BadPayloadError:
            continue


@given(st.data())
@examples(200)
def test_a_broken_request_is_spans_faults_or_a_bad_payload(data: st.DataObject) -> None:
    body = bytearray(encode(request(retriever("1", "a"))))
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(body) - 1))
        body[place : place + 1] = data.draw(st.binary(max_size=3))
    try:
        from_json.read_traces(bytes(body))
    except BadPayloadError:
        return


@given(st.data())
@examples(200)
def test_a_broken_protobuf_is_spans_faults_or_a_bad_payload(data: st.DataObject) -> None:
    body = bytearray((SAMPLES / "hs_oi_bm25.otlp.pb").read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(body) - 1))
        body[place : place + 1] = data.draw(st.binary(max_size=3))
    try:
        payload = from_protobuf.read_traces(bytes(body))
    except BadPayloadError:
        return
    for found in payload.spans:
        for kind, event, _ in map_trace([found], Past()).events:
            assert isinstance(CODECS[kind].decode(encode_event(event)), Decoded)
