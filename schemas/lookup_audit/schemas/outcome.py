"""AnswerOutcome and Judgement: what was done with a lookup, and whether the answer was right."""

from typing import Annotated

from pydantic import Field

from lookup_audit.schemas.fields import ChunkId, Id, Instant, Name, Record
from lookup_audit.schemas.lookup import SchemaVersion
from lookup_audit.schemas.names import (
    Action,
    JudgementSource,
    JudgementVerdict,
    RefusalReason,
    Stance,
)


class Claim(Record):
    """One statement of the answer with what it cites."""

    claim_id: Name | None = None
    text: str | None = None
    cited_chunk_ids: tuple[ChunkId, ...] | None = None
    cited_source_urls: tuple[str, ...] | None = None


class Refusal(Record):
    """Why no answer was given, and the words the user saw."""

    reason: RefusalReason | None = None
    text: str | None = None


class AnswerOutcome(Record):
    """What an agent did with one or more lookups of a run."""

    schema_version: SchemaVersion | None = None
    outcome_id: Id
    occurred_at: Instant
    tenant: Name | None = None
    run_id: Name | None = None
    trace_id: Name | None = None
    lookup_event_ids: Annotated[tuple[Id, ...], Field(min_length=1)]
    action: Action
    stance: Stance | None = None
    claims: tuple[Claim, ...] | None = None
    refusal: Refusal | None = None
    answer_model: Name | None = None
    degradations: tuple[Name, ...] | None = Field(
        default=None, description="what was redacted, such as redacted:claims.*.text"
    )


class Judge(Record):
    """Who judged: a person, a model or a gold set, with its version."""

    id: Name | None = None
    version: Name | None = None


class Judgement(Record):
    """Whether an answer was right, by whom and when. Several of one answer are all kept."""

    schema_version: SchemaVersion | None = None
    judgement_id: Id
    occurred_at: Instant
    tenant: Name | None = None
    outcome_id: Id
    verdict: JudgementVerdict
    source: JudgementSource
    judge: Judge | None = None
    comment: str | None = None
    degradations: tuple[Name, ...] | None = Field(
        default=None, description="what was redacted, such as redacted:comment"
    )
