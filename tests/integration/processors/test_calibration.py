import json
import re
import unicodedata
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib import resources

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lookup_audit.processors import calibration
from lookup_audit.processors.calibration.emitted import read_emitted
from lookup_audit.processors.calibration.fragility import fragility
from lookup_audit.processors.calibration.gold import normalise
from lookup_audit.processors.calibration.matching import match
from lookup_audit.processors.calibration.stored import Scope, digest, stored_lookups
from lookup_audit.processors.store import ClickHouseStore
from lookup_audit.schemas.level import level_of
from lookup_audit.schemas.ruleset import DEFAULT_RULESET, Registry, Ruleset
from tests.support.events import Event, encode, make_candidate, make_lookup, make_outcome
from tests.support.trials import make_gold
from tests.support.twins import in_order, make_encoder, make_message, make_sink

pytest_plugins = ["tests.support.engine"]

QUESTION = "默认超时是多少？"


def keep(store: ClickHouseStore, *events: Event) -> None:
    """Store events the way they come."""
    lookups = [encode(e) for e in events if "event_id" in e]
    answers = [encode(e) for e in events if "outcome_id" in e]
    messages = in_order(lookups)
    messages += [
        make_message(raw, offset, topic="lookup.outcomes.v1") for offset, raw in enumerate(answers)
    ]
    make_sink(store).write(make_encoder().encode(messages))


def lookup_of(qualities: Sequence[float | None], mode: str = "dense", **over: object) -> Event:
    candidates = [
        make_candidate(
            original_rank=rank,
            dense_distance=None if quality is None else 2.0 * (1.0 - quality),
            breadcrumb=f"page {rank}",
        )
        for rank, quality in enumerate(qualities, start=1)
    ]
    return make_lookup(mode=mode, candidates=candidates, **over)


def test_a_stored_lookup_is_the_emitted_one(store: ClickHouseStore) -> None:
    events = [
        lookup_of((0.8, None, 0.6), "hybrid", query=QUESTION),
        lookup_of((None, 0.9), "hybrid", query=QUESTION),
        lookup_of((), query=QUESTION),
        lookup_of((0.7,), query=QUESTION, selected_chunk_ids=None),
        make_lookup(
            query=QUESTION,
            candidates=[
                make_candidate(),
                make_candidate(),
                make_candidate(original_rank=2, kept=False),
            ],
        ),
    ]
    keep(store, *events)
    found = {a.event_id: a for a in stored_lookups(store, [make_gold(QUESTION)], Scope())}
    emitted = read_emitted([("", encode(e)) for e in events], Registry()).lookups
    assert len(found) == len(emitted) == len(events)
    for asked in emitted:
        stored = found[asked.event_id]
        assert stored.quality() == asked.quality()
        assert stored.level() == asked.level()
        assert stored.given == asked.given
        assert [c.chunk_id for c in stored.kept] == [c.chunk_id for c in asked.kept]
        for mine, theirs in zip(stored.kept, asked.kept, strict=True):
            assert stored.layer(mine) == asked.layer(theirs)


def test_a_question_is_found_whatever_its_width_case_and_spacing(store: ClickHouseStore) -> None:
    written = [
        "默认 超时 是多少？",
        " 默认　超时　是多少? ",
        "默认超时",
        "Ｗhat  IS\nit？",
        "STRASSE",
    ]
    keep(store, *(make_lookup(query=text) for text in written))
    gold = [make_gold("默认 超时 是多少？"), make_gold("what is it?"), make_gold("straße")]
    found = {a.query_text for a in stored_lookups(store, gold, Scope())}
    assert found == set(written) - {"默认超时"}


_TRICKY = st.text(
    st.one_of(
        st.sampled_from("ßẞSsſKkİiıΣσςΑα默認é\u0301ﬁ１Ⅷ٣ \u3000\t？!"),
        st.characters(max_codepoint=0x2FFF, exclude_categories=("Cs", "Cn")),
    ),
    max_size=12,
)


def store_digests(engine: ClickHouseStore, texts: Sequence[str]) -> list[str]:
    """What ``asked.sql`` works out for each text."""
    sql = resources.files(calibration).joinpath("asked.sql").read_text("utf-8")
    found = re.search(r"AND (lower\(substring\(.*?)\s+IN \(", sql, re.S)
    assert found
    answer = engine.query(
        f"SELECT {found[1].replace('query_text', 't')} FROM "
        "(SELECT arrayJoin(JSONExtract({texts:String}, 'Array(String)')) AS t)",
        {"texts": json.dumps(texts)},
    )
    return [value for (value,) in answer]


