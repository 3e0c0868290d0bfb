import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookup_audit.processors.drift_causes.split import Part, Split, split
from lookup_audit.processors.drift_causes.table import GROUPS, CountRow, factors_of, make_table
from lookup_audit.schemas.errors import ConfigError
from tests.support.counts import count_row, spread
from tests.support.strategies import examples


def split_of(*rows: CountRow) -> Split:
    return split(make_table(rows))


def parts_of(found: Split) -> dict[str, Part]:
    return {"+".join(part.factor): part for part in found.parts}


@st.composite
def count_rows(draw: st.DrawFn, period: int) -> list[CountRow]:
    rows = []
    for _ in range(draw(st.integers(1, 6))):
        n = draw(st.integers(1, 300))
        rows.append(
            count_row(
                period,
                n,
                draw(st.integers(0, n)),
                ruleset=draw(st.sampled_from(["", "r1", "r2"])),
                under={
                    "r1": draw(st.integers(0, n)),
                    "r2": draw(st.integers(0, n)),
                },
                tenant=draw(st.sampled_from(["acme", "globex"])),
                service=draw(st.sampled_from(["kb", "other"])),
                category=draw(st.sampled_from(["howto", "", "阈值"])),
                model=draw(st.sampled_from(["m@1", "m@2"])),
                index=draw(st.sampled_from(["kb-1", "kb-2"])),
                retry=draw(st.sampled_from(["yes", "no", "unknown"])),
                basis=draw(st.sampled_from(["rank", "other"])),
            )
        )
    return rows


@examples(80)
@given(count_rows(0), count_rows(1))
def test_parts_add_up_to_the_change_whatever_the_counts(
    before: list[CountRow], after: list[CountRow]
) -> None:
    found = split_of(*before, *after)

    def rate(rows: list[CountRow]) -> float:
        return sum(sum(r.precise) for r in rows) / sum(sum(r.n) for r in rows)

    assert math.isclose(found.before, rate(before), abs_tol=1e-12)
    assert math.isclose(found.after, rate(after), abs_tol=1e-12)
    assert math.fsum(p.change for p in found.parts) == pytest.approx(
        rate(after) - rate(before), abs=1e-12
    )
    assert found.change.change == math.fsum(p.change for p in found.parts)
    assert all(p.low <= p.change <= p.high for p in (*found.parts, found.change, found.mix))


@examples(40)
@given(count_rows(0), count_rows(1), st.randoms(use_true_random=False))
def test_order_of_rows_and_names_of_values_change_no_part(
    before: list[CountRow], after: list[CountRow], chance: Any
) -> None:
    renamed = {
        "acme": "z",
        "globex": "a",
        "howto": "y",
        "": "b",
        "阈值": "c",
        "m@1": "9",
        "m@2": "1",
    }
    rows = [*before, *after]
    others = [
        CountRow(
            row.period,
            tuple(renamed.get(v, v) if i < 5 else v for i, v in enumerate(row.values)),
            row.ruleset_id,
            row.n,
            row.precise,
            row.under,
        )
        for row in rows
    ]
    chance.shuffle(others)
    first, second = split_of(*rows), split_of(*others)
    assert [p.factor for p in first.parts] == [p.factor for p in second.parts]
    assert np.allclose(
        [p.change for p in first.parts], [p.change for p in second.parts], atol=1e-12
    )


@examples(40)
@given(count_rows(0), count_rows(1))
def test_the_way_back_is_the_same_with_the_other_sign(
    before: list[CountRow], after: list[CountRow]
) -> None:
    def turned(rows: list[CountRow]) -> list[CountRow]:
        return [
            CountRow(1 - r.period, r.values, r.ruleset_id, r.n, r.precise, r.under) for r in rows
        ]

    there, back = split_of(*before, *after), split_of(*turned(before), *turned(after))
    for one, other in zip(there.parts, back.parts, strict=True):
        assert one.factor == other.factor
        assert one.change == pytest.approx(-other.change, abs=1e-12)


