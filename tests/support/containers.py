"""Kafka and ClickHouse in containers, where a container engine answers.

Nothing of the engine's libraries is imported before :func:`docker_unavailable` is asked.
"""

import functools
import gc
import socket
import time
import warnings
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from lookup_audit.deploy.topics import cluster_id
from lookup_audit.schemas.errors import UnavailableError

if TYPE_CHECKING:
    from testcontainers.community.clickhouse import ClickHouseContainer
    from testcontainers.core.container import DockerContainer

KAFKA_IMAGE = "apache/kafka:4.1.0"
CLICKHOUSE_IMAGE = "clickhouse/clickhouse-server:25.8"
PING_TIMEOUT_SECONDS = 3
START_TIMEOUT_SECONDS = 90.0

_KAFKA_PORT = 9092
_CLICKHOUSE_HTTP_PORT = 8123


@functools.cache
def docker_unavailable() -> str | None:
    """Say why no container can be started here, or None; the engine is really asked."""
    with warnings.catch_warnings():
        # The engine's library never closes the socket of a connection that failed.
        warnings.simplefilter("ignore", ResourceWarning)
        reason = _ping()
        gc.collect()
    return reason


def _ping() -> str | None:
    try:
        # The docker package ships no types.
        from docker.errors import DockerException  # type: ignore[import-untyped]
        from requests.exceptions import RequestException
        from testcontainers.core.docker_client import DockerClient
    except ModuleNotFoundError as error:
        return f"testcontainers is not installed: {error}"
    try:
        client = DockerClient(timeout=PING_TIMEOUT_SECONDS).client
        try:
            client.ping()
        finally:
            client.close()
    except (DockerException, RequestException, OSError) as error:
        return f"no container engine answers: {error}"
    return None


class KafkaInContainer:
    """One Apache Kafka node, broker and controller, on a fixed port of the host.

    The port is chosen before the start, so the node can advertise it and keeps it over a crash
    and :meth:`start`.
    """

    kind = "docker"

    def __init__(self) -> None:
        self._port = _free_port()
        self._host = "localhost"
        self._container: DockerContainer | None = None

    @property
    def bootstrap(self) -> str:
        """Address for clients, the same over restarts."""
        return f"{self._host}:{self._port}"

    def start(self) -> None:
        """Start the node with the data it has and return once it answers."""
        if self._container is None:
            self._container = self._create()
        else:
            self._container.get_wrapped_container().start()
        deadline = time.monotonic() + START_TIMEOUT_SECONDS
        while True:
            # The engine's proxy accepts connections before the node does: only an answer counts.
            try:
                cluster_id(self.bootstrap, timeout_seconds=2.0)
                return
            except UnavailableError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.2)

    def stop(self) -> None:
        """Remove the node and its data."""
        container, self._container = self._container, None
        if container is not None:
            container.stop()

    def kill(self) -> None:
        """End the node with SIGKILL, as a crash would."""
        if self._container is None:
            raise UnavailableError("Kafka's container does not run")
        wrapped = self._container.get_wrapped_container()
        wrapped.kill()
        wrapped.wait()

    def _create(self) -> "DockerContainer":
        from testcontainers.core.config import ConnectionMode
        from testcontainers.core.container import DockerContainer

        container = DockerContainer(KAFKA_IMAGE)
        # Only this mode's address is known before the start, and a published port needs it.
        if container.get_docker_client().get_connection_mode() is not ConnectionMode.docker_host:
            raise UnavailableError("Run the tests outside a container, or set TC_HOST")
        self._host = container.get_container_host_ip()
        for name, value in self._settings().items():
            container.with_env(name, value)
        container.with_bind_ports(_KAFKA_PORT, self._port)
        container.start()
        return container

    def _settings(self) -> dict[str, str]:
        return {
            "KAFKA_NODE_ID": "1",
            "KAFKA_PROCESS_ROLES": "broker,controller",
            "KAFKA_CONTROLLER_QUORUM_VOTERS": "1@localhost:9093",
            "KAFKA_CONTROLLER_LISTENER_NAMES": "CONTROLLER",
            "KAFKA_LISTENERS": f"PLAINTEXT://:{_KAFKA_PORT},CONTROLLER://:9093",
            "KAFKA_ADVERTISED_LISTENERS": f"PLAINTEXT://{self.bootstrap}",
            "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "KAFKA_AUTO_CREATE_TOPICS_ENABLE": "false",
            "KAFKA_GROUP_INITIAL_REBALANCE_DELAY_MS": "0",
            "KAFKA_OFFSETS_TOPIC_NUM_PARTITIONS": "2",
            "KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR": "1",
            "KAFKA_TRANSACTION_STATE_LOG_NUM_PARTITIONS": "2",
            "KAFKA_TRANSACTION_STATE_LOG_REPLICATION_FACTOR": "1",
            "KAFKA_TRANSACTION_STATE_LOG_MIN_ISR": "1",
        }


class ClickHouseInContainer:
    """One ClickHouse server with a user of its own; connection facts are known once started."""

    def __init__(self) -> None:
        self._container: ClickHouseContainer | None = None

    def start(self) -> None:
        """Start the server and return once its HTTP port answers."""
        from testcontainers.community.clickhouse import ClickHouseContainer

        self._container = ClickHouseContainer(
            CLICKHOUSE_IMAGE, username="lookup_audit", password="lookup_audit", dbname="default"
        )
        self._container.start()

    def stop(self) -> None:
        """Remove the server and its data."""
        container, self._container = self._container, None
        if container is not None:
            container.stop()

    def connection(self) -> dict[str, Any]:
        """Arguments for ``clickhouse_connect.get_client``."""
        if self._container is None:
            raise UnavailableError("ClickHouse's container does not run")
        return {
            "interface": "http",
            "host": self._container.get_container_host_ip(),
            "port": int(self._container.get_exposed_port(_CLICKHOUSE_HTTP_PORT)),
            "username": self._container.username,
            "password": self._container.password,
        }

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])
