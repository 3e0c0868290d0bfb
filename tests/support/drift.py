"""Traffic for the drift watcher, stored by the engine itself, and a watcher to look at it."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
from opentelemetry.metrics import NoOpMeterProvider

from lookup_audit.processors.drift.channels import Channel, Outbox
from lookup_audit.processors.drift.config import DriftConfig
from lookup_audit.processors.drift.lease import Lease
from lookup_audit.processors.drift.ledger import Ledger
from lookup_audit.processors.drift.telemetry import DriftTelemetry
from lookup_audit.processors.drift.watcher import Watcher
from lookup_audit.processors.store import Rows, Store

START = datetime(2026, 11, 2, tzinfo=UTC)  # a Monday
# A first week's caution would need a week of traffic in every test.
CONFIG = DriftConfig(young_days=0.0, reference_days=1.0)

_TRAFFIC = """
INSERT INTO audit_store.lookups
    (event_id, occurred_at, ingested_at, tenant, service, mode, model_version, quality_basis,
     reported_level, level_check, late, kafka_cluster, kafka_topic, kafka_partition, kafka_offset,
     kafka_timestamp)
SELECT
    concat({name:String}, '-', toString(number)),
    toDateTime64({start:String}, 6, 'UTC')
        + toIntervalMillisecond(intDiv(number * 60000, {a_minute:UInt32})) AS at,
    at + toIntervalMillisecond({delay:Int64} + {stored_after:Int64}),
    {tenant:String}, 'kb', {mode:String}, {model:String}, {basis:String},
    if(cityHash64({name:String}, number) % 1000000 < {rate:Float64} * 1000000, 'PRECISE', 'NONE'),
    'pass', {delay:Int64} > 86400000, 'cluster-1', 'lookup.results.v1', 0, number,
    at + toIntervalMillisecond({delay:Int64})
FROM numbers({count:UInt64})
"""


def add_traffic(
    store: Store,
    name: str,
    *,
    start: datetime = START,
    hours: float = 24.0,
    a_minute: int = 2,
    rate: float = 0.6,
    tenant: str = "acme",
    mode: str = "dense",
    model: str = "m1",
    basis: str = "dense_l2",
    delay: timedelta = timedelta(0),
    stored_after: timedelta = timedelta(seconds=1),
) -> datetime:
    """Store lookups at an even pace; returns when they end.

    Args:
        store: Where.
        name: Prefix of the event ids; also decides which lookups are PRECISE.
        start: Of the first lookup.
        hours: How long.
        a_minute: Lookups a minute.
        rate: Share that is PRECISE.
        tenant: Whose.
        mode: Of all of them.
        model: Of all of them.
        basis: Of all of them.
        delay: From a lookup to Kafka.
        stored_after: From Kafka to the store.
    """
    store.command(
        _TRAFFIC,
        {
            "name": name,
            "start": f"{start:%Y-%m-%d %H:%M:%S}",
            "a_minute": a_minute,
            "delay": int(delay.total_seconds() * 1000),
            "stored_after": int(stored_after.total_seconds() * 1000),
            "tenant": tenant,
            "mode": mode,
            "model": model,
            "basis": basis,
            "rate": rate,
            "count": int(hours * 60 * a_minute),
        },
    )
    return start + timedelta(hours=hours)


class Time:
    """A clock to be set, and sleeps that take no time."""

    def __init__(self, now: datetime):
        self.now = now
        self.uptime = 0.0

    def __call__(self) -> datetime:
        return self.now

    def monotonic(self) -> float:
        return self.uptime

    def sleep(self, seconds: float) -> None:
        self.uptime += seconds

    def advance(self, **how: float) -> None:
        self.now += timedelta(**how)
        self.uptime += timedelta(**how).total_seconds()


def make_watcher(
    store: Store,
    time: Time,
    *,
    holder: str = "watcher-1",
    config: DriftConfig = CONFIG,
    channels: Sequence[Channel] = (),
) -> Watcher:
    """A watcher whose clock is the test's."""
    lease = Lease(
        store, holder, clock=time, monotonic=time.monotonic, sleep=time.sleep, seconds=60.0
    )
    return Watcher(
        store,
        config,
        lease,
        holder=holder,
        clock=time,
        outbox=Outbox(Ledger(store), channels),
        telemetry=DriftTelemetry(NoOpMeterProvider().get_meter("test")),
        board_url=lambda told: f"http://board/{told.key.tenant}",
    )


def settle(watcher: Watcher) -> int:
    """Close everything that can be closed; returns the steps made."""
    steps = 0
    while watcher.tick():
        steps += 1
    return steps


_ALARMS = """
SELECT alarm_id, revision, state, metric, tenant, service, mode, model_version, quality_basis,
       direction, started_at, detected_at, closed_at, reference_rate, observed_rate, change_points,
       change_low, change_high, calls, successes, reference_calls, design_effect, compared_to,
       accepted_by, summary, board_url
FROM audit.drift_alarms ORDER BY alarm_id
"""


def alarms(store: Store) -> list[dict[str, Any]]:
    """The alarm table as an auditor reads it."""
    return [
        {
            name: value.replace(tzinfo=UTC) if isinstance(value, datetime) else value
            for name, value in row.items()
        }
        for row in store.query(_ALARMS).dicts()
    ]


def forget_drift(store: Store) -> None:
    """Empty what the watcher knows; events and acceptances stay."""
    for table in ("leases", "steps", "minutes", "states", "strata", "alarms", "deliveries"):
        store.command(f"TRUNCATE TABLE audit_store.drift_{table}")


class Killed(BaseException):
    """The process is gone."""


class KillingStore:
    """A store whose user is killed at one chosen write.

    Args:
        inner: The store that works.
        at: Number of the write, from 1.
        before: Killed before the write reaches the store; otherwise after it is stored.
    """

    parameter_bytes = 60_000

    def __init__(self, inner: Store, at: int, *, before: bool = False):
        self.inner = inner
        self.writes = 0
        self._at = at
        self._before = before

    def insert(self, table: str, batch: pa.Table, *, token: str) -> None:
        self.writes += 1
        if self.writes == self._at and self._before:
            raise Killed
        self.inner.insert(table, batch, token=token)
        if self.writes == self._at:
            raise Killed

    def query(self, sql: str, parameters: Mapping[str, Any] | None = None) -> Rows:
        return self.inner.query(sql, parameters)

    def command(self, sql: str, parameters: Mapping[str, Any] | None = None) -> None:
        self.inner.command(sql, parameters)

    def raw(
        self, sql: str, *, output_format: str, parameters: Mapping[str, Any] | None = None
    ) -> bytes:
        return self.inner.raw(sql, output_format=output_format, parameters=parameters)

    def sole_writer(self) -> AbstractContextManager[bool]:
        return nullcontext(False)

    def close(self) -> None:
        self.inner.close()


class InterruptedStore(KillingStore):
    """A store where something else happens in the middle of one write.

    Args:
        inner: The store that works.
        table: Qualified name of the table.
        at: Number of the write to that table, from 1.
        meanwhile: What happens before it is stored.
    """

    def __init__(self, inner: Store, table: str, at: int, meanwhile: Callable[[], None]):
        super().__init__(inner, at=0)
        self._table = table
        self._left = at
        self._meanwhile = meanwhile

    def insert(self, table: str, batch: pa.Table, *, token: str) -> None:
        if table == self._table:
            self._left -= 1
            if self._left == 0:
                self._meanwhile()
        super().insert(table, batch, token=token)
