"""What is settled with a Kafka broker before any data flows: which cluster it is, and its topics.

The one module of this folder that imports kafka-python, which has no types.
"""

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from kafka.admin import KafkaAdminClient, NewTopic
from kafka.errors import KafkaError, TopicAlreadyExistsError, for_code

from lookup_audit.schemas.errors import ConfigError, UnavailableError

logger = logging.getLogger(__name__)

# The broker's own default; Kafka understands it since 2.4.
BROKER_DEFAULT = -1


def cluster_id(
    bootstrap: str, *, timeout_seconds: float = 10.0, client: Mapping[str, object] | None = None
) -> str:
    """Ask which cluster answers at an address: the cheapest proof that it speaks Kafka.

    Args:
        bootstrap: Broker addresses, ``host:port`` with commas between.
        timeout_seconds: How long to try.
        client: Further kafka-python settings, such as ``security_protocol``.

    Raises:
        UnavailableError: Nothing there answers as a Kafka broker in time.
    """
    with _admin(bootstrap, timeout_seconds, client) as admin:
        return str(admin.describe_cluster()["cluster_id"])


def ensure_topics(
    bootstrap: str,
    topics: Mapping[str, int],
    *,
    replication_factor: int = BROKER_DEFAULT,
    timeout_seconds: float = 30.0,
    client: Mapping[str, object] | None = None,
) -> dict[str, int]:
    """Create the topics that are missing, wait until all have leaders, and say how large they are.

    Run it before the first producer or consumer: a broker that creates topics on demand gives
    them its own number of partitions. Existing topics are left as they are, since more partitions
    would send a key elsewhere than its history.

    Args:
        bootstrap: Broker addresses, ``host:port`` with commas between.
        topics: Topic to the number of partitions it is created with.
        replication_factor: Copies of each new topic; by default as the broker is configured.
        timeout_seconds: How long to try, for each step.
        client: Further kafka-python settings, such as ``security_protocol``.

    Returns:
        Topic to the number of partitions it has.

    Raises:
        UnavailableError: The broker does not answer, or no leader was elected in time.
        ConfigError: The broker refuses a topic; the message names it and the reason.
    """
    with _admin(bootstrap, timeout_seconds, client) as admin:
        missing = sorted(topics.keys() - set(admin.list_topics()))
        if missing:
            wanted = [NewTopic(name, topics[name], replication_factor) for name in missing]
            answer = admin.create_topics(
                wanted, timeout_ms=int(timeout_seconds * 1000), raise_errors=False
            )
            _raise_refusals(answer["topics"])
        admin.wait_for_topics(list(topics), timeout_ms=int(timeout_seconds * 1000))
        found = {
            topic["name"]: len(topic["partitions"]) for topic in admin.describe_topics(list(topics))
        }
    for name, partitions in topics.items():
        if found[name] < partitions:
            logger.warning(
                "Topic %s has %d partitions where %d are configured; it is used as it is.",
                name,
                found[name],
                partitions,
            )
    return found


def _raise_refusals(answers: list[dict[str, Any]]) -> None:
    """Turn the broker's answer for each topic into an error, unless another process was faster."""
    for answer in answers:
        code = int(answer["error_code"])
        error: type[KafkaError] = for_code(code)
        if code == 0 or error is TopicAlreadyExistsError:
            continue
        message = f"The broker refuses to create topic {answer['name']}: " + (
            answer.get("error_message") or error.__name__
        )
        if getattr(error, "retriable", False):
            raise UnavailableError(message)
        raise ConfigError(message)


@contextmanager
def _admin(
    bootstrap: str, timeout_seconds: float, client: Mapping[str, object] | None
) -> Iterator[Any]:
    """An admin client whose every failure is one of ours."""
    admin = None
    try:
        admin = KafkaAdminClient(
            **{
                "bootstrap_servers": bootstrap.split(","),
                "bootstrap_timeout_ms": int(timeout_seconds * 1000),
                "request_timeout_ms": int(timeout_seconds * 1000),
                **(client or {}),
            }
        )
        yield admin
    except KafkaError as error:
        raise UnavailableError(f"No Kafka broker answers at {bootstrap}: {error}") from error
    finally:
        if admin is not None:
            admin.close()