def test_a_pure_change_of_mix_is_mix() -> None:
    found = split_of(
        count_row(0, 900, 720, category="howto"),
        count_row(0, 100, 20, category="legal"),
        count_row(1, 300, 240, category="howto"),
        count_row(1, 700, 140, category="legal"),
    )
    assert found.change.change == pytest.approx(-0.36)
    assert found.mix.change == pytest.approx(-0.36, abs=1e-12)
    assert parts_of(found)["rest"].change == pytest.approx(0, abs=1e-12)


def test_a_pure_change_of_thresholds_is_the_ruleset_to_the_last_digit() -> None:
    rules = [
        ("howto", 313, {"r1": 217, "r2": 101}),
        ("legal", 97, {"r1": 55, "r2": 31}),
        ("", 7, {"r1": 3, "r2": 0}),
    ]
    found = split_of(
        *(count_row(0, n, u["r1"], ruleset="r1", under=u, category=c) for c, n, u in rules),
        *(count_row(1, n, u["r2"], ruleset="r2", under=u, category=c) for c, n, u in rules),
    )
    parts = parts_of(found)
    assert parts["ruleset"].change == pytest.approx((132 - 275) / 417, abs=1e-15)
    assert {name: p.change for name, p in parts.items() if name != "ruleset"} == {
        "category": 0.0,
        "reporting": 0.0,
        "rest": 0.0,
    }


def test_a_change_of_thresholds_is_told_apart_from_what_changed_with_it() -> None:
    """The new index alone would have given 0.5 -> 0.4, the new thresholds 0.5 -> 0.3."""
    found = split_of(
        count_row(0, 1000, 500, ruleset="r1", under={"r1": 500, "r2": 300}, index="kb-1"),
        count_row(1, 1000, 240, ruleset="r2", under={"r1": 400, "r2": 240}, index="kb-2"),
    )
    parts = parts_of(found)
    assert parts["ruleset"].change == pytest.approx((-0.2 - 0.16) / 2)
    assert parts["index"].change == pytest.approx((-0.1 - 0.06) / 2)
    assert parts["rest"].change == 0.0


@pytest.mark.parametrize(
    ("field", "value"),
    [("index", "kb-2"), ("model", "m@2"), ("reranker", "r@2"), ("chunker", "c@2")],
)
def test_a_version_that_came_is_the_cause_with_all_it_brings(field: str, value: str) -> None:
    new: dict[str, Any] = {field: value}
    found = split_of(
        count_row(0, 1000, 600),
        count_row(1, 700, 350, **new),
        # The new version finds no dense neighbour more often: its doing.
        count_row(1, 300, 60, basis="rank", **new),
    )
    parts = parts_of(found)
    assert parts[field].change == pytest.approx(0.41 - 0.6)
    assert parts["basis"].change == parts["rest"].change == 0.0


def test_more_rank_fallback_within_one_version_is_a_cause_of_its_own() -> None:
    found = split_of(
        count_row(0, 900, 360),
        count_row(0, 100, 100, basis="rank"),
        count_row(1, 500, 200),
        count_row(1, 500, 500, basis="rank"),
    )
    assert parts_of(found)["basis"].change == pytest.approx(0.24)
    assert parts_of(found)["rest"].change == pytest.approx(0, abs=1e-12)


def test_more_retries_are_a_cause_of_their_own() -> None:
    found = split_of(
        count_row(0, 950, 570),
        count_row(0, 50, 10, retry="yes"),
        count_row(1, 1000, 200, retry="yes"),
    )
    assert parts_of(found)["retry"].change == pytest.approx(-0.38)


def test_reports_against_the_rule_are_a_cause_of_their_own() -> None:
    found = split_of(
        count_row(0, 1000, 500, under={"r1": 500}),
        count_row(1, 1000, 300, under={"r1": 500}),
    )
    assert parts_of(found)["reporting"].change == pytest.approx(-0.2)
    assert parts_of(found)["rest"].change == 0.0


def test_what_nothing_explains_is_the_rest() -> None:
    found = split_of(count_row(0, 1000, 500), count_row(1, 1000, 400))
    assert parts_of(found)["rest"].change == pytest.approx(-0.1)


