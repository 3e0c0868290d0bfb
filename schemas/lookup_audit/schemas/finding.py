"""What one check of a lookup found: the value that all checks return."""

from typing import NamedTuple

from lookup_audit.schemas.names import CheckStatus


class Finding(NamedTuple):
    """What one check found.

    Args:
        status: ``fail`` or ``unverifiable``.
        reason: Bounded code.
        where: Place in the event, such as ``candidates[2]``, or ``""``.
    """

    status: CheckStatus
    reason: str
    where: str = ""


def fail(reason: str, where: str = "") -> Finding:
    """Something recorded is wrong."""
    return Finding("fail", reason, where)


def unverifiable(reason: str, where: str = "") -> Finding:
    """An input of the check is missing."""
    return Finding("unverifiable", reason, where)
