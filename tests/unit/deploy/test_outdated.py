import pytest

from lookup_audit.deploy.outdated import says_if_outdated
from lookup_audit.processors.reading import QueryRefusedError
from lookup_audit.schemas.errors import ConfigError


def test_a_missing_column_is_told_as_an_old_store() -> None:
    with pytest.raises(ConfigError, match="lookup-audit migrate"), says_if_outdated():
        raise QueryRefusedError("Code: 47. DB::Exception: 'best_place' (UNKNOWN_IDENTIFIER)")


def test_any_other_refusal_stays_what_it_is() -> None:
    with pytest.raises(QueryRefusedError, match="TIMEOUT"), says_if_outdated():
        raise QueryRefusedError("Code: 159. (TIMEOUT_EXCEEDED) 'UNKNOWN_TABLE'")
