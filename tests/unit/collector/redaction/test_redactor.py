import json
import math
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lookup_audit.collector.redaction import RedactionConfig, Redactor, Withheld
from lookup_audit.collector.redaction import redactor as module
from lookup_audit.schemas.decode import JUDGEMENTS, LOOKUPS, OUTCOMES, Decoded
from lookup_audit.schemas.names import EventType
from lookup_audit.schemas.ruleset import DEFAULT_RULESET, Appointment, Registry
from lookup_audit.schemas.verdict import audit
from tests.support.events import encode, make_candidate, make_judgement, make_lookup, make_outcome
from tests.support.strategies import lookups

KEY = "an example key of enough characters"
REGISTRY = Registry([Appointment(DEFAULT_RULESET, datetime(2020, 1, 1, tzinfo=UTC))])


def make_redactor(patterns: Any = None, **fields: str) -> Redactor:
    values: dict[str, Any] = {"key": KEY, "fields": fields}
    if patterns is not None:
        values["patterns"] = patterns
    return Redactor(RedactionConfig.model_validate(values))


def redact(redactor: Redactor, event: Any, kind: EventType = EventType.LOOKUP) -> Any:
    found = redactor.redact(encode(event), kind)
    assert isinstance(found, bytes)
    return json.loads(found)


def test_an_event_without_anything_to_redact_keeps_its_bytes() -> None:
    raw = json.dumps(make_lookup(), indent=1).encode()
    assert make_redactor().redact(raw, EventType.LOOKUP) == raw


@pytest.mark.parametrize(
    "event",
    [
        pytest.param({"query": {"text": "secret"}}, id="object"),
        pytest.param({"query": "secret"}, id="plain"),
    ],
)
def test_a_hashed_query_is_hashed_in_the_projection_too_and_alike(event: Any) -> None:
    projection = {"query": "secret", "relevance_level": None}
    found = redact(
        make_redactor(**{"query.text": "hash"}), make_lookup(**event, projection=projection)
    )
    hashed = found["query"]["text"] if isinstance(found["query"], dict) else found["query"]
    assert hashed.startswith("hmac:")
    assert found["projection"]["query"] == hashed
    assert found["degradations"] == ["redacted:projection.query", "redacted:query.text"]


def test_both_spellings_and_the_other_name_of_candidates_are_one_field() -> None:
    redactor = make_redactor(**{"candidates.*.source_url": "hash", "candidates.*.excerpt": "drop"})
    event = make_lookup()
    candidates = event.pop("candidates")
    candidates[0]["sourceUrl"] = candidates[0].pop("source_url")
    found = redact(redactor, event | {"evidenceBlocks": candidates})
    for candidate in found["evidenceBlocks"]:
        assert "excerpt" not in candidate
        assert candidate.get("sourceUrl", candidate.get("source_url")).startswith("hmac:")
    assert "excerpt" not in found["projection"]["evidence"][0]


def test_a_key_decides_the_hash_and_equal_texts_stay_equal() -> None:
    one, two = (make_redactor(comment="hash") for _ in range(2))
    other = Redactor(
        RedactionConfig.model_validate({"key": "z" * 32, "fields": {"comment": "hash"}})
    )
    event = make_judgement(comment="same")
    hashes = [redact(r, event, EventType.JUDGEMENT)["comment"] for r in (one, two, other)]
    assert hashes[0] == hashes[1] != hashes[2]


def test_redacting_twice_changes_nothing_more() -> None:
    redactor = make_redactor(**{"query.text": "hash", "candidates.*.excerpt": "hash"})
    event = make_lookup(run_id="a@b.example", further={"x": "13800138000"})
    once = redactor.redact(encode(event), EventType.LOOKUP)
    assert isinstance(once, bytes)
    assert redactor.redact(once, EventType.LOOKUP) == once


def test_different_ids_with_a_secret_in_them_stay_different_and_joinable() -> None:
    redactor = make_redactor()
    first, second = (make_lookup(event_id=f"user{n}@mail.example/1") for n in (1, 2))
    outcome = make_outcome(lookup_event_ids=[first["event_id"]])
    ids = [redact(redactor, event)["event_id"] for event in (first, second)]
    joined = redact(redactor, outcome, EventType.OUTCOME)["lookup_event_ids"]
    assert ids[0] != ids[1]
    assert joined == [ids[0]]


def test_the_most_specific_rule_wins_and_keep_exempts_from_patterns() -> None:
    redactor = make_redactor(
        **{"context_pack.**": "drop", "context_pack.note": "keep", "further.*.mail": "keep"}
    )
    event = make_lookup(
        context_pack={"note": "a@b.example", "text": "gone", "deep": {"x": 1}},
        further=[{"mail": "a@b.example", "other": "c@d.example"}],
    )
    found = redact(redactor, event)
    assert found["context_pack"] == {"note": "a@b.example"}
    assert found["further"] == [{"mail": "a@b.example", "other": "[email]"}]
    assert "redacted:unknown_field" in found["degradations"]


def test_a_wildcard_leaves_what_the_audit_reads() -> None:
    found = redact(make_redactor(**{"candidates.*.*": "hash", "query.**": "drop"}), make_lookup())
    assert found["query"] == {}
    candidate, original = found["candidates"][0], make_candidate()
    changed = {name for name in original if candidate.get(name) != original[name]}
    assert "excerpt" in changed
    assert changed.isdisjoint({"original_rank", "dense_distance", "layer", "kept", "hit_reasons"})


