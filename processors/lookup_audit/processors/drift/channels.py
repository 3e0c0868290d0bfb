"""Where alarms go besides the table: Kafka for programs, a webhook for people's pagers.

A channel gets every event until it has taken it; what it took is remembered in the store, so that
a restart sends nothing twice unless it died between the two.
"""

import logging
from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from lookup_audit.processors.drift.ledger import Ledger
from lookup_audit.schemas.alarm import DriftAlarm
from lookup_audit.schemas.errors import LookupAuditError

logger = logging.getLogger(__name__)


class Channel(Protocol):
    """Takes alarms somewhere."""

    @property
    def name(self) -> str:
        """Under which its deliveries are remembered; never changes."""

    def send(self, alarms: Sequence[DriftAlarm], now: datetime) -> None:
        """Hand over events, oldest first; returns when they are taken.

        Raises:
            UnavailableError: The other side does not answer; the same may work later.
            ConfigError: The other side refuses.
        """

    def repeat(self, open_alarms: Sequence[DriftAlarm], now: datetime) -> None:
        """Say again what is still open, where the other side forgets."""

    def close(self) -> None:
        """Release what is held."""


class Outbox:
    """Empties what was not delivered yet into the channels; one that fails harms no other.

    Args:
        ledger: Where alarms and deliveries are.
        channels: Where they go.
    """

    def __init__(self, ledger: Ledger, channels: Sequence[Channel]):
        self._ledger = ledger
        self._channels = list(channels)
        self._problems: dict[str, str] = {}

    @property
    def problem(self) -> str | None:
        """What keeps alarms from being delivered, or ``None``."""
        return next(iter(self._problems.values()), None)

    def flush(self, now: datetime) -> None:
        """Deliver what is waiting.

        Raises:
            UnavailableError: The store does not answer.
        """
        for channel in self._channels:
            waiting = self._ledger.undelivered(channel.name)
            try:
                if waiting:
                    channel.send(waiting, now)
                    self._ledger.write_deliveries(channel.name, waiting, now)
                channel.repeat(self._ledger.open_alarms(), now)
            except LookupAuditError as error:
                if self._problems.get(channel.name) != str(error):
                    logger.warning("Alarms wait for %s: %s", channel.name, error)
                self._problems[channel.name] = str(error)
            else:
                self._problems.pop(channel.name, None)

    def close(self) -> None:
        """Close the channels."""
        for channel in self._channels:
            channel.close()


def newest_of_each(alarms: Sequence[DriftAlarm]) -> list[DriftAlarm]:
    """The last word on each alarm, in order of first mention."""
    newest: dict[str, DriftAlarm] = {}
    for alarm in alarms:
        known = newest.get(alarm.alarm_id)
        if known is None or alarm.revision > known.revision:
            newest[alarm.alarm_id] = alarm
    return list(newest.values())
