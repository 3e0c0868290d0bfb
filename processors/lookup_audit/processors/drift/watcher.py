"""The watcher: closes minutes, folds them into the detectors, tells what has changed.

Everything it knows is in ClickHouse, so it may be killed at any instant and started anywhere else.
A step counts once its last row is written; a step that broke off is made anew, under a new epoch,
and counts the same events the same way.
"""

import logging
import threading
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Final

from lookup_audit.processors.drift.channels import Outbox
from lookup_audit.processors.drift.config import DriftConfig
from lookup_audit.processors.drift.counting import Bounds, count, first_minute, next_bounds
from lookup_audit.processors.drift.family import Count, Family, Told, by_minute
from lookup_audit.processors.drift.lease import Lease
from lookup_audit.processors.drift.ledger import Ledger
from lookup_audit.processors.drift.telemetry import DriftTelemetry
from lookup_audit.processors.drift.telling import EPOCH, drift_alarm, minute_of
from lookup_audit.processors.store import Store
from lookup_audit.schemas.alarm import DriftAlarm
from lookup_audit.schemas.errors import LookupAuditError, UnavailableError

logger = logging.getLogger(__name__)

Acceptance = tuple[int, str]

# A catch-up closes hours at a time, fewer where there are many strata: what a step counts is in
# memory at once.
_SHORTEST_STEP: Final = timedelta(minutes=10)
_FIRST_STEP: Final = timedelta(hours=1)
_LONGEST_STEP: Final = timedelta(days=1)
_FEW_ROWS, _MANY_ROWS = 20_000, 100_000


