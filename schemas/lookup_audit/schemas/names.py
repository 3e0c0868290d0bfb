"""The product's public words, each written once: topics, headers, levels, checks, reason codes.

Stages, tables, dashboards and tests import these names, so that a misspelt one is a type error
and not an empty panel. They are a contract with others: add freely, never rename.
"""

from enum import StrEnum
from typing import Final, Literal, get_args


class Topic(StrEnum):
    """Kafka topics."""

    RESULTS = "lookup.results.v1"
    OUTCOMES = "lookup.outcomes.v1"
    ALARMS = "lookup.alarms.v1"
    DEAD_LETTERS = "lookup.dead-letters.v1"


class EventType(StrEnum):
    """CloudEvents types (header ``ce_type``); a breaking change makes a new one."""

    LOOKUP = "lookup_audit.lookup_result.v1"
    OUTCOME = "lookup_audit.answer_outcome.v1"
    JUDGEMENT = "lookup_audit.judgement.v1"


class DriftMetric(StrEnum):
    """Rates that the drift watcher keeps an eye on."""

    PRECISE = "precise_rate"
    MISMATCH = "mismatch_rate"
    REFUSAL = "refusal_rate"
    HIGH_SCORE_ERROR = "high_score_error_rate"
    LOW_SCORE_REFUSAL = "low_score_refusal_rate"


# ``ce_type`` of a DriftAlarm; not an EventType, as nobody may send one in.
ALARM_TYPE: Final = "lookup_audit.drift_alarm.v1"

# Stands for "all of them" in a stratum's key. Never used for a mode.
ALL: Final = "*"


class Header(StrEnum):
    """Kafka record headers: CloudEvents 1.0 binary mode, trace context, dead-letter origin."""

    CONTENT_TYPE = "content-type"
    SPEC_VERSION = "ce_specversion"
    ID = "ce_id"
    SOURCE = "ce_source"
    TYPE = "ce_type"
    TIME = "ce_time"
    RECORDED_TIME = "ce_recordedtime"
    SUBJECT = "ce_subject"
    DATA_SCHEMA = "ce_dataschema"
    TRACE_PARENT = "traceparent"
    TRACE_STATE = "tracestate"
    REDACTION = "lookup-audit-redaction"
    DLQ_REASON = "dlq.reason"
    DLQ_FIELD = "dlq.field"
    DLQ_MESSAGE = "dlq.message"
    DLQ_TOPIC = "dlq.original.topic"
    DLQ_PARTITION = "dlq.original.partition"
    DLQ_OFFSET = "dlq.original.offset"
    DLQ_TIMESTAMP = "dlq.original.timestamp"
    DLQ_ATTEMPT = "dlq.attempt"
    DLQ_VALUE_BYTES = "dlq.value.bytes"


# Value of the header that asks the processor to dead-letter a record without content.
REDACTION_FAILED: Final = "failed"

Mode = Literal["dense", "hybrid", "lexical", "unknown"]
Level = Literal["PRECISE", "HIGHLY_RELEVANT", "REFERENCE", "NONE"]
EvidenceStatus = Literal["EVIDENCE_FOUND", "NO_EVIDENCE"]
Layer = Literal["high", "middle", "low"]
DistanceMetric = Literal["l2", "l2_squared", "cosine_distance"]
RankFallback = Literal["reciprocal", "linear"]
RuleName = Literal["unified-quality/1", "l0-hint/1"]
QualityBasis = Literal["dense_l2", "hybrid_l2", "hybrid_rank"]
CheckStatus = Literal["pass", "fail", "unverifiable"]
CheckName = Literal[
    "level", "quality", "order", "ruleset", "evidence", "projection", "selection", "layer"
]
LevelMismatch = Literal[
    "rounding", "stale_threshold", "wrong_top", "legacy_rule", "level_without_evidence", "rule"
]
Action = Literal["answered", "refused"]
Stance = Literal["firm", "hedged"]
RefusalReason = Literal[
    "insufficient_sources",
    "condition_not_covered",
    "budget_exceeded",
    "low_quality",
    "no_evidence",
    "other",
]
JudgementVerdict = Literal["correct", "incorrect", "partly", "cannot_tell"]
JudgementSource = Literal["gold", "human", "user_feedback", "llm"]

