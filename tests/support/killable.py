"""A processor to be killed: ``python -m tests.support.killable BOOTSTRAP DIRECTORY``.

It reads as a member of its group would but takes all partitions at once, since after a kill a
group waits seconds for the dead member. Everything else is the product's own.
"""

import sys
from typing import Any

from kafka import KafkaConsumer
from kafka.structs import TopicPartition
from opentelemetry.metrics import NoOpMeterProvider

from lookup_audit.deploy import wiring
from lookup_audit.processors.kafka_source import KafkaConfig, KafkaSource
from lookup_audit.processors.processor import ProcessorConfig
from lookup_audit.processors.store import open_store

GROUP = "killed"


class AllPartitions(KafkaSource):
    """Takes every partition without waiting for a group."""

    def _connected(self) -> Any:
        if self._consumer is None:
            consumer = KafkaConsumer(
                bootstrap_servers=self._config.bootstrap_servers,
                group_id=GROUP,
                enable_auto_commit=False,
                auto_offset_reset="earliest",
            )
            consumer.assign(
                [
                    TopicPartition(topic, partition)
                    for topic in self._topics
                    for partition in sorted(consumer.partitions_for_topic(topic) or ())
                ]
            )
            self._consumer = consumer
        return self._consumer


def main() -> None:
    """Process until killed."""
    bootstrap, directory = sys.argv[1:]
    store = open_store(f"embedded:{directory}")
    processor = wiring.make_processor(
        KafkaConfig(bootstrap_servers=bootstrap, group_id=GROUP),
        store,
        ProcessorConfig(flush_seconds=0.05, flush_messages=300, poll_messages=50),
        NoOpMeterProvider(),
        source_type=AllPartitions,
    )
    print("processing", flush=True)
    processor.run()


if __name__ == "__main__":
    main()
