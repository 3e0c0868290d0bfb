"""Reading figures: the one thing that every analysis needs of a database.

A store, a server over HTTP and a data directory at rest all satisfy it, so an analysis does not
know where its rows come from.
"""

import json
from collections.abc import Mapping
from typing import Any, Protocol

from lookup_audit.schemas.errors import LookupAuditError


class QueryRefusedError(LookupAuditError):
    """The engine refuses a statement; the message is the engine's own."""


class Reader(Protocol):
    """Answers one reading statement in a ClickHouse output format."""

    def raw(
        self, sql: str, *, output_format: str, parameters: Mapping[str, Any] | None = None
    ) -> bytes:
        """Run a statement.

        Args:
            sql: One reading statement.
            output_format: Such as ``JSONEachRow``.
            parameters: Values of ``{name:Type}``, bound by the engine.

        Raises:
            QueryRefusedError: The statement is wrong or would change something.
            UnavailableError: Nothing answers.
        """

    def close(self) -> None:
        """Release what is held."""


def rows(
    reader: Reader, sql: str, parameters: Mapping[str, Any] | None = None
) -> list[dict[str, Any]]:
    """The rows of an answer as mappings; 64-bit integers are numbers, not text."""
    answer = reader.raw(
        f"{sql.rstrip().rstrip(';')}\nSETTINGS output_format_json_quote_64bit_integers = 0",
        output_format="JSONEachRow",
        parameters=parameters,
    )
    return [json.loads(line) for line in answer.splitlines() if line]
