"""The one tree of errors, and the value that bad input becomes.

    LookupAuditError
     ├── ConfigError           a setting or argument is wrong; the message names the fix (exit 2)
     ├── UnavailableError      a dependency does not answer; the same call may work later
     └── StoreRejectedError    the store answered and refuses this data; retrying is useless

Two questions decide the class: would the same input fail again, and when may it be tried again?
Bad *events* are not exceptions: they become :class:`Rejected` values, are counted, kept byte for
byte and can be replayed.
"""

from dataclasses import dataclass

from lookup_audit.schemas.names import Reason


class LookupAuditError(Exception):
    """Base of every error that the product raises on purpose."""


class ConfigError(LookupAuditError):
    """A setting, argument or file of the user's is wrong; the message says what to change."""


class UnavailableError(LookupAuditError):
    """A broker or database does not answer now.

    Args:
        message: What was tried, in a sentence.
        retry_after_seconds: When it makes sense to try again.
    """

    def __init__(self, message: str, *, retry_after_seconds: float = 1.0):
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds


class StoreRejectedError(LookupAuditError):
    """The store understood the request and refuses the data; a retry would fail again."""


@dataclass(frozen=True, slots=True)
class Rejected:
    """Why one event is not accepted: a value that travels to the caller or the dead letters.

    Args:
        reason: Bounded code, safe to count by.
        field: JSON path of the offending field (``candidates[0].dense_distance``), or ``""``.
        message: One sentence that names the fix.
        event_id: The event's id where it could be read, or ``""``.
    """

    reason: Reason
    field: str
    message: str
    event_id: str = ""
