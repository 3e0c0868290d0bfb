"""A store whose tables are older than this version: said in words, with the fix."""

from collections.abc import Iterator
from contextlib import contextmanager

from lookup_audit.processors.reading import QueryRefusedError
from lookup_audit.schemas.errors import ConfigError

# ClickHouse's names for a column, a table or a database that is not there.
_MISSING = ("UNKNOWN_IDENTIFIER", "UNKNOWN_TABLE", "UNKNOWN_DATABASE", "NO_SUCH_COLUMN_IN_TABLE")


@contextmanager
def says_if_outdated() -> Iterator[None]:
    """Turn a refusal for want of a table or column into the sentence that helps.

    Raises:
        ConfigError: The store is older than this version.
        QueryRefusedError: Any other refusal.
    """
    try:
        yield
    except QueryRefusedError as error:
        if any(f"({name})" in str(error) for name in _MISSING):
            raise ConfigError(
                "the store's tables are older than this version; run 'lookup-audit migrate' on a "
                "server, or start 'lookup-audit up' once on a data directory"
            ) from error
        raise