class Watcher:
    """Watches every stratum.

    Args:
        store: A migrated store.
        config: The user's words.
        lease: The right to close minutes.
        holder: This watcher's name.
        clock: The time now.
        outbox: Where alarms go besides the table.
        telemetry: Counts what passes.
        board_url: Gives the page that shows a stratum.
    """

    def __init__(
        self,
        store: Store,
        config: DriftConfig,
        lease: Lease,
        *,
        holder: str,
        clock: Callable[[], datetime],
        outbox: Outbox,
        telemetry: DriftTelemetry,
        board_url: Callable[[Told], str | None] = lambda told: None,
    ):
        self._store = store
        self._config = config
        self._lease = lease
        self._holder = holder
        self._clock = clock
        self._outbox = outbox
        self._telemetry = telemetry
        self._board_url = board_url
        self._ledger = Ledger(store)
        self._family: Family | None = None
        self._at: tuple[int, int] | None = None
        self._closed_to = self._seen_to = EPOCH
        self._checkpoint_hour = -1
        self._longest = _FIRST_STEP
        self._stopping = threading.Event()
        self._problem: str | None = None

    @property
    def problem(self) -> str | None:
        """What keeps minutes from being closed or alarms from being sent, or ``None``."""
        return self._problem or self._outbox.problem

    def run(self, *, every_seconds: float = 10.0) -> None:
        """Watch until :meth:`stop`."""
        logger.info("Watcher started.")
        try:
            while not self._stopping.is_set():
                busy = False
                try:
                    busy = self.tick()
                    self._problem = None
                except LookupAuditError as error:
                    if str(error) != self._problem:
                        logger.warning("Waiting: %s", error)
                    self._problem = str(error)
                except Exception as error:
                    # Whatever it is, the next try begins from what is stored.
                    if str(error) != self._problem:
                        logger.exception("A step failed, for a reason unforeseen.")
                    self._problem = str(error)
                if not busy:
                    self._stopping.wait(every_seconds)
        finally:
            self._outbox.close()
            try:
                self._lease.release()
            except LookupAuditError as error:
                logger.warning("The lease was not released and runs out by itself: %s", error)
            logger.info("Watcher stopped.")

    def stop(self) -> None:
        """Ask :meth:`run` to return; safe from any thread or signal handler."""
        self._stopping.set()

    def tick(self) -> bool:
        """Close what can be closed now, one step; whether a step was made.

        Raises:
            UnavailableError: The store does not answer.
            StoreRejectedError: The store refuses, such as before a migration.
        """
        if not self._lease.hold():
            self._family = None
            self._telemetry.leads(False)
            return False
        self._telemetry.leads(True)
        try:
            family = self._loaded()
            made = family is not None and self._step(family)
        except Exception:
            # What this step has written is void: the next try has another epoch.
            self._lease.drop()
            self._family = None
            raise
        self._outbox.flush(self._clock())
        return made

    def _loaded(self) -> Family | None:
        """The family after the last step that counts; ``None`` before the first lookup."""
        last = self._ledger.last_step()
        at = (last.number, last.epoch) if last else (0, 0)
        if self._family is not None and at == self._at:
            return self._family
        family = Family(self._config)
        if last is None:
            first = first_minute(self._store)
            if first is None:
                return None
            self._closed_to, self._seen_to = first, EPOCH
        else:
            restored = self._ledger.restore(family)
            for step in self._ledger.steps_after(restored):
                family.config = step.config
                fold(family, self._ledger.counts(step), _read(step.acceptances))
            family.config = self._config
            self._closed_to, self._seen_to = last.closed_to, last.seen_to
            logger.info("Going on after step %d, %s.", last.number, last.closed_to)
        self._family, self._at = family, at
        return family

    def _step(self, family: Family) -> bool:
        now = self._clock()
        bounds = next_bounds(
            self._store, self._config, self._closed_to, self._seen_to, now, self._longest
        )
        if bounds is None:
            return False
        waiting = self._ledger.pending_acceptances()
        accepted = _due(waiting, bounds)
        ours = bounds.is_silent and {a for _, a in accepted} & family.open_alarms()
        if not bounds.closes and not ours:
            return False
        if not self._lease.is_held:
            raise UnavailableError("the lease ran out before the step was written")
        assert self._at is not None, "the family is loaded"
        number, epoch = self._at[0] + 1, self._lease.epoch
        found = count(self._store, self._config, bounds)
        self._size_steps(len(found))
        self._ledger.write_minutes(number, epoch, found)
        counts = [Count(minute_of(r.minute), r.key, r.k, r.n) for r in found if r.n]
        told, taken = fold(family, counts, accepted)
        who = {alarm: by for alarm, _, by in waiting}
        alarms = [
            drift_alarm(one, self._board_url, who.get(one.transition.incident.alarm_id))
            if one.transition.what == "accepted"
            else drift_alarm(one, self._board_url)
            for one in told
        ]
        self._write(family, number, epoch, bounds, alarms, taken, counts, now)
        self._telemetry.step(
            found,
            alarms,
            open_alarms=len(family.open_alarms()),
            closed_to=bounds.closed_to,
            now=now,
        )
        for alarm in alarms:
            logger.warning("%s", alarm.summary)
        return bounds.closes

    def _size_steps(self, rows: int) -> None:
        if rows < _FEW_ROWS:
            self._longest = min(4 * self._longest, _LONGEST_STEP)
        elif rows > _MANY_ROWS:
            self._longest = max(self._longest / 4, _SHORTEST_STEP)

    def _write(
        self,
        family: Family,
        number: int,
        epoch: int,
        bounds: Bounds,
        alarms: Sequence[DriftAlarm],
        taken: Sequence[Acceptance],
        counts: Sequence[Count],
        now: datetime,
    ) -> None:
        hour = minute_of(bounds.closed_to) // 60
        self._ledger.write_alarms(number, epoch, alarms)
        is_due = hour != self._checkpoint_hour
        if is_due:
            self._ledger.write_checkpoint(number, epoch, family)
        touched = {c.key for c in counts} if not taken else set(family.series)
        strata = [family.series[key] for key in sorted(touched)]
        self._ledger.write_strata(number, epoch, strata, self._config, now)
        self._ledger.commit(
            number,
            epoch,
            self._holder,
            bounds,
            [f"{minute}:{alarm}" for minute, alarm in taken],
            self._config,
            has_checkpoint=is_due,
            now=now,
        )
        self._at = (number, epoch)
        self._closed_to, self._seen_to = bounds.closed_to, bounds.seen_to
        self._checkpoint_hour = hour


def fold(
    family: Family, counts: Sequence[Count], acceptances: Sequence[Acceptance]
) -> tuple[list[Told], list[Acceptance]]:
    """Fold one step into the family.

    Args:
        family: Changed in place.
        counts: Closed minutes.
        acceptances: Minute and alarm; each takes effect before its minute is folded in.

    Returns:
        What is to be told, and the acceptances that took effect.
    """
    waiting = sorted(acceptances)
    told: list[Told] = []
    taken: list[Acceptance] = []

    def accept_until(minute: int | None) -> None:
        while waiting and (minute is None or waiting[0][0] <= minute):
            one = waiting.pop(0)
            if one[1] in family.open_alarms():
                told.extend(family.accept(one[1], one[0]))
                taken.append(one)

    for minute, here in by_minute(counts).items():
        accept_until(minute)
        told += family.minute(here)
    accept_until(None)
    return told, taken


def _due(waiting: Sequence[tuple[str, datetime, str]], bounds: Bounds) -> list[Acceptance]:
    """Acceptances that belong into a step, with the minute they take effect at."""
    due = []
    for alarm, when, _ in waiting:
        if when < bounds.closed_to or bounds.is_silent:
            minute = max(minute_of(when), minute_of(bounds.closed_from))
            due.append((minute, alarm))
    return due


def _read(acceptances: Sequence[str]) -> list[Acceptance]:
    pairs = (text.split(":", 1) for text in acceptances)
    return [(int(minute), alarm) for minute, alarm in pairs]
