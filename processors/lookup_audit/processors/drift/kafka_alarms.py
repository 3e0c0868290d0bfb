"""Alarms to Kafka: a record for each revision, keyed by the stratum, so that its order is kept."""

import secrets
from collections.abc import Sequence
from datetime import datetime
from urllib.parse import quote

from kafka.errors import KafkaError

from lookup_audit.processors.kafka_producer import LazyProducer
from lookup_audit.processors.kafka_source import KafkaConfig
from lookup_audit.schemas.alarm import DriftAlarm
from lookup_audit.schemas.errors import UnavailableError
from lookup_audit.schemas.fields import format_instant
from lookup_audit.schemas.names import ALARM_TYPE, Header, Topic


class KafkaAlarms:
    """Publishes to ``lookup.alarms.v1``.

    Args:
        config: The brokers.
        timeout_seconds: How long to wait for all of a call's records.
    """

    def __init__(self, config: KafkaConfig, *, timeout_seconds: float = 30.0):
        self._timeout = timeout_seconds
        self._producer = LazyProducer(config, timeout_seconds)

    @property
    def name(self) -> str:
        """See :class:`Channel`."""
        return "kafka"

    def send(self, alarms: Sequence[DriftAlarm], now: datetime) -> None:
        """See :meth:`Channel.send`."""
        try:
            producer = self._producer.connected()
            futures = [
                producer.send(
                    Topic.ALARMS.value,
                    key=alarm_key(alarm),
                    value=alarm.model_dump_json().encode("utf-8", "surrogatepass"),
                    headers=alarm_headers(alarm, now),
                )
                for alarm in alarms
            ]
            producer.flush(timeout=self._timeout)
            for future in futures:
                future.get(timeout=self._timeout)
        except KafkaError as error:
            self.close()
            raise UnavailableError(f"Kafka has not confirmed alarms: {error}") from error

    def repeat(self, open_alarms: Sequence[DriftAlarm], now: datetime) -> None:
        """Nothing: Kafka does not forget."""

    def close(self) -> None:
        """See :meth:`Channel.close`."""
        self._producer.close()


def alarm_key(alarm: DriftAlarm) -> bytes:
    """The stratum, as the record's key."""
    parts = (alarm.metric, alarm.tenant, alarm.service, alarm.mode, alarm.model_version)
    return "/".join(quote(str(part), safe="*") for part in parts).encode()


def alarm_headers(alarm: DriftAlarm, now: datetime) -> list[tuple[str, bytes]]:
    """CloudEvents headers and one trace context of its own."""
    source = f"urn:lookup-audit:{quote(alarm.tenant, safe='')}:{quote(alarm.service, safe='')}"
    trace = f"00-{secrets.token_hex(15)}01-{secrets.token_hex(7)}01-01"
    headers: list[tuple[Header, str]] = [
        (Header.CONTENT_TYPE, "application/json"),
        (Header.SPEC_VERSION, "1.0"),
        (Header.ID, f"{alarm.alarm_id}/{alarm.revision}"),
        (Header.SOURCE, source),
        (Header.TYPE, ALARM_TYPE),
        (Header.TIME, format_instant(alarm.closed_at or alarm.detected_at)),
        (Header.RECORDED_TIME, format_instant(now)),
        (Header.TRACE_PARENT, trace),
    ]
    return [(header.value, value.encode()) for header, value in headers]
