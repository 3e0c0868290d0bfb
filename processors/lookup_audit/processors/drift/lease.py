"""One leader at a time: a lease with an expiry, and an epoch that only rises.

ClickHouse has no compare-and-set. A candidate writes its claim to the next epoch, waits until any
rival that read the same state must have written too, and then the smallest name of the epoch wins.
What a leader writes carries its epoch, and of two leaders the higher epoch holds, so that one that
slept past its expiry changes nothing.
"""

import logging
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, Final

import pyarrow as pa

from lookup_audit.processors.drift.counting import text
from lookup_audit.processors.store import Store

logger = logging.getLogger(__name__)

_MILLIS: Final = pa.timestamp("ms", tz="UTC")
_NEWEST = """
SELECT
    greatest(
        (SELECT max(epoch) FROM audit_store.drift_leases),
        (SELECT max(epoch) FROM audit_store.drift_steps)
    ) AS epoch,
    (SELECT count() FROM (
        SELECT
            holder,
            argMax(expires_at, (acquired_at, -toUnixTimestamp64Milli(expires_at))) AS until
        FROM audit_store.drift_leases
        WHERE epoch = (SELECT max(epoch) FROM audit_store.drift_leases)
        GROUP BY holder)
     WHERE until > {now:DateTime64(6, 'UTC')} AND holder != {me:String}) AS held
"""
_WINNER = "SELECT min(holder) FROM audit_store.drift_leases WHERE epoch = {epoch:UInt64}"


class Lease:
    """The right to close minutes.

    Args:
        store: Where the leases are.
        holder: This watcher's name, unlike any other's.
        clock: The time now.
        seconds: How long a lease lasts without renewal.
        settle_seconds: How long a claim waits for its rivals; 0 where there can be none.
        monotonic: A clock that nobody sets; a holder trusts its lease by this one only.
        sleep: Waits.
    """

    def __init__(
        self,
        store: Store,
        holder: str,
        *,
        clock: Callable[[], datetime],
        seconds: float = 60.0,
        settle_seconds: float = 2.0,
        monotonic: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Any] = time.sleep,
    ):
        self.epoch = 0
        self._store = store
        self._holder = holder
        self._clock = clock
        self._seconds = seconds
        self._settle = settle_seconds
        self._monotonic = monotonic
        self._sleep = sleep
        self._until = 0.0
        self._number = 0

    @property
    def is_held(self) -> bool:
        """Whether this watcher may write now."""
        return self.epoch > 0 and self._monotonic() < self._until

    def hold(self) -> bool:
        """Take or renew the lease; ``False`` while another holds it.

        Raises:
            UnavailableError: The store does not answer.
        """
        asked = self._monotonic()
        newest, held = self._store.query(_NEWEST, {"now": text(self._clock()), "me": self._holder})[
            0
        ]
        if self.epoch and (newest > self.epoch or not self.is_held):
            logger.warning("Another watcher leads now, or the lease ran out; starting anew.")
            self.drop()
        if not self.epoch and held:
            return False
        if self.epoch:
            if self._until - asked < self._seconds / 2.0:
                self._write(self.epoch)
                self._until = asked + self._seconds
            return True
        return self._claim(int(newest) + 1, asked)

    def drop(self) -> None:
        """Lead no more: the next lease has a new epoch."""
        self.epoch = 0
        self._until = 0.0

    def release(self) -> None:
        """Let another take over at once; safe to call without a lease."""
        if self.epoch:
            self._write(self.epoch, expired=True)
        self.drop()

    def _claim(self, epoch: int, asked: float) -> bool:
        self._write(epoch)
        if self._settle and self._monotonic() - asked > self._settle / 2.0:
            # The store was so slow that a rival, who did not see this claim, may lead by now.
            return False
        self._sleep(self._settle)
        if self._store.query(_WINNER, {"epoch": epoch}).scalar() != self._holder:
            return False
        self.epoch, self._until = epoch, asked + self._seconds
        logger.info("This watcher leads, epoch %d.", epoch)
        return True

    def _write(self, epoch: int, *, expired: bool = False) -> None:
        now = self._clock()
        end = now if expired else now + timedelta(seconds=self._seconds)
        self._number += 1
        batch = pa.table(
            {
                "epoch": pa.array([epoch], pa.uint64()),
                "holder": pa.array([self._holder], pa.string()),
                "acquired_at": pa.array([now], _MILLIS),
                "expires_at": pa.array([end], _MILLIS),
            }
        )
        token = f"lease;{self._holder};{epoch};{self._number}"
        self._store.insert("audit_store.drift_leases", batch, token=token)