# How an event was told: natively, or read from spans of a dialect.
SourceFormat = Literal[
    "native",
    "otlp/openinference",
    "otlp/genai",
    "otlp/openllmetry",
    "otlp/vector-db",
    "otlp/lookup-audit",
]

SOURCE_FORMATS: Final[frozenset[str]] = frozenset(get_args(SourceFormat))
LEVELS: Final[tuple[Level, ...]] = get_args(Level)
CHECKS: Final[tuple[CheckName, ...]] = get_args(CheckName)
NO_LEVEL: Final[Level] = "NONE"


class Reason(StrEnum):
    """Why an event was refused or dead-lettered: a bounded set, safe as a metric attribute."""

    INVALID_JSON = "invalid_json"
    INVALID_TEXT = "invalid_text"
    NOT_AN_OBJECT = "not_an_object"
    EMPTY_VALUE = "empty_value"
    TOMBSTONE = "tombstone"
    UNKNOWN_TYPE = "unknown_type"
    UNSUPPORTED_VERSION = "unsupported_version"
    MISSING_FIELD = "missing_field"
    WRONG_TYPE = "wrong_type"
    NON_FINITE = "non_finite"
    OUT_OF_RANGE = "out_of_range"
    INVALID_VALUE = "invalid_value"
    CONFLICTING_SPELLINGS = "conflicting_spellings"
    TOO_LARGE = "too_large"
    FUTURE_TIME = "future_time"
    EXPIRED = "expired"
    REJECTED_BY_STORE = "rejected_by_store"
    REDACTION_FAILED = "redaction_failed"
    INTERNAL_ERROR = "internal_error"


class Degradation(StrEnum):
    """What is odd about a stored event without making it unusable."""

    SIMILARITY_CLAMPED = "similarity_clamped"
    DISTANCE_LOOKS_SQUARED = "distance_looks_squared"
    IMPOSSIBLE_DISTANCE = "impossible_distance"
    RRF_ABOVE_MAXIMUM = "rrf_above_maximum"
    DUPLICATE_CANDIDATE = "duplicate_candidate"
    UNIDENTIFIED_CANDIDATE = "unidentified_candidate"
    MISSING_RANK = "missing_rank"
    RERANK_MISMATCH = "rerank_mismatch"
    UNKNOWN_FIELDS = "unknown_fields"
    DOCUMENT_TIME_OUT_OF_RANGE = "document_time_out_of_range"


class SourceDegradation(StrEnum):
    """What a source that is not native could not tell, or only implied."""

    LEVEL_UNKNOWN = "level_unknown"
    MODE_UNKNOWN = "mode_unknown"
    MODE_INFERRED = "mode_inferred"
    MODEL_VERSION_UNKNOWN = "model_version_unknown"
    QUERY_UNKNOWN = "query_unknown"
    QUERY_REDACTED = "query_redacted"
    CANDIDATES_UNKNOWN = "candidates_unknown"
    CANDIDATES_REDACTED = "candidates_redacted"
    CONTENT_UNKNOWN = "content_unknown"
    CONTENT_CUT = "content_cut"
    SCORE_UNKNOWN = "score_unknown"
    SCORE_KIND_UNKNOWN = "score_kind_unknown"
    SCORE_NOT_FINITE = "score_not_finite"
    METADATA_UNPARSABLE = "metadata_unparsable"
    ATTRIBUTES_DROPPED = "attributes_dropped"
    DOCUMENTS_MISSING = "documents_missing"
    VALUE_LIMIT_SUSPECTED = "value_limit_suspected"
    RETRIEVAL_FAILED = "retrieval_failed"
    RETRIEVER_NOT_SEEN = "retriever_not_seen"
    PARENT_NOT_SEEN = "parent_not_seen"
    INSTRUMENTED_TWICE = "instrumented_twice"
