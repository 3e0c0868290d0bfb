from typing import Any

import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from lookup_audit.dashboards.yaml_text import yaml_text

_TEXT = st.text(st.characters(exclude_categories=["Cs"])) | st.text("ab \n-:#'\"|{}", max_size=12)
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | _TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_TEXT, inner, max_size=4),
    max_leaves=20,
)


@given(_VALUES)
@example({"for": "10m", "no": "no", "x": ["- a", "b: c\nd", "", " lead\nnext", "tail \nnext"]})
@example([[1, [2, {"a": []}]], {"b": {"c": "x\n\ny"}}])
def test_what_is_written_is_read_back(value: Any) -> None:
    assert yaml.safe_load(yaml_text(value)) == value


def test_a_statement_is_a_block_that_people_can_read() -> None:
    assert yaml_text({"rawSql": "SELECT 1\nFROM t"}) == "rawSql: |-\n  SELECT 1\n  FROM t\n"


def test_the_heading_is_a_comment() -> None:
    assert yaml_text({"a": 1}, heading="one\ntwo") == "# one\n# two\na: 1\n"
