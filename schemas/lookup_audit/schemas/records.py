"""The lean twins of the event models, decoded at C speed; every rule and column reads these.

Validating one 9 kB lookup into pydantic models takes three times as long as into these structs,
and no stage needs more. The models stay the contract: a struct is filled only from an event the
models accept, with equal values (``tests/unit/schemas/test_decode.py`` holds both to it). Times
are RFC 3339 text in UTC or with their offset, since most of them only travel into a column.

Field meanings are in :mod:`lookup_audit.schemas.lookup` and :mod:`lookup_audit.schemas.outcome`.
"""

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from lookup_audit.schemas.names import (
    Action,
    DistanceMetric,
    EvidenceStatus,
    JudgementSource,
    JudgementVerdict,
    Layer,
    Level,
    Mode,
    RankFallback,
    RefusalReason,
    RuleName,
    Stance,
)

# Its form is checked by :mod:`lookup_audit.schemas.decode`, where a time seen before costs nothing.
Instant = Annotated[str, Meta(max_length=32, extra_json_schema={"format": "date-time"})]
Id = Annotated[str, Meta(min_length=1, max_length=128)]
ChunkId = Annotated[str, Meta(min_length=1, max_length=1024)]
Name = Annotated[str, Meta(max_length=256)]
NonNegative = Annotated[float, Meta(ge=0)]
Positive = Annotated[float, Meta(gt=0)]
Unit = Annotated[float, Meta(ge=0, le=1)]
Similarity = Annotated[float, Meta(ge=-1, le=1)]
Count = Annotated[int, Meta(ge=0, le=2**53)]
Rank = Annotated[int, Meta(ge=1, le=2**31)]


