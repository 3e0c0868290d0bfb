"""What both Quix Streams peers share: the application with its tuned settings."""

from typing import Any

from quixstreams import Application

from lookup_audit.schemas.names import Topic
from tests.bench.measure import Task

ASSIGNED = ("quixstreams.app", "Rebalancing: assigning")


def make_app(given: Task) -> Any:
    """An application for one task; checkpoints are our processor's batches."""
    return Application(
        broker_address=given.bootstrap,
        consumer_group=given.group,
        auto_offset_reset="earliest",
        auto_create_topics=False,
        commit_every=int(given.options.get("batch", 20_000)),
        commit_interval=0.5,
        consumer_extra_config={
            "session.timeout.ms": 6_000,
            "fetch.max.bytes": 64 * 2**20,
            "max.partition.fetch.bytes": 8 * 2**20,
            "queued.max.messages.kbytes": 256 * 1024,
        },
        loglevel=None,
    )


def results_topic(app: Any, deserializer: str) -> Any:
    """The topic of lookups."""
    return app.topic(Topic.RESULTS.value, value_deserializer=deserializer, key_deserializer="bytes")
