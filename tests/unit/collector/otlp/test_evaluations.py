"""Evaluations of every dialect as Judgements, and our own answer attributes as outcomes."""

from typing import Any

import pytest

from lookup_audit.collector.otlp import from_json
from lookup_audit.collector.otlp.evaluations import make_judgement, of_logs, of_span, outcome_id
from lookup_audit.schemas.names import EventType
from tests.unit.collector.otlp.mapped import mapped_of, spans_of
from tests.unit.collector.otlp.payloads import START_NS, TRACE, encode, logs, pairs, retriever, span

OTHER = "f" * 32


def annotation(prefix: str = "annotations.0.annotation.", **fields: Any) -> dict[str, Any]:
    return {prefix + name: value for name, value in fields.items()}


def judgements(*told: dict[str, Any]) -> list[dict[str, Any] | str]:
    return [make_judgement(e) for made in spans_of(*told) for e in of_span(made)]


def test_an_annotation_on_a_span_is_a_judgement_of_the_answer_of_its_trace() -> None:
    told = annotation(
        name="Answer Correctness",
        label="incorrect",
        score=0.1,
        explanation="the limit is ten days",
        annotator_kind="HUMAN",
        identifier="ann",
    )
    [judgement] = judgements(span("1", told))
    assert isinstance(judgement, dict)
    assert len(str(judgement.pop("judgement_id"))) == 36
    assert judgement == {
        "occurred_at": "2026-11-30T12:00:00.120000Z",
        "outcome_id": outcome_id(TRACE),
        "verdict": "incorrect",
        "source": "human",
        "judge": {"id": "ann"},
        "comment": "Answer Correctness, label incorrect, score 0.1: the limit is ten days",
    }


def test_a_carrier_span_judges_what_its_only_link_points_at() -> None:
    told = annotation("evaluations.0.evaluation.", name="correctness", label="correct")
    link = {"traceId": OTHER, "spanId": "1" * 16}
    kind = {"openinference.span.kind": "EVALUATOR"}
    [one] = judgements(span("1", told | kind, links=[link]))
    [two] = judgements(span("1", told | kind, links=[link, link]))
    assert isinstance(one, dict)
    assert isinstance(two, dict)
    assert (one["outcome_id"], two["outcome_id"]) == (outcome_id(OTHER), outcome_id(TRACE))


@pytest.mark.parametrize(
    ("fields", "verdict"),
    [
        ({"label": "Correct"}, "correct"),
        ({"label": "thumbs-down"}, "incorrect"),
        ({"label": "partially correct"}, "partly"),
        ({"label": "hm", "score": 1.0}, "cannot_tell"),
        ({"score": 1}, "correct"),
        ({"score": 0.0}, "incorrect"),
        ({"score": 0.7}, "cannot_tell"),
        ({"score": float("nan")}, "cannot_tell"),
        ({}, "cannot_tell"),
    ],
)
def test_a_verdict_is_the_label_or_a_score_at_an_end_of_its_scale(
    fields: dict[str, Any], verdict: str
) -> None:
    [judgement] = judgements(span("1", annotation(name="correctness", **fields)))
    assert isinstance(judgement, dict)
    assert judgement["verdict"] == verdict


@pytest.mark.parametrize(
    ("name", "kind", "source"),
    [
        ("qa", "LLM", "llm"),
        ("qa", "CODE", "llm"),
        ("qa", "", "llm"),
        ("qa", "HUMAN", "human"),
        ("user_feedback", "HUMAN", "user_feedback"),
    ],
)
def test_who_judged_is_never_said_to_be_gold(name: str, kind: str, source: str) -> None:
    told = annotation(name=name, label="pass", annotator_kind=kind)
    [judgement] = judgements(span("1", told))
    assert isinstance(judgement, dict)
    assert judgement["source"] == source


@pytest.mark.parametrize("name", ["toxicity", "relevance", "", "hallucination"])
def test_an_evaluation_of_something_else_is_counted_and_left(name: str) -> None:
    assert judgements(span("1", annotation(name=name, score=1))) == ["evaluation_of_other_kind"]


def test_an_evaluation_of_a_session_has_no_answer_to_judge() -> None:
    told = annotation("session.annotations.0.annotation.", name="correctness", label="pass")
    assert judgements(span("1", told)) == ["evaluation_without_trace"]


def test_several_evaluations_of_one_span_are_all_kept() -> None:
    told = annotation(name="correctness", label="pass")
    told |= annotation("annotations.1.annotation.", name="correctness", label="fail")
    told |= annotation("trace.annotations.0.annotation.", name="correctness", label="fail")
    found = judgements(span("1", told))
    assert len({str(j["judgement_id"]) for j in found if isinstance(j, dict)}) == 3


def test_an_evaluation_event_on_a_span_is_a_judgement() -> None:
    event = {
        "name": "gen_ai.evaluation.result",
        "timeUnixNano": str(START_NS),
        "attributes": pairs(
            {"gen_ai.evaluation.name": "Correctness", "gen_ai.evaluation.score.value": 0}
        ),
    }
    mapped = mapped_of(spans_of(span("1", {}, events=[event])))
    [(kind, judgement, _)] = mapped.events
    assert (kind, judgement["verdict"]) == (EventType.JUDGEMENT, "incorrect")
    assert mapped.used == 1


def test_log_records_that_are_no_evaluation_are_none() -> None:
    payload = from_json.read_logs(encode(logs({"eventName": "other"}, {"body": {}})))
    assert list(of_logs(payload.logs)) == []


# --- outcomes -------------------------------------------------------------------------------


def outcome(attributes: dict[str, Any]) -> dict[str, Any] | None:
    root = span("9", {f"lookup_audit.answer.{k}": v for k, v in attributes.items()}, end=500)
    mapped = mapped_of(spans_of(root, retriever("1", "a", parent="9")))
    found = [event for kind, event, _ in mapped.events if kind is EventType.OUTCOME]
    return found[0] if found else None


def test_an_answer_told_above_a_lookup_is_its_outcome() -> None:
    found = outcome({"outcome": "answered", "citation_ids": ["a"]})
    assert found is not None
    [lookup] = found.pop("lookup_event_ids")
    assert len(lookup) == 36
    assert found == {
        "outcome_id": outcome_id(TRACE),
        "occurred_at": "2026-11-30T12:00:00.500000Z",
        "trace_id": TRACE,
        "action": "answered",
        "claims": [{"cited_chunk_ids": ["a"]}],
    }


@pytest.mark.parametrize(
    ("attributes", "reason"),
    [
        ({"outcome": "refused", "refusal.reason": "insufficient_sources"}, "insufficient_sources"),
        ({"outcome": "refused", "refusal.reason": "tired"}, "other"),
        ({"refused": True}, "other"),
    ],
)
def test_a_refusal_has_its_reason_or_other(attributes: dict[str, Any], reason: str) -> None:
    found = outcome(attributes)
    assert found is not None
    assert (found["action"], found["refusal"]) == ("refused", {"reason": reason})


@pytest.mark.parametrize("told", ["no_answer", "error", "", 5])
def test_an_answer_that_is_neither_given_nor_refused_is_no_outcome(told: Any) -> None:
    assert outcome({"outcome": told}) is None


def test_an_answer_without_a_lookup_is_no_outcome() -> None:
    mapped = mapped_of(spans_of(span("1", {"lookup_audit.answer.outcome": "answered"})))
    assert mapped.events == []