def test_strata_of_one_period_only_are_mix() -> None:
    found = split_of(
        count_row(0, 500, 400, tenant="acme"),
        count_row(0, 100, 10, tenant="gone"),
        count_row(1, 500, 400, tenant="acme"),
        count_row(1, 300, 90, tenant="new"),
    )
    assert found.mix.change == pytest.approx(found.change.change)
    assert parts_of(found)["rest"].change == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize(("period", "which"), [(1, "first"), (0, "second")])
def test_a_rate_over_nothing_has_no_change_to_split(period: int, which: str) -> None:
    with pytest.raises(ConfigError, match=f"the {which} period has no lookups"):
        split_of(count_row(period, 10, 5))
    with pytest.raises(ConfigError, match="no lookups"):
        split_of()


def test_one_run_gives_no_interval() -> None:
    one = [5] + [0] * (GROUPS - 1)
    found = split_of(count_row(0, one, one), count_row(1, one, [0] * GROUPS))
    assert found.change.change == -1.0
    assert math.isinf(found.change.high)


def test_versions_that_were_never_seen_apart_make_one_factor() -> None:
    together = make_table([count_row(0, 9, 1), count_row(1, 9, 1, index="kb-2", chunker="c@2")])
    assert factors_of(together) == [("index", "chunker")]
    apart = make_table(
        [
            count_row(period, 9, 1, index=index, chunker=chunker)
            for period in (0, 1)
            for index in ("kb-1", "kb-2")
            for chunker in ("c@1", "c@2")
        ]
    )
    assert factors_of(apart) == [("index",), ("chunker",)]


def test_a_stray_lookup_of_another_version_joins_nothing() -> None:
    rows = [
        count_row(0, 1000, 1, index=index, chunker=chunker)
        for index in ("kb-1", "kb-2")
        for chunker in ("c@1", "c@2")
    ]
    stray = count_row(1, 1, 1, index="kb-9")
    assert factors_of(make_table([*rows, count_row(1, 999, 1), stray])) == [
        ("index",),
        ("chunker",),
    ]


def simulated(chance: np.random.Generator, period: int, runs: int) -> list[CountRow]:
    """Runs of 1 to 6 lookups that share a category and a mood; afterwards with a new index."""
    index = "kb-2" if period else "kb-1"
    counts: dict[str, Any] = {c: np.zeros((2, GROUPS), dtype=int) for c in ("howto", "legal")}
    for _ in range(runs):
        category = "legal" if chance.random() < (0.5 if period else 0.2) else "howto"
        base = {"howto": 0.7, "legal": 0.4}[category] - 0.1 * period
        p = chance.beta(base * 4, (1 - base) * 4)
        n = int(chance.integers(1, 7))
        counts[category][:, chance.integers(GROUPS)] += (n, chance.binomial(n, p))
    return [
        count_row(period, c[0].tolist(), c[1].tolist(), category=name, index=index)
        for name, c in counts.items()
    ]


@pytest.mark.slow
def test_intervals_cover_the_true_parts_in_a_simulation() -> None:
    """400 simulated comparisons: 95 % coverage has a standard error of 1.1 points."""
    chance = np.random.default_rng(20261201)
    truth = split_of(
        count_row(0, 800000, 560000, category="howto"),
        count_row(0, 200000, 80000, category="legal"),
        count_row(1, 500000, 300000, category="howto", index="kb-2"),
        count_row(1, 500000, 150000, category="legal", index="kb-2"),
    )
    expected = parts_of(truth) | {"change": truth.change}
    hits = dict.fromkeys(("category", "index", "change"), 0)
    trials = 400
    for _ in range(trials):
        found = split_of(*simulated(chance, 0, 300), *simulated(chance, 1, 300))
        parts = parts_of(found) | {"change": found.change}
        for name in hits:
            hits[name] += parts[name].low <= expected[name].change <= parts[name].high
    assert all(0.91 <= count / trials <= 0.985 for count in hits.values()), hits


def test_a_count_is_spread_without_loss() -> None:
    assert sum(spread(1234)) == 1234
