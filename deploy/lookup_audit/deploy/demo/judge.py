"""Gold judgements: whether an answer is right, by the phrases that the gold set names."""

from __future__ import annotations

from collections.abc import Mapping

from lookup_audit.deploy.demo.agent import Quote
from lookup_audit.deploy.demo.corpus import Chunk, flatten
from lookup_audit.deploy.demo.events import SCHEMA_VERSION, Json
from lookup_audit.deploy.demo.gold import GoldQuestion
from lookup_audit.deploy.demo.identifiers import Clock, Identifiers, rfc3339

JUDGE_ID = "handbook-gold"
JUDGE_VERSION = "1"


def verdict(question: GoldQuestion, quote: Quote, chunks: Mapping[str, Chunk]) -> tuple[str, str]:
    """Judge one quoted sentence: the verdict and a comment for the reader.

    Right is a sentence that holds, or is most of, a supporting phrase of the right page and
    version. Partly right is another sentence of a chunk that holds such a phrase.
    """
    if not question.supporting:
        return "incorrect", "The handbook does not answer this question."
    chunk = chunks[quote.chunk_id]
    said = flatten(quote.text)
    here = [s for s in question.supporting if s.is_on(chunk.page)]
    for support in here:
        phrase = flatten(support.phrase)
        if phrase in said or (said in phrase and 2 * len(said) >= len(phrase)):
            return "correct", f"Quotes {support.page}."
    if any(flatten(s.phrase) in flatten(chunk.text) for s in here):
        return "partly", "Quotes a neighbour of the sentence that answers."
    if any(s.page.partition("@")[0] == chunk.page.slug for s in question.supporting) and not here:
        return "incorrect", f"True for version {chunk.page.version}, which was not asked about."
    return "incorrect", "The quoted sentence does not answer the question."


def judgement(
    question: GoldQuestion,
    quote: Quote,
    outcome: Json,
    chunks: Mapping[str, Chunk],
    *,
    ids: Identifiers,
    clock: Clock,
) -> Json:
    """The Judgement event for one answered outcome.

    A refusal gets none: it belongs to the refused column of the cells whatever a judge says.
    """
    decided, comment = verdict(question, quote, chunks)
    return {
        "schema_version": SCHEMA_VERSION,
        "judgement_id": ids.event_id(),
        "occurred_at": rfc3339(clock()),
        "tenant": outcome["tenant"],
        "outcome_id": outcome["outcome_id"],
        "verdict": decided,
        "source": "gold",
        "judge": {"id": JUDGE_ID, "version": JUDGE_VERSION},
        "comment": comment,
    }
