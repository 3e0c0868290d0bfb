"""What the processor counts: in, out, repeated, dead-lettered, and how long storing takes.

Names follow the messaging and database conventions of OpenTelemetry where they have one. No id and
no text of an event is ever an attribute.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from opentelemetry.metrics import CallbackOptions, Meter, Observation

from lookup_audit.processors.batch import EncodedBatch, Message
from lookup_audit.processors.kafka_source import Place
from lookup_audit.processors.sink import Written


class ProcessorTelemetry:
    """The processor's instruments.

    Args:
        meter: Where the instruments live.
        group_id: Consumer group, as an attribute of the lag.
    """

    def __init__(self, meter: Meter, group_id: str):
        self._group = group_id
        self._lag: Mapping[Place, int] = {}
        self._received = meter.create_counter("messaging.client.consumed.messages", "{message}")
        self._stored = meter.create_counter("lookup_audit.events.stored", "{event}")
        self._repeats = meter.create_counter("lookup_audit.events.repeated", "{event}")
        self._dead = meter.create_counter("lookup_audit.dlq.messages", "{message}")
        self._failures = meter.create_counter("lookup_audit.sink.failures", "{attempt}")
        self._duration = meter.create_histogram("db.client.operation.duration", "s")
        self._size = meter.create_histogram("lookup_audit.sink.batch.size", "{event}")
        meter.create_observable_gauge("kafka.consumer_group.lag", [self._observe_lag])

    def received(self, messages: Sequence[Message]) -> None:
        """Messages read."""
        for topic, count in Counter(m.topic for m in messages).items():
            self._received.add(count, {"messaging.destination.name": topic})

    def written(self, written: Written, batch: EncodedBatch, seconds: float) -> None:
        """A batch stored."""
        for kind, count in written.stored.items():
            self._stored.add(count, {"kind": kind})
        for result in ("duplicates", "conflicts", "replays"):
            if count := getattr(written, result):
                self._repeats.add(count, {"result": result})
        for reason, count in Counter(
            letter.rejected.reason.value for letter in written.dead_letters
        ).items():
            self._dead.add(count, {"error.type": reason})
        self._duration.record(seconds, {"db.system.name": "clickhouse"})
        self._size.record(batch.messages)

    def write_failed(self, error_type: str) -> None:
        """A batch could not be stored this time."""
        self._failures.add(1, {"error.type": error_type})

    def lag(self, lag: Mapping[Place, int]) -> None:
        """Remember the lag for the next scrape."""
        self._lag = lag

    def _observe_lag(self, options: CallbackOptions) -> Iterable[Observation]:
        for (topic, partition), behind in self._lag.items():
            yield Observation(
                behind, {"group": self._group, "topic": topic, "partition": str(partition)}
            )
