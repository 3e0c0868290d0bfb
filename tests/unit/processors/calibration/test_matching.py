from lookup_audit.processors.calibration.gold import parse_gold
from lookup_audit.processors.calibration.matching import match, never_asked
from tests.support.trials import make_asked, make_gold, make_trial

CHINESE = make_gold("默认超时是多少？", "c2")


def test_a_question_is_found_in_each_model_version_and_mode() -> None:
    asked = [
        make_asked("默认超时是多少?", (0.8, 0.7), model_version=version, mode=mode)
        for version in ("m@1", "m@2")
        for mode in ("dense", "hybrid")
    ]
    strata = match([CHINESE], asked)
    assert [(s.model_version, s.mode) for s in strata] == [
        ("m@1", "dense"),
        ("m@1", "hybrid"),
        ("m@2", "dense"),
        ("m@2", "hybrid"),
    ]
    assert all(s.trials[0].first_hit == 2 and not s.trials[0].is_right for s in strata)


def test_the_last_lookup_of_a_question_counts() -> None:
    first = make_asked("q", occurred_at="2026-11-30T10:00:00Z", event_id="first")
    last = make_asked("Q", occurred_at="2026-11-30T11:00:00Z", event_id="last")
    (stratum,) = match([make_gold("q", "c1")], [last, first])
    assert [t.asked.event_id for t in stratum.trials] == ["last"]
    assert stratum.superseded == 1


def test_what_several_tenants_or_services_asked_is_ambiguous() -> None:
    asked = [make_asked("q", tenant="a"), make_asked("q", tenant="b")]
    (stratum,) = match([make_gold("q", "c1")], asked)
    assert stratum.trials == []
    assert stratum.left_out[0].reason == "ambiguous"
    assert "a/kb, b/kb" in stratum.left_out[0].detail


def test_a_question_that_one_stratum_was_not_asked_is_named_there() -> None:
    gold = [make_gold("q", "c1"), make_gold("r", "c1", line=2), make_gold("s", line=3)]
    asked = [make_asked("q"), make_asked("q", mode="hybrid"), make_asked("r")]
    dense, hybrid = match(gold, asked)
    assert [o.line for o in dense.left_out] == [3]
    assert [o.line for o in hybrid.left_out] == [2, 3]
    assert [o.line for o in never_asked(gold, [dense, hybrid])] == [3]
    assert [o.line for o in never_asked(gold, [])] == [1, 2, 3]


def test_a_version_that_the_gold_file_does_not_know_is_named() -> None:
    gold = parse_gold([b'{"question": "q", "supporting": {"m@1": ["c1"]}}'])
    (stratum,) = match(gold, [make_asked("q", model_version="m@2")])
    assert stratum.left_out[0].reason == "no_support_for_version"
    assert "supporting.m@2" in stratum.left_out[0].detail


def test_every_question_is_a_trial_or_left_out() -> None:
    gold = [make_gold(f"q{i}", line=i) for i in range(5)]
    asked = [make_asked("q1"), make_asked("q3"), make_asked("q3", tenant="other")]
    (stratum,) = match(gold, asked)
    assert len(stratum.trials) + len(stratum.left_out) == 5


def test_an_unsaid_selection_is_all_that_was_kept() -> None:
    assert make_trial(make_asked("q", (0.8, 0.7)), "c2").selected_hit
    assert not make_trial(make_asked("q", (0.8, 0.7), selected=()), "c2").selected_hit
