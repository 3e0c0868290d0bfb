"""What the watcher counts. Attributes come from bounded sets; a stratum is never one."""

from collections.abc import Iterable, Sequence
from datetime import datetime

from opentelemetry.metrics import CallbackOptions, Meter, Observation

from lookup_audit.processors.drift.counting import MinuteRow
from lookup_audit.schemas.alarm import DriftAlarm


class DriftTelemetry:
    """The watcher's instruments.

    Args:
        meter: Where they live.
    """

    def __init__(self, meter: Meter):
        self._alarms = meter.create_counter(
            "lookup_audit.drift.alarms", "{alarm}", "Alarms, by rate and by what became of them"
        )
        self._late = meter.create_counter(
            "lookup_audit.drift.late", "{event}", "Events that came too late for their minute"
        )
        self._steps = meter.create_counter(
            "lookup_audit.drift.steps", "{step}", "Times that minutes were closed"
        )
        self._open = 0
        self._behind = 0.0
        self._leads = 0
        meter.create_observable_gauge(
            "lookup_audit.drift.open_alarms", [lambda o: self._see(o, self._open)], "{alarm}"
        )
        meter.create_observable_gauge(
            "lookup_audit.drift.behind",
            [lambda o: self._see(o, self._behind)],
            "s",
            "Age of the newest closed minute",
        )
        meter.create_observable_gauge(
            "lookup_audit.drift.leads", [lambda o: self._see(o, self._leads)], "{watcher}"
        )

    def _see(self, _: CallbackOptions, value: float) -> Iterable[Observation]:
        return [Observation(value)]

    def leads(self, yes: bool) -> None:
        """Whether this watcher holds the lease."""
        self._leads = int(yes)

    def step(
        self,
        rows: Sequence[MinuteRow],
        alarms: Sequence[DriftAlarm],
        *,
        open_alarms: int,
        closed_to: datetime,
        now: datetime,
    ) -> None:
        """A step that counts."""
        self._steps.add(1)
        for reason in ("late", "missed"):
            if count := sum(getattr(row, reason) for row in rows):
                self._late.add(count, {"reason": reason})
        for alarm in alarms:
            if alarm.revision == 1 or alarm.state != "open":
                self._alarms.add(1, {"metric": str(alarm.metric), "state": alarm.state})
        self._open = open_alarms
        self._behind = max(0.0, (now - closed_to).total_seconds())
