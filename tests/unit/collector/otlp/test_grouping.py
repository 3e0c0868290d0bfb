"""Which spans are one lookup: nested, composite and doubly instrumented retrievals count once."""

from typing import Any

import pytest

from tests.unit.collector.otlp.mapped import lookup_of, lookups_of, mapped_of, spans_of
from tests.unit.collector.otlp.payloads import documents, retriever, span

GENAI = {"gen_ai.operation.name": "retrieval"}


def reranker(span_id: str, given: list[str], left: list[str], **more: Any) -> dict[str, Any]:
    attributes = {
        "openinference.span.kind": "RERANKER",
        "reranker.query": more.pop("query", "q"),
        "reranker.model_name": "rr-1",
        **documents(*given, prefix="reranker.input_documents"),
        **documents(*left, prefix="reranker.output_documents", score=0.5),
    }
    return span(span_id, attributes, **more)


def chunks(event: dict[str, Any]) -> list[Any]:
    return [candidate.get("chunk_id") for candidate in event["candidates"]]


def test_two_retrievals_side_by_side_are_two_lookups() -> None:
    one = retriever("1", "a", parent="9")
    two = retriever("2", "b", parent="9", begin=5)
    assert [chunks(event) for event in lookups_of(one, two, span("9", {}))] == [["a"], ["b"]]


def test_a_retriever_in_a_retriever_that_found_the_same_is_counted_once() -> None:
    inner = retriever("2", "a", "b", parent="1", begin=5, end=9)
    assert chunks(lookup_of(retriever("1", "a", "b"), inner)) == ["a", "b"]


def test_a_retriever_deep_inside_another_is_counted_once() -> None:
    inner = retriever("3", "a", parent="2", begin=5, end=9)
    assert len(lookups_of(retriever("1", "a"), span("2", {}, parent="1"), inner)) == 1


def test_retrievers_under_a_fusing_one_are_its_routes() -> None:
    event = lookup_of(
        retriever("1", "a", "b", "c", name="EnsembleRetriever"),
        retriever("2", "a", "c", parent="1", name="BM25Retriever", begin=1, end=9),
        retriever("3", "b", parent="1", name="VectorStoreRetriever", begin=2, end=9),
    )
    assert (chunks(event), event["mode"]) == (["a", "b", "c"], "hybrid")
    routes = event["retrieval_trace"]["routes"]
    assert [(route["name"], route["hits"]) for route in routes] == [
        ("BM25Retriever", 2),
        ("VectorStoreRetriever", 1),
    ]
    assert "mode_inferred" in event["degradations"]


def test_routes_of_different_kinds_are_hybrid_whatever_the_name_of_the_outer_one() -> None:
    event = lookup_of(
        retriever("1", "a", "b", name="Mine"),
        retriever("2", "a", parent="1", name="BM25Retriever", begin=1),
        retriever("3", "b", parent="1", name="VectorStoreRetriever", begin=2),
    )
    assert event["mode"] == "hybrid"


def test_two_instrumentations_of_one_call_are_one_lookup_of_the_richer_dialect() -> None:
    rich = spans_of(retriever("1", "a", "b", parent="9", begin=1, end=9), scope="openinference")
    poor = spans_of(
        span("2", GENAI | {"gen_ai.retrieval.top_k": 2}, parent="9", begin=0, end=10), scope="genai"
    )
    for spans in (rich + poor, poor + rich):
        mapped = mapped_of(spans)
        [(_, event, weight)] = mapped.events
        assert (event["source_format"], weight) == ("otlp/openinference", 2)
        assert (chunks(event), event["top_k"]) == (["a", "b"], 2)
        assert "instrumented_twice" in event["degradations"]


@pytest.mark.parametrize(
    "other",
    [
        pytest.param({"begin": 200, "end": 210}, id="at another time"),
        pytest.param({"parent": "8"}, id="under another parent"),
        pytest.param({"query": "another"}, id="with another query"),
    ],
)
def test_two_instrumentations_of_two_calls_are_two_lookups(other: dict[str, Any]) -> None:
    one = spans_of(retriever("1", "a", parent="9"), scope="x")
    two = spans_of(retriever("2", "a", **({"parent": "9"} | other)), scope="y")
    assert len(mapped_of(one + two).events) == 2


