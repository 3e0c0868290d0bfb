"""Events straight to Kafka, by the collector's own rules: same decision, same envelope, same acks.

Needs kafka-python (``pip install 'lookup-audit[kafka]'``). A producer that failed once is retired
and a fresh one is made for the next try.
"""

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime

from lookup_audit.collector.config import CollectorConfig
from lookup_audit.collector.emitter.config import EmitterConfig
from lookup_audit.collector.emitter.transport import Answer, Delivered, TryAgain
from lookup_audit.collector.envelope import Arrival, wrap
from lookup_audit.collector.ingest import decide
from lookup_audit.collector.publishing import OutgoingRecord
from lookup_audit.schemas.errors import ConfigError, Rejected
from lookup_audit.schemas.names import EventType

try:
    from lookup_audit.collector.publisher import (
        KafkaSession,
        check_options,
        is_neighbour,
        refusal,
    )
except ImportError as error:
    raise ConfigError(
        "bootstrap_servers needs kafka-python; install it with pip install 'lookup-audit[kafka]', "
        "or send to a collector with url"
    ) from error


class KafkaTransport:
    """Publishes batches and waits until all in-sync replicas have them.

    Args:
        config: Brokers and limits.
        clock: Gives aware times.
        on_connect: Called when a new client was made.
    """

    def __init__(
        self,
        config: EmitterConfig,
        *,
        clock: Callable[[], datetime],
        on_connect: Callable[[], None] = lambda: None,
    ):
        check_options(config.kafka_options)
        self._config = CollectorConfig.load(
            bootstrap_servers=config.bootstrap_servers,
            kafka_options=config.kafka_options,
            max_event_bytes=config.max_event_bytes,
            publish_timeout_seconds=min(60.0, max(0.5, config.request_timeout_seconds)),
        )
        self._clock = clock
        self._on_connect = on_connect
        self._session: KafkaSession | None = None

    def send(self, kind: EventType, values: Sequence[bytes]) -> Answer:
        """See :class:`lookup_audit.collector.emitter.transport.Transport`."""
        rejected: Counter[str] = Counter()
        records = []
        arrival = Arrival(self._clock())
        for value in values:
            verdict = decide(value, kind, config=self._config, arrival=arrival)
            if isinstance(verdict, Rejected):
                rejected[str(verdict.reason)] += 1
            else:
                records.append(wrap(verdict, kind, arrival))
        try:
            return self._publish(records, rejected)
        except Exception as error:
            # Whatever a client raises that cannot connect, it means "not now".
            self.close()
            return TryAgain(f"{type(error).__name__}: {error}")

    def _publish(self, records: list[OutgoingRecord], rejected: Counter[str]) -> Answer:
        while records:
            if self._session is None:
                self._session = KafkaSession(self._config)
                self._on_connect()
            outcomes = _Outcomes(len(records))
            self._session.send(records, outcomes)
            again = []
            refused = 0
            for record, error in zip(records, outcomes.wait(), strict=True):
                answer = refusal(record, error)
                if answer is not None:
                    refused += 1
                    rejected[str(answer.reason)] += 1
                elif is_neighbour(error):
                    again.append(record)
                elif error is not None:
                    raise error
            if again and not refused:
                return TryAgain("the broker does not confirm")
            # A broker refuses a whole batch for one bad record; the good ones go again.
            records = again
        return Delivered(rejected)

    def close(self) -> None:
        """Close the producer; the next batch makes a new one."""
        session, self._session = self._session, None
        if session is not None:
            session.close()

    def forget(self) -> None:
        """The producer's threads did not come along; nothing of it may be used."""
        self._session = None


class _Outcomes:
    """What became of each record of one batch."""

    def __init__(self, count: int):
        self._outcomes: list[BaseException | None] = [None] * count
        self._open = count
        self._lock = threading.Lock()
        self._done = threading.Event()

    def settle(self, index: int, outcome: object) -> None:
        """Note what became of one record."""
        if isinstance(outcome, BaseException):
            self._outcomes[index] = outcome
        with self._lock:
            self._open -= 1
            if not self._open:
                self._done.set()

    def wait(self) -> list[BaseException | None]:
        """Every outcome; the producer settles all within its delivery timeout."""
        self._done.wait()
        return self._outcomes
