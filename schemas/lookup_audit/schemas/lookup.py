"""LookupResult: everything a retrieval service knew about one call of its lookup tool.

The agent that called saw only the ``projection``. Required are ``event_id``, ``occurred_at``,
``mode``, ``model_version``, ``candidates`` and each candidate's ``original_rank``; everything else
is unknown when absent or null.
"""

import re
from typing import Annotated

from pydantic import (
    AfterValidator,
    AliasChoices,
    BeforeValidator,
    Field,
    WithJsonSchema,
    model_validator,
)
from pydantic_core import PydanticCustomError

from lookup_audit.schemas.fields import (
    MAX_NAME_LENGTH,
    ChunkId,
    Count,
    Finite,
    Id,
    Instant,
    Name,
    NonNegative,
    Opaque,
    Rank,
    Record,
    Similarity,
    Unit,
)
from lookup_audit.schemas.names import (
    DistanceMetric,
    EvidenceStatus,
    Layer,
    Level,
    Mode,
    RankFallback,
    RuleName,
)

SCHEMA_VERSION = "1.0"
_VERSION = r"^1(\.[0-9]{1,9})*$"
_SUPPORTED = re.compile(_VERSION)


def is_supported(version: str) -> bool:
    """Whether a schema version is 1 or 1.x; another major version has another meaning.

    >>> is_supported("1.4"), is_supported("2.0"), is_supported("1.next")
    (True, False, False)
    """
    return _SUPPORTED.fullmatch(version) is not None


def requires_rank(version: str | None) -> bool:
    """Whether events of a supported version must give every candidate's rank.

    A newer producer may have renamed the field: its events stay, the rank is unknown.

    >>> requires_rank("1.0"), requires_rank("1.1")
    (True, False)
    """
    if version is None or version == SCHEMA_VERSION:
        return True
    parts = version.split(".")
    return len(parts) < 2 or not parts[1].strip("0")


def _check_version(version: str) -> str:
    if not is_supported(version):
        raise PydanticCustomError(
            "unsupported_version",
            "schema_version {version} is not supported; send 1.x",
            {"version": version},
        )
    return version


SchemaVersion = Annotated[
    Name,
    AfterValidator(_check_version),
    WithJsonSchema({"type": "string", "pattern": _VERSION, "maxLength": MAX_NAME_LENGTH}),
]


class Service(Record):
    """The retrieval service that made the lookup; ``sequence`` counts its events per instance."""

    name: Name | None = None
    version: Name | None = None
    instance_id: Name | None = None
    sequence: Count | None = None


class Query(Record):
    """What was searched for. A plain string is taken as its text."""

    text: str | None = None
    language: Name | None = None


class Versions(Record):
    """Versions beside the model's own."""

    reranker: Name | None = None
    index: Name | None = None
    chunker: Name | None = None
    answer_model: Name | None = None


class Thresholds(Record):
    """The rules the service says it used. Absent members take the ruleset's defaults."""

    rule: RuleName | None = None
    max_l2_distance: Annotated[float, Field(allow_inf_nan=False, gt=0)] | None = None
    highly_relevant_threshold: Finite | None = None
    reference_threshold: Finite | None = None
    distance_metric: DistanceMetric | None = None
    normalized: bool | None = None
    rank_fallback: RankFallback | None = None
    high_layer_similarity: Finite | None = None
    middle_layer_similarity: Finite | None = None


class Route(Record):
    """One retrieval route and what it found."""

    name: Name | None = None
    hits: Count | None = None
    latency_ms: NonNegative | None = None


class Fusion(Record):
    """How several routes became one ranking."""

    method: Name | None = None
    k: NonNegative | None = None


class RetrievalTrace(Record):
    """Routes, fusion and filters of the retrieval."""

    routes: tuple[Route, ...] | None = None
    fusion: Fusion | None = None
    category_filter: Name | None = None
    unfiltered_retry: bool | None = None


class Move(Record):
    """What the reranker did to one chunk. The id decides; an index into a list never does."""

    chunk_id: ChunkId | None = None
    rank_before: Rank | None = None
    rank_after: Rank | None = None
    score: Finite | None = None


class RerankTrace(Record):
    """The reranker's moves."""

    model: Name | None = None
    latency_ms: NonNegative | None = None
    moves: tuple[Move, ...] | None = None


