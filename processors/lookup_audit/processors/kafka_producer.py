"""A producer that connects when it is first needed and anew after a failure."""

from typing import Any

from kafka import KafkaProducer

from lookup_audit.processors.kafka_source import KafkaConfig


class LazyProducer:
    """An idempotent producer whose records are acknowledged by all replicas.

    Args:
        config: The brokers.
        timeout_seconds: How long a call may block.
        **options: Further options of kafka-python's producer.
    """

    def __init__(self, config: KafkaConfig, timeout_seconds: float, **options: Any):
        self._config = config
        self._options = options | {"max_block_ms": int(timeout_seconds * 1000)}
        self._producer: Any = None

    def connected(self) -> Any:
        """kafka-python's producer; raises KafkaError where no broker answers."""
        if self._producer is None:
            self._producer = self._make()
        return self._producer

    def _make(self) -> Any:
        return KafkaProducer(
            bootstrap_servers=self._config.bootstrap_servers.split(","),
            acks="all",
            enable_idempotence=True,
            **self._options,
            **self._config.security,
        )

    def close(self) -> None:
        """Let go of it: one may be beyond repair, such as one whose broker began anew."""
        if self._producer is not None:
            self._producer.close(timeout=5)
            self._producer = None