def test_a_reranker_beside_the_retriever_joins_it_and_moves_are_by_id() -> None:
    event = lookup_of(
        span("9", {}),
        retriever("1", "a", "b", "c", "d", parent="9", end=10),
        reranker("2", ["a", "b", "c"], ["c", "a"], parent="9", begin=11, end=20),
    )
    assert event["selected_chunk_ids"] == ["c", "a"]
    assert [(c["chunk_id"], c["kept"], c.get("drop_reason")) for c in event["candidates"]] == [
        ("a", True, None),
        ("b", False, "left out by the last stage"),
        ("c", True, None),
        ("d", False, "filtered before"),
    ]
    assert event["rerank_trace"]["moves"] == [
        {"chunk_id": "c", "rank_before": 3, "rank_after": 1, "score": 0.5},
        {"chunk_id": "a", "rank_before": 1, "rank_after": 2, "score": 0.49},
        {"chunk_id": "b", "rank_before": 2},
    ]
    assert event["versions"] == {"reranker": "rr-1"}
    assert event["returned_count"] == 2
    assert event["latency_ms"] == 20


def test_a_reranker_joins_the_retrieval_whose_documents_it_was_given() -> None:
    events = lookups_of(
        retriever("1", "a", parent="9", end=10),
        retriever("2", "b", parent="9", end=10),
        reranker("3", ["a"], ["a"], parent="9", begin=11, end=20),
    )
    assert ["rerank_trace" in event for event in events] == [True, False]


def test_a_reranker_of_another_query_is_a_lookup_of_its_own() -> None:
    events = lookups_of(
        retriever("1", "a", parent="9", end=10),
        reranker("2", ["a"], ["a"], query="other", parent="9", begin=11, end=20),
    )
    assert ["retriever_not_seen" in event["degradations"] for event in events] == [False, True]


def test_a_reranker_over_nothing_found_nothing() -> None:
    attributes = {
        "openinference.span.kind": "RERANKER",
        "reranker.output_documents": [],
        "reranker.input_documents": [],
    }
    event = lookup_of(span("1", attributes))
    assert (event["candidates"], event["evidence_status"]) == ([], "NO_EVIDENCE")


def test_the_embedding_inside_tells_the_model_and_one_beside_tells_the_query() -> None:
    embedding = {
        "openinference.span.kind": "EMBEDDING",
        "embedding.model_name": "e-1",
        "embedding.embeddings.0.embedding.text": "what",
    }
    inside = lookup_of(retriever("1", "a"), span("2", embedding, parent="1"))
    told = retriever("1", "a", parent="9", begin=5)
    told["attributes"] = [a for a in told["attributes"] if a["key"] != "input.value"]
    beside = lookup_of(told, span("2", embedding, parent="9", end=4))
    assert [event["model_version"] for event in (inside, beside)] == ["e-1", "e-1"]
    assert [event["query"]["text"] for event in (inside, beside)] == ["q", "what"]


def test_a_loop_of_parents_ends() -> None:
    spans = [span("1", {}, parent="2"), span("2", {}, parent="1"), retriever("3", "a", parent="1")]
    assert len(lookups_of(*spans)) == 1
    own = retriever("4", "a", parent="4")
    assert len(lookups_of(own)) == 1


def test_a_deep_trace_is_mapped() -> None:
    deep = [span(f"{n:x}", {}, parent=f"{n - 1:x}" if n > 1 else "") for n in range(1, 3000)]
    assert len(lookups_of(*deep, retriever("ffff", "a", parent=f"{2999:x}"))) == 1


def test_a_lookup_that_was_sent_natively_too_is_left_out() -> None:
    told = retriever("1", "a", attributes={"lookup_audit.event.id": "evt-1"})
    mapped = mapped_of(spans_of(told, span("2", GENAI, parent="1")))
    assert (mapped.events, mapped.ignored["native_event"]) == ([], 2)


def test_a_chunk_found_twice_is_kept_once_by_the_reranker() -> None:
    event = lookup_of(
        span("9", {}),
        retriever("1", "a", "a", "b", parent="9", end=10),
        reranker("2", ["a", "b"], ["a"], parent="9", begin=11, end=20),
    )
    assert [candidate["kept"] for candidate in event["candidates"]] == [True, False, False]
    assert len(event["rerank_trace"]["moves"]) == 2


def test_a_document_that_only_the_reranker_names_has_no_rank_before() -> None:
    event = lookup_of(
        span("9", {}),
        retriever("1", "a", parent="9", end=10),
        reranker("2", ["a", "x"], ["x", "a"], parent="9", begin=11, end=20),
    )
    assert event["schema_version"] == "1.1"
    assert [(c["chunk_id"], c.get("original_rank")) for c in event["candidates"]] == [
        ("a", 1),
        ("x", None),
    ]
