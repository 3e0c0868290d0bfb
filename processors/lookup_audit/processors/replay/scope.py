"""Which lookups are judged again, by which ruleset, and the query that every replay builds on."""

from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import resources

from lookup_audit.schemas.ruleset import Ruleset

# What the store's times can hold.
EARLIEST = datetime(1900, 1, 1, tzinfo=UTC)
LATEST = datetime(2299, 1, 1, tzinfo=UTC)

UNVERIFIABLE = "unverifiable"


@dataclass(frozen=True, slots=True)
class Scope:
    """The part of stored history that is looked at.

    Args:
        since: From this time on, inclusive.
        until: Up to this time, exclusive.
        tenant: One tenant, or ``""`` for all.
    """

    since: datetime = EARLIEST
    until: datetime = LATEST
    tenant: str = ""

    def parameters(self, ruleset: Ruleset) -> dict[str, object]:
        """Values of the query's parameters."""
        return {
            "ruleset": ruleset.model_dump_json(),
            "since": store_time(self.since),
            "until": store_time(self.until),
            "tenant": self.tenant,
        }


def store_time(moment: datetime) -> str:
    """An aware time as the engine reads it for a ``DateTime64(6, 'UTC')`` parameter.

    >>> store_time(datetime(2026, 11, 30, 12, tzinfo=UTC))
    '2026-11-30 12:00:00.000000'
    """
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S.%f}"


# Read before anything is reckoned, so that a lookup without an outcome costs one number.
_ANSWERED = "PREWHERE id_hash IN (SELECT id_hash FROM audit_store.outcome_links)"


def judged_sql(*, answered: bool = False) -> str:
    """The query: one row a lookup with its level as it ``was`` and as it ``becomes``.

    Parameters: ``ruleset`` (content as JSON), ``since``, ``until``, ``tenant``.

    Args:
        answered: Only lookups that have an outcome.
    """
    sql = resources.files(__package__).joinpath("judged.sql").read_text("utf-8")
    return sql.replace("-- only", _ANSWERED if answered else "")