@settings(deadline=None, max_examples=30)
@given(st.lists(_TRICKY, min_size=1, max_size=40))
def test_the_store_works_out_the_same_digest(engine: ClickHouseStore, texts: list[str]) -> None:
    clean = [text.replace("\0", "") for text in texts]
    assert store_digests(engine, clean) == [digest(text) for text in clean]


def test_the_store_works_out_the_same_digest_for_every_letter(engine: ClickHouseStore) -> None:
    """Alone and under a combining mark, which composes with some letters in one case only."""
    unwritten = {"Cs", "Cn", "Co"}  # surrogates, unassigned and private ones
    letters = [
        c for c in map(chr, range(0x20, 0x2FA20)) if unicodedata.category(c) not in unwritten
    ]
    texts = [letter + mark for letter in letters for mark in ("", "\u0331")]
    found = zip(texts, store_digests(engine, texts), strict=True)
    assert not {text for text, value in found if value != digest(text)}


@given(_TRICKY, _TRICKY)
@example("\u1e96", "")  # its capital is two characters, which compose in lower case only
def test_equal_questions_share_a_digest(one: str, other: str) -> None:
    for left, right in ((one, other), (one, one.upper()), (one, one.casefold())):
        if normalise(left) == normalise(right):
            assert digest(left) == digest(right)


def test_scope_narrows_by_tenant_version_mode_and_time(store: ClickHouseStore) -> None:
    keep(
        store,
        make_lookup(query="q", tenant="a"),
        make_lookup(query="q", tenant="b", model_version="m@2"),
        make_lookup(query="q", tenant="a", mode="hybrid"),
        make_lookup(query="q", tenant="a", occurred_at="2026-01-01T00:00:00Z"),
    )
    gold = [make_gold("q")]

    def count(**scope: str) -> int:
        return len(stored_lookups(store, gold, Scope(**scope)))

    assert count() == 4
    assert count(tenant="b") == 1
    assert count(model_version="m@2") == 1
    assert count(mode="hybrid") == 1
    assert count(since="2026-06-01T00:00:00Z") == 3
    assert count(tenant="'; DROP TABLE lookups --") == 0


def test_the_newest_outcome_of_a_lookup_counts_with_its_coverage(store: ClickHouseStore) -> None:
    first = lookup_of((0.9, 0.8), query="q", selected_chunk_ids=["doc-1#chunk-0"])
    retry = lookup_of((0.9, 0.8), query="other words", selected_chunk_ids=["doc-2#chunk-0"])
    ids = [first["event_id"], retry["event_id"]]
    claims = [
        {"claim_id": "1", "cited_chunk_ids": ["doc-1#chunk-0"]},
        {"claim_id": "2", "cited_chunk_ids": ["nowhere", "doc-2#chunk-0"]},
        {"claim_id": "3", "cited_chunk_ids": ["doc-3#chunk-0"]},
        {"claim_id": "4"},
    ]
    keep(
        store,
        first,
        retry,
        make_outcome(lookup_event_ids=ids, action="refused", occurred_at="2026-11-30T10:00:00Z"),
        make_outcome(lookup_event_ids=ids, claims=claims, occurred_at="2026-11-30T11:00:00Z"),
        make_outcome(lookup_event_ids=ids, tenant="else", action="refused"),
    )
    (asked,) = stored_lookups(store, [make_gold("q")], Scope())
    assert asked.answer is not None
    assert not asked.answer.refused
    assert (asked.answer.claims, asked.answer.supported_claims) == (4, 2)


def test_a_chunk_without_a_link_supports_no_claim(store: ClickHouseStore) -> None:
    bare = make_lookup(query="q", candidates=[make_candidate(source_url=None)])
    keep(store, bare, make_outcome(lookup_event_ids=[bare["event_id"]]))
    (asked,) = stored_lookups(store, [make_gold("q")], Scope())
    assert asked.answer is not None
    assert asked.answer.coverage == 0.0


def test_replaying_the_events_changes_nothing(store: ClickHouseStore) -> None:
    events = [lookup_of((0.8,), query="q"), lookup_of((0.7,), query="q")]
    keep(store, *events)
    before = match(
        [make_gold("q", "doc-1#chunk-0")], stored_lookups(store, [make_gold("q")], Scope())
    )
    keep(store, *reversed(events))
    after = match(
        [make_gold("q", "doc-1#chunk-0")], stored_lookups(store, [make_gold("q")], Scope())
    )
    assert after == before


