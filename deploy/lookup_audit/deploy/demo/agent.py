"""The demo's agent: asks the retrieval service, then quotes one sentence or refuses.

It decides from the projection alone, as an agent in the field does: the level, and how well the
best sentence of the passages fits the question. It never sees distances or thresholds.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from lookup_audit.deploy.demo.events import SCHEMA_VERSION, Json
from lookup_audit.deploy.demo.identifiers import Clock, Identifiers, rfc3339

ANSWER_MODEL = "extractive-minilm@1"

# How well the best sentence must fit before it is quoted, by what the level promises. A PRECISE
# level is trusted almost blindly, as most prompts teach; without a level only a near match will do.
# Set by hand on the gold set, so that both answers and refusals occur at every level.
FIRM_SUPPORT = 0.38
HEDGED_SUPPORT = 0.42
UNLEVELLED_SUPPORT = 0.54
# A NONE whose best sentence is this near to being quoted is worth a second lookup.
FOLLOW_UP_SUPPORT = 0.44

MIN_SENTENCE_WORDS = 4

Support = Callable[[str, str], float]
Ask = Callable[[str, str | None, str, str], tuple[Json, str]]

_STOP_WORDS = frozenset(
    re.findall(
        r"\w+",
        """
        a an and are as at be by can do does for from has have how i if in is it its me my of on or
        our should so that the their there they this to was we what when where which who why will
        with you your
        """,
    )
)


@dataclass(frozen=True, slots=True)
class Quote:
    """A sentence of a returned passage that may serve as the answer."""

    text: str
    chunk_id: str
    source_url: str | None
    support: float


@dataclass(frozen=True, slots=True)
class Decision:
    """What the agent does with what it found."""

    action: str
    stance: str | None = None
    quote: Quote | None = None
    refusal_reason: str | None = None
    refusal_text: str | None = None


def words(text: str) -> set[str]:
    """The content words of a text, lower-cased.

    >>> sorted(words("What is the default port?"))
    ['default', 'port']
    """
    return set(re.findall(r"[a-z0-9_]+", text.lower())) - _STOP_WORDS


def sentences(passage: str) -> list[str]:
    """The sentences of a passage, each a verbatim piece of it.

    >>> sentences("It listens on 4318. Change it with `--port`.")
    ['It listens on 4318.', 'Change it with `--port`.']
    """
    found: list[str] = []
    for line in passage.split("\n"):
        pieces = re.split(r"(?<=[.!?])\s+(?=[A-Z`\"(])", line)
        found.extend(piece.strip() for piece in pieces)
    return [s for s in found if len(s.split()) >= MIN_SENTENCE_WORDS]


def sentence_support(similarity: Support) -> Support:
    """Mix the similarity of question and sentence with the share of the question's words in it."""

    def support(question: str, sentence: str) -> float:
        asked = words(question)
        shared = len(asked & words(sentence)) / len(asked) if asked else 0.0
        return 0.75 * similarity(question, sentence) + 0.25 * shared

    return support


def best_quote(question: str, evidence: Iterable[Json], support: Support) -> Quote | None:
    """The best sentence of all passages, the earlier passage first among equals."""
    quotes = [
        Quote(
            sentence, str(item["document_id"]), item.get("source_url"), support(question, sentence)
        )
        for item in evidence
        for sentence in sentences(str(item["excerpt"]))
    ]
    return max(quotes, key=lambda quote: quote.support, default=None)


def decide(question: str, answer: Json, support: Support) -> Decision:
    """Answer with one sentence, or refuse with the reason."""
    quote = best_quote(question, answer["evidence"], support)
    if quote is None:
        return _refusal("no_evidence", "The knowledge base returned nothing that may be cited.")
    level = answer["relevance_level"]
    if level == "PRECISE":
        if quote.support >= FIRM_SUPPORT:
            return Decision("answered", "firm", quote)
        return _refusal("condition_not_covered", "The passages do not cover what was asked.")
    if level is None:
        if quote.support >= UNLEVELLED_SUPPORT:
            return Decision("answered", "hedged", quote)
        return _refusal("low_quality", "Nothing that was found is near enough to the question.")
    if quote.support >= HEDGED_SUPPORT:
        return Decision("answered", "hedged", quote)
    return _refusal("insufficient_sources", "The passages touch the subject without an answer.")


def _refusal(reason: str, text: str) -> Decision:
    return Decision("refused", refusal_reason=reason, refusal_text=text)


def worth_follow_up(decision: Decision, answer: Json, question: str, support: Support) -> bool:
    """Whether a refusal was so near that other words may help."""
    if decision.action != "refused" or answer["relevance_level"] is not None:
        return False
    quote = best_quote(question, answer["evidence"], support)
    return quote is not None and quote.support >= FOLLOW_UP_SUPPORT


def keywords_only(question: str) -> str:
    """The question without its function words, in order: the agent's second attempt.

    >>> keywords_only("How do I change the port of the collector?")
    'change port collector'
    """
    return " ".join(
        w for w in re.findall(r"[A-Za-z0-9_\-]+", question) if w.lower() not in _STOP_WORDS
    )


class Agent:
    """Runs one question at a time: one lookup, at times a second, one outcome."""

    def __init__(
        self, ask: Ask, support: Support, *, tenant: str, ids: Identifiers, clock: Clock
    ) -> None:
        self._ask = ask
        self._support = support
        self._tenant = tenant
        self._ids = ids
        self._clock = clock

    def run(self, question: str, category: str | None) -> tuple[Json, Decision]:
        """Ask, decide, and give the AnswerOutcome event with the decision behind it."""
        run_id = self._ids.short("run")
        answer, event_id = self._ask(question, category, run_id, self._ids.short("call"))
        event_ids = [event_id]
        decision = decide(question, answer, self._support)
        if worth_follow_up(decision, answer, question, self._support):
            answer, event_id = self._ask(
                keywords_only(question), None, run_id, self._ids.short("call")
            )
            event_ids.append(event_id)
            decision = decide(question, answer, self._support)
        return self._outcome(run_id, event_ids, decision), decision

    def _outcome(self, run_id: str, event_ids: Sequence[str], decision: Decision) -> Json:
        claims: list[dict[str, Any]] = []
        if decision.quote is not None:
            url = decision.quote.source_url
            claims.append(
                {
                    "claim_id": "c1",
                    "text": decision.quote.text,
                    "cited_chunk_ids": [decision.quote.chunk_id],
                    "cited_source_urls": [url] if url else [],
                }
            )
        refusal = None
        if decision.action == "refused":
            refusal = {"reason": decision.refusal_reason, "text": decision.refusal_text}
        return {
            "schema_version": SCHEMA_VERSION,
            "outcome_id": self._ids.event_id(),
            "occurred_at": rfc3339(self._clock()),
            "tenant": self._tenant,
            "run_id": run_id,
            "lookup_event_ids": list(event_ids),
            "action": decision.action,
            "stance": decision.stance,
            "claims": claims,
            "refusal": refusal,
            "answer_model": ANSWER_MODEL,
        }