def test_a_card_given_as_a_number_or_as_a_name_is_found() -> None:
    event = make_lookup(further={"card": 4111111111111111, "a@b.example": 1, "c@d.example": 2})
    found = redact(make_redactor(), event)
    assert found["further"] == {"card": "[card]", "[email]": 1, "[email]_": 2}


def test_a_secret_under_a_name_given_twice_does_not_stay_in_the_bytes() -> None:
    raw = encode(make_lookup())[:-1] + b',"run_id":"a@b.example","run_id":"fine"}'
    found = make_redactor().redact(raw, EventType.LOOKUP)
    assert isinstance(found, bytes)
    assert b"a@b.example" not in found


def test_numbers_come_out_as_they_went_in() -> None:
    numbers = [0.1 + 0.2, 1e-300, 2**53, -0.0, 1.0, 123456789012345678]
    found = redact(make_redactor(), make_lookup(further=numbers, run_id="a@b.example"))
    assert [repr(number) for number in found["further"]] == [repr(number) for number in numbers]


def test_what_the_decoder_refuses_comes_back_to_be_refused() -> None:
    redactor = make_redactor()
    for raw in (b"", b"[1", b'"text"', b"\xff\xfe", '{"a":1}'.encode("utf-16"), b"[" * 5000):
        assert redactor.redact(raw, EventType.LOOKUP) == raw
    nan = redactor.redact(b'{"a": NaN, "b": "a@b.example"}', EventType.LOOKUP)
    assert isinstance(nan, bytes)
    assert math.isnan(json.loads(nan)["a"])


def test_a_redactor_that_fails_lets_nothing_out(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(text: str, patterns: object) -> str:
        raise RuntimeError(text)

    monkeypatch.setattr(module, "scrub", fail)
    assert make_redactor().redact(encode(make_lookup()), EventType.LOOKUP) == Withheld()
    assert "default timeout" not in caplog.text
    caplog.clear()


@settings(max_examples=60, deadline=None)
@given(event=lookups())
def test_the_level_recomputes_whatever_text_is_redacted(event: Any) -> None:
    rules = {
        "query.text": "drop",
        "candidates.*.excerpt": "hash",
        "candidates.*.title": "drop",
        "candidates.*.chunk_id": "hash",
        "tenant": "hash",
    }
    raw = encode(event)
    before = LOOKUPS.decode(raw)
    redacted = make_redactor(**rules).redact(raw, EventType.LOOKUP)
    assert isinstance(redacted, bytes)
    after = LOOKUPS.decode(redacted)
    if not isinstance(before, Decoded) or not isinstance(after, Decoded):
        assert type(before) is type(after)
        return
    one, two = audit(before, REGISTRY), audit(after, REGISTRY)
    assert (one.recomputed_level, one.level_check, one.level_mismatch) == (
        two.recomputed_level,
        two.level_check,
        two.level_mismatch,
    )
    assert [q for q in one.qualities if q is not None] == [
        q for q in two.qualities if q is not None
    ]


def test_what_was_redacted_is_a_degradation_of_the_verdict_and_fails_no_check() -> None:
    rules = {"candidates.*.excerpt": "hash", "query.text": "hash"}
    raw = make_redactor(**rules).redact(encode(make_lookup()), EventType.LOOKUP)
    assert isinstance(raw, bytes)
    decoded = LOOKUPS.decode(raw)
    assert isinstance(decoded, Decoded)
    verdict = audit(decoded, REGISTRY).verdict()
    assert verdict.level_check == "pass"
    assert verdict.failed_checks == ()
    assert set(verdict.source_degradations) == {
        "redacted:candidates.*.excerpt",
        "redacted:projection.evidence.*.excerpt",
        "redacted:projection.query",
        "redacted:query.text",
    }


def test_words_that_a_producer_makes_up_are_no_degradation() -> None:
    decoded = LOOKUPS.decode(encode(make_lookup(degradations=["redacted:made.up", "x"])))
    assert isinstance(decoded, Decoded)
    assert audit(decoded, REGISTRY).degradations == []


def test_outcomes_and_judgements_say_what_was_redacted_and_are_accepted() -> None:
    redactor = make_redactor(**{"claims.*.text": "hash", "refusal.text": "drop", "comment": "hash"})
    outcome = redactor.redact(encode(make_outcome()), EventType.OUTCOME)
    refusal = redactor.redact(encode(make_outcome(action="refused")), EventType.OUTCOME)
    judgement = redactor.redact(encode(make_judgement()), EventType.JUDGEMENT)
    flags = []
    for codec, raw in ((OUTCOMES, outcome), (OUTCOMES, refusal), (JUDGEMENTS, judgement)):
        assert isinstance(raw, bytes)
        decoded: Any = codec.decode(raw)
        assert isinstance(decoded, Decoded)
        assert decoded.unknown_fields == ()
        flags.append(decoded.record.degradations)
    assert flags == [
        ["redacted:claims.*.text"],
        ["redacted:refusal.text"],
        ["redacted:comment"],
    ]


def test_every_text_of_a_candidate_may_be_redacted() -> None:
    texts = [name for name, value in make_candidate().items() if isinstance(value, str)]
    words = {"document_updated_at", "layer"}
    rules = {f"candidates.*.{name}": "hash" for name in texts if name not in words}
    found = redact(make_redactor(**rules), make_lookup())
    left = {k for k, v in found["candidates"][0].items() if isinstance(v, str)}
    assert {k for k in left if not found["candidates"][0][k].startswith("hmac:")} == words


@given(st.binary(max_size=200))
def test_any_bytes_are_redacted_or_withheld_and_never_raise(raw: bytes) -> None:
    assert isinstance(make_redactor().redact(raw, EventType.LOOKUP), (bytes, Withheld))
