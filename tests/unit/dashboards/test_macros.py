import re
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookup_audit.dashboards.macros import MacroError, Range, expand, percent_encode

# 1767323045.678 s and 1767326700.9 s after the epoch.
SPAN = Range(
    datetime(2026, 1, 2, 3, 4, 5, 678000, UTC), datetime(2026, 1, 2, 4, 5, 0, 900000, UTC), 60
)

EXPANSIONS = [
    ("$__timeFilter(ts)", "ts >= toDateTime(1767323045) AND ts <= toDateTime(1767326700)"),
    (
        "$__timeFilter_ms(ts)",
        "ts >= fromUnixTimestamp64Milli(1767323045678) AND "
        "ts <= fromUnixTimestamp64Milli(1767326700900)",
    ),
    ("$__dateFilter(d)", "d >= toDate('2026-01-02') AND d <= toDate('2026-01-02')"),
    ("$__fromTime", "toDateTime(1767323045)"),
    ("$__toTime", "toDateTime(1767326700)"),
    ("$__fromTime_ms", "fromUnixTimestamp64Milli(1767323045678)"),
    ("$__toTime_ms", "fromUnixTimestamp64Milli(1767326700900)"),
    ("$__timeFrom(ts)", "ts >= toDateTime(1767323045)"),
    ("$__timeTo(ts)", "ts <= toDateTime(1767326700)"),
    ("$__timeInterval(ts)", "toStartOfInterval(toDateTime(ts), INTERVAL 60 second)"),
    (
        "$__timeInterval_ms(ts)",
        "toStartOfInterval(toDateTime64(ts, 3), INTERVAL 60000 millisecond)",
    ),
    ("$__interval_s", "60"),
]


@pytest.mark.parametrize(("macro", "expected"), EXPANSIONS, ids=[m for m, _ in EXPANSIONS])
def test_a_macro_expands_as_the_plugin_does(macro: str, expected: str) -> None:
    assert expand(f"SELECT {macro}, 1", SPAN, {}) == f"SELECT {expected}, 1"


@pytest.mark.parametrize(
    "macro",
    ["$__timeGroup(ts, 1d)", "$__nonsense", "$__timeFilter", "$__timeFilter()", "$__timeFrom(a,b)"],
)
def test_what_is_no_macro_is_an_error_and_not_sent_on(macro: str) -> None:
    with pytest.raises(MacroError):
        expand(f"SELECT {macro}", SPAN, {})


@pytest.mark.parametrize(
    "written", ["$mode", "${mode}", "${mode:singlequote}", "${mode:sqlstring}"]
)
def test_a_variable_in_a_format_that_can_be_escaped_from_is_refused(written: str) -> None:
    with pytest.raises(MacroError, match="percentencode"):
        expand(f"SELECT '{written}'", SPAN, {"mode": "dense"})


def test_an_unknown_variable_is_refused() -> None:
    with pytest.raises(MacroError, match="no variable modus"):
        expand("SELECT '${modus:percentencode}'", SPAN, {"mode": "dense"})


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_no_value_can_leave_its_literal(value: str) -> None:
    sql = expand("SELECT '${v:percentencode}'", SPAN, {"v": value})

    assert re.fullmatch(r"SELECT '[A-Za-z0-9_.~%-]*'", sql)


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"])), min_size=2))
def test_several_values_cannot_leave_their_literal(values: list[str]) -> None:
    sql = expand("SELECT '${v:percentencode}'", SPAN, {"v": values})

    assert re.fullmatch(r"SELECT '[A-Za-z0-9_.~%-]*'", sql)


def test_all_among_several_values_is_all() -> None:
    assert percent_encode(["dense", "*"]) == percent_encode("*") == percent_encode([]) == "%2A"


def test_a_value_that_looks_like_a_macro_stays_a_value() -> None:
    assert "toDateTime" not in expand("'${v:percentencode}'", SPAN, {"v": "$__toTime"})


def test_a_lone_surrogate_is_refused() -> None:
    with pytest.raises(MacroError, match="Unicode"):
        expand("'${v:percentencode}'", SPAN, {"v": "\ud800"})


def test_a_range_without_an_offset_or_with_no_bucket_is_refused() -> None:
    with pytest.raises(ValueError, match="offset"):
        Range(datetime(2026, 1, 1), datetime(2026, 1, 2, tzinfo=UTC))
    with pytest.raises(ValueError, match="second"):
        Range(SPAN.start, SPAN.end, 0)
