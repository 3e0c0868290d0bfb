"""A processor to be killed: ``python -m tests.support.killable BOOTSTRAP DIRECTORY``.

It is alone, as the embedded stack's is, since after a kill a group waits seconds for the dead
member.
"""

import sys

from opentelemetry.metrics import NoOpMeterProvider

from lookup_audit.deploy import wiring
from lookup_audit.processors.kafka_source import KafkaConfig
from lookup_audit.processors.processor import ProcessorConfig
from lookup_audit.processors.store import open_store

GROUP = "killed"


def main() -> None:
    """Process until killed."""
    bootstrap, directory = sys.argv[1:]
    store = open_store(f"embedded:{directory}")
    processor = wiring.make_processor(
        KafkaConfig(bootstrap_servers=bootstrap, group_id=GROUP),
        store,
        ProcessorConfig(flush_seconds=0.05, flush_messages=300, poll_messages=50),
        NoOpMeterProvider(),
        is_alone=True,
    )
    print("processing", flush=True)
    processor.run()


if __name__ == "__main__":
    main()
