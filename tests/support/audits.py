"""From an event to its verdict in one call, for tests of the rules."""

from datetime import UTC, datetime

from lookup_audit.schemas.decode import LOOKUPS, Decoded
from lookup_audit.schemas.errors import Rejected
from lookup_audit.schemas.names import CheckName
from lookup_audit.schemas.records import LookupResult
from lookup_audit.schemas.ruleset import DEFAULT_RULESET, Appointment, Registry, Ruleset
from lookup_audit.schemas.verdict import AuditedLookup, audit
from tests.support.events import Event, encode


def registry_of(*rulesets: Ruleset) -> Registry:
    """A registry where the last ruleset is in force everywhere and the others were before it."""
    return Registry(
        Appointment(ruleset, datetime(2000 + index, 1, 1, tzinfo=UTC))
        for index, ruleset in enumerate(rulesets)
    )


DEFAULT_REGISTRY = registry_of(DEFAULT_RULESET)
NO_REGISTRY = Registry()


def accepted(event: Event | bytes) -> Decoded[LookupResult]:
    """Decode a lookup that must be accepted."""
    result = LOOKUPS.decode(event if isinstance(event, bytes) else encode(event))
    assert isinstance(result, Decoded), result
    return result


def rejected(event: Event | bytes) -> Rejected:
    """Decode a lookup that must be refused."""
    result = LOOKUPS.decode(event if isinstance(event, bytes) else encode(event))
    assert isinstance(result, Rejected), result
    return result


def audited(event: Event | bytes, registry: Registry = DEFAULT_REGISTRY) -> AuditedLookup:
    """Decode and audit a lookup that must be accepted."""
    return audit(accepted(event), registry)


def outcome_of(verdict: AuditedLookup, check: CheckName) -> str:
    """``pass``, or the status and reason of a check: ``fail:dropped_chunk@doc-1``."""
    for status, findings in (("fail", verdict.failures), ("unverifiable", verdict.unverifiable)):
        for text in findings:
            name, _, reason = text.partition(":")
            if name == check:
                return f"{status}:{reason}"
    return "pass"