class Struct(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """Base of the twins: an unknown or camelCase key sends the event through the models."""


class Service(Struct):
    """Twin of the model of the same name."""

    name: Name | None = None
    version: Name | None = None
    instance_id: Name | None = None
    sequence: Count | None = None


class Query(Struct):
    """Twin of the model of the same name."""

    text: str | None = None
    language: Name | None = None


class Versions(Struct):
    """Twin of the model of the same name."""

    reranker: Name | None = None
    index: Name | None = None
    chunker: Name | None = None
    answer_model: Name | None = None


class Thresholds(msgspec.Struct, forbid_unknown_fields=True, gc=False, frozen=True):
    """Twin of the model of the same name; hashable, since most events share a few."""

    rule: RuleName | None = None
    max_l2_distance: Positive | None = None
    highly_relevant_threshold: float | None = None
    reference_threshold: float | None = None
    distance_metric: DistanceMetric | None = None
    normalized: bool | None = None
    rank_fallback: RankFallback | None = None
    high_layer_similarity: float | None = None
    middle_layer_similarity: float | None = None


class Route(Struct):
    """Twin of the model of the same name."""

    name: Name | None = None
    hits: Count | None = None
    latency_ms: NonNegative | None = None


class Fusion(Struct):
    """Twin of the model of the same name."""

    method: Name | None = None
    k: NonNegative | None = None


class RetrievalTrace(Struct):
    """Twin of the model of the same name."""

    routes: list[Route] | None = None
    fusion: Fusion | None = None
    category_filter: Name | None = None
    unfiltered_retry: bool | None = None


class Move(Struct):
    """Twin of the model of the same name."""

    chunk_id: ChunkId | None = None
    rank_before: Rank | None = None
    rank_after: Rank | None = None
    score: float | None = None


class RerankTrace(Struct):
    """Twin of the model of the same name."""

    model: Name | None = None
    latency_ms: NonNegative | None = None
    moves: list[Move] | None = None


class Candidate(Struct):
    """Twin of the model of the same name."""

    chunk_id: ChunkId | None = None
    document_id: ChunkId | None = None
    document_version: Name | None = None
    document_updated_at: Instant | None = None
    source: str | None = None
    source_url: str | None = None
    title: str | None = None
    breadcrumb: str | None = None
    excerpt: str | None = None
    original_rank: Rank | None = None
    score: float | None = None
    score_label: Name | None = None
    dense_distance: NonNegative | None = None
    rrf_score: NonNegative | None = None
    rerank_score: float | None = None
    similarity_score: Similarity | None = None
    quality_score: Unit | None = None
    hit_reasons: list[str] | None = None
    tokens: Count | None = None
    layer: Layer | None = None
    kept: bool | None = None
    drop_reason: str | None = None
    metadata: str | None = None


class ContextBudget(Struct):
    """Twin of the model of the same name."""

    limit_tokens: Count | None = None
    used_tokens: Count | None = None


class ProjectedEvidence(Struct):
    """Twin of the model of the same name."""

    document_id: ChunkId | None = None
    source: str | None = None
    source_url: str | None = None
    title: str | None = None
    breadcrumb: str | None = None
    excerpt: str | None = None


class Projection(Struct):
    """Twin of the model of the same name."""

    evidence_status: EvidenceStatus | None = None
    tool_call_id: Name | None = None
    query: str | None = None
    evidence: list[ProjectedEvidence] | None = None
    returned_count: Count | None = None
    relevance_level: Level | None = None
    truncated: bool | None = None
    completeness_hint: str | None = None


class Origin(Struct):
    """Twin of the model of the same name."""

    scope: Name | None = None
    scope_version: Name | None = None
    data_source: Name | None = None
    failure: str | None = None
    dropped_attributes: Count | None = None
    missing_documents: Count | None = None


class LookupResult(Struct, kw_only=True):
    """Twin of the model of the same name."""

    schema_version: Name | None = None
    event_id: Id
    occurred_at: Instant
    tenant: Name | None = None
    service: Service | None = None
    trace_id: Name | None = None
    span_id: Name | None = None
    run_id: Name | None = None
    tool_call_id: Name | None = None
    query: Query | None = None
    mode: Mode
    model_version: Annotated[str, Meta(min_length=1, max_length=256)]
    versions: Versions | None = None
    top_k: Count | None = None
    thresholds: Thresholds | None = None
    retrieval_trace: RetrievalTrace | None = None
    rerank_trace: RerankTrace | None = None
    candidates: list[Candidate]
    selected_chunk_ids: list[ChunkId] | None = None
    context_budget: ContextBudget | None = None
    context_pack: Any = None
    quality_score: Unit | None = None
    top_similarity: Similarity | None = None
    relevance_level: Level | None = None
    evidence_status: EvidenceStatus | None = None
    returned_count: Count | None = None
    truncated: bool | None = None
    completeness_hint: str | None = None
    projection: Projection | None = None
    latency_ms: NonNegative | None = None
    source_format: Name | None = None
    degradations: list[Name] | None = None
    origin: Origin | None = None


class Claim(Struct):
    """Twin of the model of the same name."""

    claim_id: Name | None = None
    text: str | None = None
    cited_chunk_ids: list[ChunkId] | None = None
    cited_source_urls: list[str] | None = None


class Refusal(Struct):
    """Twin of the model of the same name."""

    reason: RefusalReason | None = None
    text: str | None = None


class AnswerOutcome(Struct, kw_only=True):
    """Twin of the model of the same name."""

    schema_version: Name | None = None
    outcome_id: Id
    occurred_at: Instant
    tenant: Name | None = None
    run_id: Name | None = None
    trace_id: Name | None = None
    lookup_event_ids: Annotated[list[Id], Meta(min_length=1)]
    action: Action
    stance: Stance | None = None
    claims: list[Claim] | None = None
    refusal: Refusal | None = None
    answer_model: Name | None = None
    degradations: list[Name] | None = None


class Judge(Struct):
    """Twin of the model of the same name."""

    id: Name | None = None
    version: Name | None = None


class Judgement(Struct, kw_only=True):
    """Twin of the model of the same name."""

    schema_version: Name | None = None
    judgement_id: Id
    occurred_at: Instant
    tenant: Name | None = None
    outcome_id: Id
    verdict: JudgementVerdict
    source: JudgementSource
    judge: Judge | None = None
    comment: str | None = None
    degradations: list[Name] | None = None


EventRecord = LookupResult | AnswerOutcome | Judgement
