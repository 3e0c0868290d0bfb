"""The one-pass audit and the full rules say the same of every lookup."""

import copy
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import event as note
from hypothesis import given
from hypothesis import strategies as st

from lookup_audit.schemas.decode import LOOKUPS, Decoded
from lookup_audit.schemas.plain import plain
from lookup_audit.schemas.ruleset import DEFAULT_RULESET, Registry, Ruleset
from lookup_audit.schemas.verdict import audit, audit_fully
from tests.support.audits import DEFAULT_REGISTRY, NO_REGISTRY, accepted, registry_of
from tests.support.events import Event, encode, make_candidate, make_lookup
from tests.support.strategies import examples, lookups

REGISTRIES = (
    DEFAULT_REGISTRY,
    NO_REGISTRY,
    registry_of(Ruleset(normalized=True)),
    registry_of(Ruleset(highly_relevant_threshold=0.9), DEFAULT_RULESET),
    registry_of(Ruleset(rule="l0-hint/1", rank_fallback="linear")),
    registry_of(Ruleset(distance_metric="cosine_distance")),
    registry_of(Ruleset(reference_threshold=0.9)),
)
VALUES = st.sampled_from(
    [None, "", "x", "doc-1", "doc-1#chunk-0", "doc-2#chunk-0", "low", "middle", "PRECISE"]
    + ["NO_EVIDENCE", "hybrid", "dense", "lexical", "l2_squared", "1899-01-01T00:00:00Z"]
    + [True, False, 0, 1, 2, 3, 0.5, 0.75, 0.795, 0.82, 1e-7, 0.41, 1.9999, 2.5, 100]
    + [[], ["doc-1#chunk-0"], ["doc-2#chunk-0", "doc-1#chunk-0"], ["l0:keyword:x"]]
)


def paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every member of an event, however deep."""
    members = value.items() if isinstance(value, dict) else enumerate(value)
    for key, member in members:
        yield (*path, key)
        if isinstance(member, (dict, list)):
            yield from paths(member, (*path, key))


@st.composite
def ordinary(draw: st.DrawFn) -> Event:
    """A lookup that passes, or nearly."""
    distances = sorted(draw(st.lists(st.floats(0.05, 1.95), min_size=1, max_size=4)))
    hybrid = draw(st.booleans())
    candidates = [
        make_candidate(
            original_rank=rank,
            dense_distance=distance,
            kept=kept,
            drop_reason=None if kept else "budget",
        )
        for rank, (distance, kept) in enumerate(
            zip(distances, draw(st.lists(st.booleans(), min_size=4, max_size=4)), strict=False), 1
        )
    ]
    made = make_lookup(candidates=candidates, mode="hybrid" if hybrid else "dense")
    if draw(st.booleans()):
        moves = [{"chunk_id": c["chunk_id"]} for c in candidates if c["kept"]]
        made["rerank_trace"] = {"moves": moves}
    if draw(st.booleans()):
        made["retrieval_trace"]["fusion"] = {"method": "rrf", "k": 60}
    return made


@st.composite
def nearly_ordinary(draw: st.DrawFn) -> Event:
    """One whose few members were set to something else."""
    made = copy.deepcopy(draw(ordinary()))
    for _ in range(draw(st.integers(0, 3))):
        *way, last = draw(st.sampled_from(list(paths(made))))
        inner: Any = made
        for key in way:
            inner = inner[key]
        # A copy: the same list put into itself would have no end.
        inner[last] = copy.deepcopy(draw(VALUES))
    return made


@given(nearly_ordinary(), st.sampled_from(REGISTRIES))
@examples(1500)
def test_a_lookup_that_deviates_a_little_gets_the_full_rules_verdict(
    event: Event, registry: Registry
) -> None:
    decoded = LOOKUPS.decode(encode(event))
    if isinstance(decoded, Decoded):
        note(f"plain: {plain(decoded.record, registry) is not None}")
        assert audit(decoded, registry) == audit_fully(decoded, registry)


@given(lookups(), st.sampled_from(REGISTRIES))
@examples(300)
def test_any_lookup_gets_the_full_rules_verdict(event: Event, registry: Registry) -> None:
    decoded = accepted(event)
    assert audit(decoded, registry) == audit_fully(decoded, registry)


@pytest.mark.parametrize("registry", [DEFAULT_REGISTRY, NO_REGISTRY])
@pytest.mark.parametrize("mode", ["dense", "hybrid"])
def test_an_ordinary_lookup_needs_one_pass(mode: str, registry: Registry) -> None:
    assert plain(accepted(make_lookup(mode=mode)).record, registry) is not None


def test_a_chunk_that_was_dropped_before_it_was_kept_is_a_duplicate() -> None:
    dropped = make_candidate(kept=False, drop_reason="budget")
    kept = make_candidate(original_rank=2) | {"chunk_id": dropped["chunk_id"]}
    decoded = accepted(make_lookup(candidates=[dropped, kept]))
    assert audit(decoded, DEFAULT_REGISTRY) == audit_fully(decoded, DEFAULT_REGISTRY)
    assert audit(decoded, DEFAULT_REGISTRY).duplicates == [False, True]


@pytest.mark.parametrize("mode", ["lexical", "unknown"])
def test_a_mode_without_a_rule_is_left_to_the_full_rules(mode: str) -> None:
    decoded = accepted(make_lookup(mode=mode))
    assert plain(decoded.record, DEFAULT_REGISTRY) is None
    assert audit(decoded, DEFAULT_REGISTRY) == audit_fully(decoded, DEFAULT_REGISTRY)


@pytest.mark.parametrize(
    ("distance", "similarity"),
    [
        pytest.param(0.5, 0.75, id="only as a square does it fit the cosine"),
        pytest.param(2.5, -1.0, id="farther than unit vectors can be"),
    ],
)
def test_a_distance_no_unit_vectors_have_is_left_to_the_full_rules(
    distance: float, similarity: float
) -> None:
    registry = registry_of(Ruleset(normalized=True))
    candidate = make_candidate(dense_distance=distance, similarity_score=similarity)
    decoded = accepted(make_lookup(candidates=[candidate]))
    assert plain(decoded.record, registry) is None
    assert audit(decoded, registry) == audit_fully(decoded, registry)


@pytest.mark.parametrize(
    "over",
    [
        pytest.param({"dense_distance": None, "quality_score": 0.795}, id="no distance"),
        pytest.param({"document_updated_at": "1801-01-01T00:00:00Z"}, id="a time of no calendar"),
    ],
)
def test_an_unusual_second_candidate_is_left_to_the_full_rules(over: Event) -> None:
    second = make_candidate(original_rank=2, similarity_score=0.9) | over
    decoded = accepted(make_lookup(candidates=[make_candidate(), second]))
    assert plain(decoded.record, DEFAULT_REGISTRY) is None
    assert audit(decoded, DEFAULT_REGISTRY) == audit_fully(decoded, DEFAULT_REGISTRY)


def _projected(**over: Any) -> Event:
    event = make_lookup()
    return event | {"projection": event["projection"] | over}


def _shown(**over: Any) -> Event:
    item = make_lookup()["projection"]["evidence"][0]
    return _projected(evidence=[item | over])


@pytest.mark.parametrize(
    "event",
    [
        pytest.param(make_lookup(projection=None), id="no projection"),
        pytest.param(_projected(evidence=None), id="a projection without evidence"),
        pytest.param(_projected(evidence=[]), id="an empty projection"),
        pytest.param(_projected(returned_count=2), id="another count in the projection"),
        pytest.param(_projected(relevance_level="REFERENCE"), id="another level shown"),
        pytest.param(_shown(document_id="other"), id="evidence of no candidate"),
        pytest.param(_shown(document_id=None), id="evidence of unknown origin"),
        pytest.param(_shown(excerpt="never written"), id="an excerpt of nothing"),
        pytest.param(make_lookup(evidence_status="NO_EVIDENCE"), id="no evidence, says the status"),
        pytest.param(make_lookup(evidence_status=None), id="no status"),
        pytest.param(make_lookup(returned_count=2), id="another count"),
        pytest.param(make_lookup(returned_count=None), id="no count"),
    ],
)
def test_what_the_agent_did_not_see_so_is_left_to_the_full_rules(event: Event) -> None:
    decoded = accepted(event)
    assert plain(decoded.record, DEFAULT_REGISTRY) is None
    assert audit(decoded, DEFAULT_REGISTRY) == audit_fully(decoded, DEFAULT_REGISTRY)
