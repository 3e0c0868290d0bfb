"""Lookups straight from events: audited here by the shared rules, with nothing stored."""

from collections.abc import Iterable
from dataclasses import dataclass

from lookup_audit.processors.calibration.asked import Asked, in_order
from lookup_audit.schemas.case import LookupCase
from lookup_audit.schemas.decode import LOOKUPS
from lookup_audit.schemas.errors import Rejected
from lookup_audit.schemas.fields import format_instant, parse_instant
from lookup_audit.schemas.ruleset import Registry


@dataclass(frozen=True, slots=True)
class Emitted:
    """The accepted lookups, and every refused event with its place."""

    lookups: list[Asked]
    rejected: list[tuple[str, Rejected]]


def read_emitted(events: Iterable[tuple[str, bytes]], registry: Registry) -> Emitted:
    """Decode and lay out lookups; of events with one id and tenant the first counts.

    Args:
        events: Place and bytes of each lookup event.
        registry: Rulesets that are in force; without one, each event's own thresholds hold.
    """
    lookups: dict[tuple[str, str], Asked] = {}
    rejected = []
    for place, raw in events:
        decoded = LOOKUPS.decode(raw)
        if isinstance(decoded, Rejected):
            rejected.append((place, decoded))
            continue
        case = LookupCase(decoded.record, registry, decoded.unknown_fields)
        asked = asked_of(case)
        lookups.setdefault((asked.tenant, asked.event_id), asked)
    return Emitted(list(lookups.values()), rejected)


def asked_of(case: LookupCase) -> Asked:
    """One audited event."""
    record = case.record
    kept, has_order = in_order(case.kept)
    chosen = record.selected_chunk_ids
    return Asked(
        event_id=record.event_id,
        tenant=record.tenant or "",
        service=(record.service.name if record.service is not None else None) or "",
        occurred_at=format_instant(parse_instant(record.occurred_at)),
        mode=record.mode,
        model_version=record.model_version,
        query_text=(record.query.text if record.query is not None else None) or "",
        top_k=record.top_k,
        ruleset=case.ruleset,
        candidate_count=len(record.candidates),
        kept=kept,
        has_order=has_order,
        selected=None if chosen is None else tuple(chosen),
    )
