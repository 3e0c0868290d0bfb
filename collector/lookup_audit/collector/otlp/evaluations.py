"""Evaluations and our own answer attributes into Judgements and AnswerOutcomes.

A judgement is of an answer, and the answer of a trace has one id made from the trace's. So a
judgement finds its outcome whichever of them comes first, and weeks later.
"""

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, get_args

from lookup_audit.collector.envelope import TRACE_ID
from lookup_audit.collector.otlp.documents import REDACTED
from lookup_audit.collector.otlp.lookup import format_ns, make_id
from lookup_audit.collector.otlp.reading import first_text
from lookup_audit.collector.otlp.spans import Attributes, LogEvent, Span, number_of, text_of
from lookup_audit.schemas.fields import MAX_NAME_LENGTH
from lookup_audit.schemas.names import JudgementSource, JudgementVerdict, RefusalReason

EVALUATION_EVENT: Final = "gen_ai.evaluation.result"
_OPENINFERENCE: Final = re.compile(
    r"(?:(trace|session)\.)?(?:annotations|evaluations)\.(\d{1,4})\.(?:annotation|evaluation)\.(\w+)"
)
# Names of evaluations that ask whether the answer is right, without spaces, dashes and underscores.
CORRECTNESS: Final = frozenset(
    {
        "accuracy",
        "answercorrectness",
        "correct",
        "correctness",
        "qa",
        "qacorrectness",
        "userfeedback",
        "feedback",
        "thumbs",
    }
)
_FEEDBACK: Final = frozenset({"userfeedback", "feedback", "thumbs"})
_LABELS: Final[Mapping[str, JudgementVerdict]] = {
    **dict.fromkeys(("correct", "right", "pass", "passed", "true", "yes", "thumbsup"), "correct"),
    **dict.fromkeys(
        ("incorrect", "wrong", "fail", "failed", "false", "no", "thumbsdown", "hallucinated"),
        "incorrect",
    ),
    **dict.fromkeys(("partly", "partial", "partiallycorrect", "partlycorrect"), "partly"),
}
_REFUSALS: Final = frozenset(get_args(RefusalReason))


@dataclass(frozen=True, slots=True)
class Evaluation:
    """One evaluation as told, in any dialect.

    Args:
        trace_id: Of the evaluated trace, or ``""``.
        span_id: Of the evaluated span, or ``""``.
        time_ns: When it was made.
        name: What was asked.
        label: The answer in a word.
        score: The answer as a number.
        explanation: Why.
        kind: ``HUMAN``, ``LLM``, ``CODE`` or ``""``.
        judge: Who judged.
        key: Tells several of one span apart.
    """

    trace_id: str
    span_id: str
    time_ns: int
    name: str
    label: str = ""
    score: float | None = None
    explanation: str = ""
    kind: str = ""
    judge: str = ""
    key: str = ""


def of_span(span: Span) -> Iterator[Evaluation]:
    """The evaluations that a span carries, as attributes or as events."""
    for event in span.events:
        if event.name == EVALUATION_EVENT:
            time_ns = event.time_ns or span.end_ns
            yield _from_genai(event.attributes, span.trace_id, span.span_id, time_ns)
    told: dict[tuple[str, str], dict[str, Any]] = {}
    for key, value in span.attributes.items():
        # The pattern alone would be tried on every attribute of every span.
        if ".annotation." in key or ".evaluation." in key:
            match = _OPENINFERENCE.fullmatch(key)
            if match:
                told.setdefault((match[1] or "", match[2]), {})[match[3]] = value
    # A carrier made afterwards points at what it judges with its only link.
    target = span.links[0] if len(span.links) == 1 else (span.trace_id, span.span_id)
    for (scope, index), members in told.items():
        yield Evaluation(
            trace_id="" if scope == "session" else target[0],
            span_id=target[1],
            time_ns=span.end_ns,
            name=text_of(members.get("name")),
            label=text_of(members.get("label")),
            score=number_of(members.get("score")),
            explanation=text_of(members.get("explanation")),
            kind=text_of(members.get("annotator_kind")).upper(),
            judge=text_of(members.get("identifier")),
            key=f"{span.span_id}:{scope}:{index}",
        )


def of_logs(logs: Iterable[LogEvent]) -> Iterator[Evaluation]:
    """The evaluations among log records."""
    for log in logs:
        if log.name == EVALUATION_EVENT:
            yield _from_genai(log.attributes, log.trace_id, log.span_id, log.time_ns)