class Candidate(Record):
    """One retrieved chunk with every score it got on the way; dropped ones are kept too."""

    chunk_id: ChunkId | None = None
    document_id: ChunkId | None = None
    document_version: Name | None = None
    document_updated_at: Instant | None = None
    source: str | None = None
    source_url: str | None = None
    title: str | None = None
    breadcrumb: str | None = None
    excerpt: str | None = None
    original_rank: Rank | None = Field(
        default=None, description="1-based authority on order; required in schema version 1.0"
    )
    score: Finite | None = None
    score_label: Name | None = None
    dense_distance: NonNegative | None = None
    rrf_score: NonNegative | None = None
    rerank_score: Finite | None = None
    similarity_score: Similarity | None = None
    quality_score: Unit | None = None
    hit_reasons: tuple[str, ...] | None = None
    tokens: Count | None = None
    layer: Layer | None = None
    kept: bool | None = None
    drop_reason: str | None = None
    metadata: str | None = Field(
        default=None, description="the source's own metadata of the chunk, as the text it came in"
    )


class ContextBudget(Record):
    """Tokens allowed for and used by the selected chunks."""

    limit_tokens: Count | None = None
    used_tokens: Count | None = None


class ProjectedEvidence(Record):
    """One piece of evidence as the agent saw it; ``document_id`` names the chunk it cites."""

    document_id: ChunkId | None = None
    source: str | None = None
    source_url: str | None = None
    title: str | None = None
    breadcrumb: str | None = None
    excerpt: str | None = None


class Projection(Record):
    """The whole of what the agent saw."""

    evidence_status: EvidenceStatus | None = None
    tool_call_id: Name | None = None
    query: str | None = None
    evidence: tuple[ProjectedEvidence, ...] | None = None
    returned_count: Count | None = None
    relevance_level: Level | None = None
    truncated: bool | None = None
    completeness_hint: str | None = None


class Origin(Record):
    """Where an event that was not sent natively was read from, and what is known to be missing."""

    scope: Name | None = None
    scope_version: Name | None = None
    data_source: Name | None = None
    failure: str | None = None
    dropped_attributes: Count | None = None
    missing_documents: Count | None = None


def _query_of_text(value: object) -> object:
    return Query(text=value) if isinstance(value, str) else value


class LookupResult(Record):
    """One call of the lookup tool, whole.

    Raises:
        ValidationError: With the path of every field that is missing, of the wrong type, out of
            range or given in two spellings with different values.
    """

    schema_version: SchemaVersion | None = None
    event_id: Id
    occurred_at: Instant
    tenant: Name | None = None
    service: Service | None = None
    trace_id: Name | None = None
    span_id: Name | None = None
    run_id: Name | None = None
    tool_call_id: Name | None = None
    query: Annotated[
        Query | None, BeforeValidator(_query_of_text, json_schema_input_type=Query | str | None)
    ] = None
    mode: Mode
    model_version: Annotated[str, Field(min_length=1, max_length=256)]
    versions: Versions | None = None
    top_k: Count | None = None
    thresholds: Thresholds | None = None
    retrieval_trace: RetrievalTrace | None = None
    rerank_trace: RerankTrace | None = None
    candidates: Annotated[
        tuple[Candidate, ...],
        Field(
            validation_alias=AliasChoices("candidates", "evidence_blocks", "evidenceBlocks"),
        ),
    ]
    selected_chunk_ids: tuple[ChunkId, ...] | None = None
    context_budget: ContextBudget | None = None
    context_pack: Opaque = None
    quality_score: Unit | None = None
    top_similarity: Similarity | None = None
    relevance_level: Level | None = None
    evidence_status: EvidenceStatus | None = None
    returned_count: Count | None = None
    truncated: bool | None = None
    completeness_hint: str | None = None
    projection: Projection | None = None
    latency_ms: NonNegative | None = None
    source_format: Name | None = Field(
        default=None, description="how the event was told, such as otlp/openinference; else native"
    )
    degradations: tuple[Name, ...] | None = Field(
        default=None, description="what the source could not tell or only implied"
    )
    origin: Origin | None = None

    @model_validator(mode="after")
    def _ranks_are_given(self) -> "LookupResult":
        if requires_rank(self.schema_version):
            for index, candidate in enumerate(self.candidates):
                if candidate.original_rank is None:
                    raise PydanticCustomError(
                        "missing",
                        "original_rank is required in every candidate (1-based)",
                        {"field": f"candidates[{index}].original_rank"},
                    )
        return self