def test_an_empty_store_has_no_lookup_and_no_fragility(store: ClickHouseStore) -> None:
    assert stored_lookups(store, [make_gold("q")], Scope()) == []
    assert fragility(store, Scope()) == []


def test_many_questions_and_long_ids_are_asked_in_parts(store: ClickHouseStore) -> None:
    events = [make_lookup(query=f"q {n}", event_id=f"{n}-".ljust(128, "é")) for n in range(150)]
    keep(store, *events, *(make_outcome(lookup_event_ids=[e["event_id"]]) for e in events))
    gold = [make_gold(f"Q {n}", line=n) for n in range(2_500)]
    found = stored_lookups(store, gold, Scope())
    assert len(found) == 150
    assert all(asked.answer is not None for asked in found)


SHIFT = 0.01


def slow_flips(qualities: Sequence[float], ruleset: Ruleset) -> dict[str, int]:
    """Levels under four moved rulesets, one lookup after the other."""
    high, low = ruleset.highly_relevant_threshold, ruleset.reference_threshold
    moved = {
        "high_up": {"highly_relevant_threshold": high + SHIFT},
        "high_down": {"highly_relevant_threshold": high - SHIFT},
        "low_up": {"reference_threshold": low + SHIFT},
        "low_down": {"reference_threshold": low - SHIFT},
    }
    turned: dict[str, set[int]] = {
        name: {
            place
            for place, quality in enumerate(qualities)
            if level_of(quality, False, ruleset)
            != level_of(quality, False, ruleset.model_copy(update=change))
        }
        for name, change in moved.items()
    }
    counts = {name: len(places) for name, places in turned.items()}
    return counts | {"flips": len(set().union(*turned.values()))}


def test_fragility_is_that_of_moving_each_threshold(store: ClickHouseStore) -> None:
    dense = [0.2 + i * 0.0061 for i in range(110)] + [0.75, 0.5, 0.74, 0.49, 0.76, 0.51]
    keep(
        store,
        *(lookup_of((quality,)) for quality in dense),
        *(lookup_of((0.6, None), "hybrid") for _ in range(3)),
        *(lookup_of((None, 0.6), "hybrid") for _ in range(2)),
        lookup_of((), "hybrid"),
        lookup_of((0.6,), "lexical"),
    )
    found = {(f.mode, f.basis): f for f in fragility(store, Scope())}
    assert {key: f.lookups for key, f in found.items()} == {
        ("dense", "dense_l2"): len(dense),
        ("hybrid", "hybrid_l2"): 3,
        ("hybrid", "hybrid_rank"): 2,
        ("hybrid", ""): 1,
        ("lexical", ""): 1,
    }
    row = found["dense", "dense_l2"]
    qualities = [1.0 - (2.0 * (1.0 - quality)) / 2.0 for quality in dense]
    expected = slow_flips(qualities, DEFAULT_RULESET)
    assert {name: getattr(row, name).count for name in expected} == expected
    assert row.band is not None
    assert (row.band[0], row.band[3]) == (min(qualities), max(qualities))
    assert row.thresholds == ((0.75, 0.5),)
    assert row.flips.n == len(dense)


def test_each_lookup_is_held_against_its_own_ruleset(store: ClickHouseStore) -> None:
    other = {"highly_relevant_threshold": 0.6, "reference_threshold": 0.4}
    keep(store, lookup_of((0.755,)), lookup_of((0.605,), thresholds=other))
    (row,) = fragility(store, Scope())
    assert row.high_up.count == 2
    assert row.thresholds == ((0.6, 0.4), (0.75, 0.5))


def test_a_scope_without_lookups_is_empty(store: ClickHouseStore) -> None:
    keep(store, make_lookup())
    later = datetime(2099, 1, 1, tzinfo=UTC).isoformat()
    assert fragility(store, Scope(since=later)) == []
    assert fragility(store, Scope(mode="hybrid")) == []


@pytest.mark.parametrize("mode", ["lexical", "unknown"])
def test_a_mode_without_a_rule_has_recall_and_no_scores(mode: str, store: ClickHouseStore) -> None:
    keep(store, make_lookup(query="q", mode=mode))
    gold = [make_gold("q", "doc-2#chunk-0")]
    (stratum,) = match(gold, stored_lookups(store, gold, Scope()))
    assert stratum.trials[0].first_hit == 2
    assert stratum.trials[0].asked.level() is None
