"""What putting a ruleset in force would mean for verdicts that are stored already."""

from collections.abc import Sequence
from dataclasses import dataclass

from lookup_audit.processors.reading import Reader, rows
from lookup_audit.processors.replay.scope import store_time
from lookup_audit.schemas.fields import format_instant
from lookup_audit.schemas.ruleset import Appointment, Registry


@dataclass(frozen=True, slots=True)
class Passed:
    """Stored verdicts of one service and mode that an appointment comes too late for.

    Args:
        service: Service.
        mode: Retrieval mode.
        verdicts: Given by another ruleset, or by none, where this one would have decided.
    """

    service: str
    mode: str
    verdicts: int


# Between two appointments the same ruleset is in force: one number a span tells which it was.
_SPANS = """
SELECT
    service, mode,
    length(arrayFilter(t -> t <= occurred_at, {times:Array(DateTime64(6, 'UTC'))})) AS span,
    count() AS n
FROM audit_store.lookups
WHERE occurred_at >= {since:DateTime64(6, 'UTC')} AND ruleset_id != {ruleset_id:String}
    AND {service:String} IN ('', service) AND {mode:String} IN ('', mode)
    AND mode IN ('dense', 'hybrid')
GROUP BY service, mode, span
ORDER BY service, mode, span
"""


def passed_verdicts(
    reader: Reader, new: Appointment, appointments: Sequence[Appointment]
) -> list[Passed]:
    """Stored verdicts that the appointment would have decided; they keep the one they have.

    Args:
        reader: Where the verdicts are.
        new: The appointment to be made.
        appointments: Those made before.
    """
    registry = Registry([*appointments, new])
    times = sorted({a.effective_from for a in (*appointments, new)})
    parameters = {
        "times": [store_time(moment) for moment in times],
        "since": store_time(new.effective_from),
        "ruleset_id": new.ruleset.ruleset_id,
        "service": new.service,
        "mode": new.mode,
    }
    found: dict[tuple[str, str], int] = {}
    for row in rows(reader, _SPANS, parameters):
        service, mode = row["service"], row["mode"]
        deciding = registry.in_force(service, mode, format_instant(times[row["span"] - 1]))
        if deciding == new.ruleset:
            found[service, mode] = found.get((service, mode), 0) + row["n"]
    return [Passed(service, mode, n) for (service, mode), n in found.items()]
