"""The level rule once more, in SQL over stored columns: what an auditor runs without our code.

The verdicts in the store were computed by the rules of :mod:`lookup_audit.schemas`; this
re-derives every level from the recorded numbers and the ruleset it names. A test compares all rows.
"""

from importlib import resources

from lookup_audit.processors.store import Rows, Store


def recompute_sql() -> str:
    """The query: one row a lookup with ``stored_level`` and ``sql_level``, both null if unknown."""
    return resources.files(__package__).joinpath("recompute.sql").read_text("utf-8")


def disagreements(store: Store) -> Rows:
    """Stored verdicts that the SQL rule does not confirm; none, if the promise holds."""
    return store.query(
        f"SELECT * FROM ({recompute_sql()}) WHERE stored_level IS DISTINCT FROM sql_level"
    )
