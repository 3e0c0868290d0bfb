"""Hypothesis strategies of valid events: every optional member may be there, null or absent."""

from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from lookup_audit.schemas.names import LEVELS, SourceDegradation
from tests.support.events import Event


def examples(count: int) -> settings:
    """Settings of a property test: no deadline, since a busy machine is no failure."""
    return settings(max_examples=count, deadline=None, suppress_health_check=[HealthCheck.too_slow])


TEXT = st.text(st.characters(codec="utf-8"), max_size=12)
IDS = st.text(st.characters(codec="utf-8"), min_size=1, max_size=12) | st.sampled_from("abc")
FINITE = st.floats(allow_nan=False, allow_infinity=False)
NON_NEGATIVE = st.floats(min_value=0, allow_infinity=False)
UNIT = st.floats(min_value=0, max_value=1)
SIMILARITY = st.floats(min_value=-1, max_value=1)
COUNTS = st.integers(min_value=0, max_value=2**53)
RANKS = st.integers(min_value=1, max_value=9) | st.integers(min_value=1, max_value=2**31)
DISTANCES = st.floats(min_value=0, max_value=2.5) | NON_NEGATIVE
INSTANTS = st.builds(
    "{}{}{}".format,
    st.datetimes().map(lambda moment: moment.strftime("%Y").zfill(4) + moment.isoformat()[4:19]),
    st.just("") | st.from_regex(r"\.[0-9]{1,9}", fullmatch=True),
    st.sampled_from(["Z", "+00:00", "-00:00", "+05:30", "-11:45"]),
)
SAFE_INSTANTS = INSTANTS.filter(lambda text: "0001" < text[:4] < "9999")


def members(**optional: st.SearchStrategy[Any]) -> st.SearchStrategy[Event]:
    """An object whose every member may be given, null or absent."""
    return st.fixed_dictionaries({}, optional={k: v | st.none() for k, v in optional.items()})


def thresholds() -> st.SearchStrategy[Event]:
    """What an event may state as its thresholds."""
    return members(
        rule=st.sampled_from(["unified-quality/1", "l0-hint/1"]),
        max_l2_distance=st.floats(min_value=0, exclude_min=True, allow_infinity=False),
        highly_relevant_threshold=UNIT | FINITE,
        reference_threshold=UNIT | FINITE,
        distance_metric=st.sampled_from(["l2", "l2_squared", "cosine_distance"]),
        normalized=st.booleans(),
        rank_fallback=st.sampled_from(["reciprocal", "linear"]),
        high_layer_similarity=FINITE,
        middle_layer_similarity=FINITE,
    )


def candidates() -> st.SearchStrategy[Event]:
    """A candidate with a rank and anything else."""
    optional = members(
        chunk_id=IDS,
        document_id=IDS,
        document_version=TEXT,
        document_updated_at=SAFE_INSTANTS,
        source_url=TEXT,
        breadcrumb=TEXT,
        excerpt=TEXT,
        score=FINITE,
        dense_distance=DISTANCES,
        rrf_score=NON_NEGATIVE,
        rerank_score=FINITE,
        similarity_score=SIMILARITY,
        quality_score=UNIT,
        hit_reasons=st.lists(st.sampled_from(["l0:keyword:x", "dense", ""]), max_size=2),
        tokens=COUNTS,
        layer=st.sampled_from(["high", "middle", "low"]),
        kept=st.booleans(),
        drop_reason=st.sampled_from(["", "budget"]),
        metadata=TEXT,
    )
    return st.builds(lambda rank, rest: {"original_rank": rank} | rest, RANKS, optional)


def lookups() -> st.SearchStrategy[Event]:
    """A valid lookup of any shape, in canonical spelling."""
    levels = st.sampled_from(LEVELS)
    status = st.sampled_from(["EVIDENCE_FOUND", "NO_EVIDENCE"])
    required = st.fixed_dictionaries(
        {
            "event_id": IDS,
            "occurred_at": SAFE_INSTANTS,
            "mode": st.sampled_from(["dense", "hybrid", "lexical", "unknown"]),
            "model_version": IDS,
            "candidates": st.lists(candidates(), max_size=3),
        }
    )
    move = members(chunk_id=IDS, rank_before=RANKS, rank_after=RANKS, score=FINITE)
    evidence = members(document_id=IDS, excerpt=TEXT)
    optional = members(
        schema_version=st.sampled_from(["1.0", "1", "1.7"]),
        tenant=TEXT,
        service=members(name=TEXT, sequence=COUNTS),
        trace_id=TEXT,
        query=members(text=TEXT, language=TEXT),
        top_k=COUNTS,
        thresholds=thresholds(),
        retrieval_trace=members(
            routes=st.lists(members(name=TEXT, hits=COUNTS), max_size=2),
            fusion=members(method=TEXT, k=NON_NEGATIVE),
            unfiltered_retry=st.booleans(),
        ),
        rerank_trace=members(model=TEXT, moves=st.lists(move, max_size=3)),
        selected_chunk_ids=st.lists(IDS, max_size=3),
        context_budget=members(limit_tokens=COUNTS, used_tokens=COUNTS),
        context_pack=st.recursive(
            st.none() | st.booleans() | FINITE | st.integers() | TEXT,
            lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXT, inner, max_size=2),
            max_leaves=5,
        ),
        quality_score=UNIT,
        top_similarity=SIMILARITY,
        relevance_level=levels,
        evidence_status=status,
        returned_count=st.integers(0, 4),
        truncated=st.booleans(),
        projection=members(
            evidence_status=status,
            evidence=st.lists(evidence, max_size=2),
            returned_count=st.integers(0, 4),
            relevance_level=levels,
            query=TEXT,
        ),
        latency_ms=NON_NEGATIVE,
        source_format=st.sampled_from(["otlp/genai", "otlp/openinference", "other"]),
        degradations=st.lists(st.sampled_from([*SourceDegradation, "other"]), max_size=3),
        origin=members(scope=TEXT, dropped_attributes=COUNTS, missing_documents=COUNTS),
    )
    return st.builds(lambda one, other: one | other, required, optional)
