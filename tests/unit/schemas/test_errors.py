import pytest

from lookup_audit.schemas.errors import (
    ConfigError,
    LookupAuditError,
    Rejected,
    StoreRejectedError,
    UnavailableError,
)
from lookup_audit.schemas.names import Reason


@pytest.mark.parametrize("error", [ConfigError, UnavailableError, StoreRejectedError])
def test_one_base_catches_every_error(error: type[LookupAuditError]) -> None:
    with pytest.raises(LookupAuditError, match="why"):
        raise error("why")


def test_an_unavailable_dependency_says_when_to_try_again() -> None:
    assert UnavailableError("no answer", retry_after_seconds=7).retry_after_seconds == 7


def test_a_refusal_is_a_value_and_not_an_exception() -> None:
    refusal = Rejected(Reason.NON_FINITE, "candidates[0].score", "why", "e")

    assert not isinstance(refusal, BaseException)
    assert refusal == Rejected(Reason.NON_FINITE, "candidates[0].score", "why", "e")


def test_a_reason_is_its_code() -> None:
    assert f"{Reason.FUTURE_TIME}" == "future_time"