def _from_genai(attributes: Attributes, trace_id: str, span_id: str, time_ns: int) -> Evaluation:
    return Evaluation(
        trace_id=trace_id,
        span_id=span_id,
        time_ns=time_ns,
        name=text_of(attributes.get("gen_ai.evaluation.name")),
        label=text_of(attributes.get("gen_ai.evaluation.score.label")),
        score=number_of(attributes.get("gen_ai.evaluation.score.value")),
        explanation=text_of(attributes.get("gen_ai.evaluation.explanation")),
        key=f"{span_id}:{time_ns}",
    )


def make_judgement(evaluation: Evaluation) -> dict[str, Any] | str:
    """The Judgement of an evaluation, or the reason why it is none."""
    name = _plain(evaluation.name)
    if name not in CORRECTNESS:
        return "evaluation_of_other_kind"
    if not TRACE_ID.fullmatch(evaluation.trace_id) or not 0 < evaluation.time_ns < 2**63:
        return "evaluation_without_trace"
    words = [evaluation.name]
    if evaluation.label:
        words.append(f"label {evaluation.label}")
    if evaluation.score is not None:
        words.append(f"score {evaluation.score:g}")
    comment = ", ".join(words)
    if evaluation.explanation and evaluation.explanation != REDACTED:
        comment = f"{comment}: {evaluation.explanation}"
    judgement: dict[str, Any] = {
        "judgement_id": make_id(
            evaluation.trace_id, evaluation.key, f"judgement:{evaluation.name}"
        ),
        "occurred_at": format_ns(evaluation.time_ns),
        "outcome_id": outcome_id(evaluation.trace_id),
        "verdict": _verdict(evaluation),
        "source": _source(evaluation, name),
        "comment": comment[:4096],
    }
    judge = evaluation.judge or (evaluation.kind.lower() if evaluation.kind else "")
    if judge:
        judgement["judge"] = {"id": judge[:MAX_NAME_LENGTH]}
    return judgement


def outcome_id(trace_id: str) -> str:
    """The id of the answer of a trace."""
    return make_id(trace_id, "", "outcome")


def _plain(text: str) -> str:
    return re.sub(r"[\s_\-.]+", "", text).lower()


def _verdict(evaluation: Evaluation) -> JudgementVerdict:
    """By the label, else by a score of exactly 1 or 0: scores have no common scale."""
    label = _plain(evaluation.label)
    if label:
        return _LABELS.get(label, "cannot_tell")
    score = evaluation.score
    if score is None or not math.isfinite(score):
        return "cannot_tell"
    return "correct" if score == 1 else "incorrect" if score == 0 else "cannot_tell"


def _source(evaluation: Evaluation, name: str) -> JudgementSource:
    """Who judged; the dialects have no word for gold, and a program's word ranks as a model's."""
    if name in _FEEDBACK:
        return "user_feedback"
    return "human" if evaluation.kind == "HUMAN" else "llm"


def make_outcome(spans: Sequence[Span], lookup_ids: Sequence[str]) -> dict[str, Any] | None:
    """The answer of a trace, where our own attributes tell of one; the last to end counts."""
    for span in sorted(spans, key=lambda s: (s.end_ns, s.span_id), reverse=True):
        attributes = span.attributes
        told = attributes.get("lookup_audit.answer.outcome")
        refused = attributes.get("lookup_audit.answer.refused") is True or told == "refused"
        if not refused and told != "answered":
            continue
        outcome: dict[str, Any] = {
            "outcome_id": outcome_id(span.trace_id),
            "occurred_at": format_ns(span.end_ns),
            "trace_id": span.trace_id,
            "lookup_event_ids": list(lookup_ids),
            "action": "refused" if refused else "answered",
        }
        run = first_text(attributes, "session.id", "gen_ai.conversation.id")
        if run:
            outcome["run_id"] = run[:MAX_NAME_LENGTH]
        if refused:
            reason = attributes.get("lookup_audit.answer.refusal.reason")
            is_known = isinstance(reason, str) and reason in _REFUSALS
            outcome["refusal"] = {"reason": reason if is_known else "other"}
        cited = attributes.get("lookup_audit.answer.citation_ids")
        if isinstance(cited, list) and cited:
            ids = [chunk for chunk in cited if isinstance(chunk, str) and 0 < len(chunk) <= 1024]
            outcome["claims"] = [{"cited_chunk_ids": ids}]
        return outcome
    return None


def tells_answer(span: Span) -> bool:
    """Whether a span carries our own answer attributes."""
    return (
        "lookup_audit.answer.outcome" in span.attributes
        or "lookup_audit.answer.refused" in span.attributes
    )
