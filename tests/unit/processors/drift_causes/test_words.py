import math

from hypothesis import given
from hypothesis import strategies as st

from lookup_audit.processors.drift_causes.split import split
from lookup_audit.processors.drift_causes.table import CountRow, make_table
from lookup_audit.processors.drift_causes.words import causes, rounded, sentence
from tests.support.counts import count_row
from tests.support.strategies import examples


def told(*rows: CountRow) -> str:
    table = make_table(rows)
    found = split(table)
    return sentence(found, causes(table, found))


@examples(200)
@given(st.lists(st.floats(-0.3, 0.3), min_size=1, max_size=9))
def test_rounded_parts_add_up_to_the_rounded_sum(changes: list[float]) -> None:
    shown = rounded(changes)
    assert sum(shown) == round(math.fsum(change * 1000 for change in changes))
    assert all(abs(s - c * 1000) <= 1 for s, c in zip(shown, changes, strict=True))


def test_the_sentence_names_the_new_index_first_and_the_rest_last() -> None:
    text = told(
        count_row(0, 900, 540),
        count_row(0, 100, 100, basis="rank"),
        count_row(1, 900, 405, index="kb-2026-11"),
        count_row(1, 100, 100, index="kb-2026-11", basis="rank"),
    )
    assert text == "of -13.5 points: -13.5 from index kb-2026-11; rest 0.0"


def test_each_cause_has_its_own_words() -> None:
    text = told(
        count_row(0, 800, 480, under={"r1": 480, "r2": 400}),
        count_row(0, 100, 90, basis="rank"),
        count_row(0, 100, 20, retry="yes", under={"r1": 20, "r2": 10}),
        count_row(1, 400, 160, ruleset="r2", under={"r1": 200, "r2": 180}),
        count_row(1, 300, 280, ruleset="r2", basis="rank", under={"r1": 280, "r2": 280}),
        count_row(1, 300, 30, ruleset="r2", retry="yes", under={"r1": 60, "r2": 30}),
    )
    for words in (
        "from more rank-fallback lookups",
        "from more unfiltered retries",
        "from ruleset r2",
        "from levels reported against the rule",
        "; rest ",
    ):
        assert words in text


def test_versions_that_came_together_are_named_together() -> None:
    text = told(count_row(0, 9, 9), count_row(1, 9, 0, index="kb-2", chunker="c@2"))
    assert "-100.0 from index kb-2 and chunker c@2 (never seen apart)" in text


def test_traffic_mix_is_one_cause_with_its_fields_beside() -> None:
    table = make_table(
        [
            count_row(0, 900, 720),
            count_row(0, 100, 20, category="legal", language="de"),
            count_row(1, 500, 400),
            count_row(1, 500, 100, category="legal", language="de"),
        ]
    )
    found = split(table)
    first = causes(table, found)[0]
    assert (first.kind, first.name) == ("mix", "traffic mix")
    assert {member.name for member in first.members} == {"language", "category"}
    assert first.part.change == math.fsum(m.part.change for m in first.members)


def test_no_change_says_so() -> None:
    assert told(count_row(0, 10, 5), count_row(1, 10, 5)) == (
        "of 0.0 points: nothing from any named cause; rest 0.0"
    )
