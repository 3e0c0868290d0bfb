"""Records to Kafka, and only then a yes: the one place of the collector that knows kafka-python.

kafka-python blocks its caller when it lacks metadata and connects already in its constructor; here
that happens on threads of our own, so that neither the event loop nor the start of the service
ever waits for a broker. A producer that failed to confirm in time is not nursed: it is retired,
and a fresh one is connected in the background, while callers get an immediate 503.
"""

import asyncio
import logging
import socket
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, Protocol

from kafka import KafkaAdminClient, KafkaProducer, errors
from kafka.net.compat import KafkaNetClient

from lookup_audit.collector.config import CollectorConfig
from lookup_audit.collector.delivery import Delivery, Settles
from lookup_audit.collector.envelope import TOPICS
from lookup_audit.collector.pressure import Budget
from lookup_audit.collector.publishing import Health, OutgoingRecord, too_large
from lookup_audit.schemas.errors import ConfigError, Rejected, UnavailableError
from lookup_audit.schemas.names import Reason

logger = logging.getLogger(__name__)

# Room for key, headers and framing beside the largest event: ids and names are bounded to about
# 4 KiB of UTF-8.
RECORD_OVERHEAD_BYTES: Final = 16 * 1024
_LINGER_MS: Final = 2
# 9 kB events fill the default of 16 kB at once, and each batch is a request part of its own.
_BATCH_BYTES: Final = 256 * 1024
_CONNECT_SECONDS: Final = 2.0
_RETRY_SECONDS: Final = 0.5
_PROBE_SECONDS: Final = 2.0

_PROXIES: Final = frozenset({"proxy_url", "socks5_proxy"})
_TOO_LARGE = (errors.MessageSizeTooLargeError, errors.RecordListTooLargeError)
# What a broker says of a record itself; the same record would fail again.
_REFUSED = (errors.InvalidRecordError, errors.InvalidTimestampError, errors.PolicyViolationError)


class Session(Protocol):
    """One connection to the broker, used until it fails once."""

    def send(self, records: Sequence[OutgoingRecord], delivery: Settles) -> None:
        """Hand records over; settle each when the broker has answered. May block for a while."""
        ...

    def probe(self) -> str | None:
        """What is wrong with the topics (``""``: nothing), or ``None`` if no broker answers."""
        ...

    def close(self) -> None:
        """Wait a bounded time for confirmations, settle the rest, let go."""
        ...


class KafkaPublisher:
    """Sends records with an idempotent producer and waits for all in-sync replicas.

    Args:
        config: Brokers, limits and timeouts.
        connect: Makes a connected session or raises; a test may bring its own.
    """

    def __init__(
        self,
        config: CollectorConfig,
        *,
        connect: "Callable[[CollectorConfig], Session] | None" = None,
    ):
        check_options(config.kafka_options)
        self._config = config
        self._connect_session = connect or KafkaSession
        self._budget = Budget(
            max_bytes=config.max_in_flight_bytes, max_events=config.max_in_flight_events
        )
        self._session: Session | None = None
        self._detail = "not connected yet"
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._stopping = False
        self._keeper: threading.Thread | None = None
        self._retiring: list[threading.Thread] = []
        self._senders = ThreadPoolExecutor(4, thread_name_prefix="lookup-audit-send")

    @property
    def pending(self) -> int:
        """Records sent and not yet confirmed."""
        return self._budget.events

    def health(self) -> Health:
        """Whether a producer is connected, and what it last found."""
        with self._lock:
            ok = self._session is not None and not self._detail
            return Health(ok, self._detail or "connected")

    async def start(self) -> None:
        """Begin to connect in the background."""
        if self._keeper is None:
            self._keeper = threading.Thread(
                target=self._keep_connected, name="lookup-audit-kafka", daemon=True
            )
            self._keeper.start()

    async def publish(self, records: Sequence[OutgoingRecord]) -> list[Rejected | None]:
        """Send records; see :class:`lookup_audit.collector.publishing.Publisher`."""
        if not records:
            return []
        session = self._session
        if session is None:
            raise UnavailableError(f"Kafka is not available: {self._detail}")
        outcomes = await self._send(session, records)
        answers = [refusal(r, e) for r, e in zip(records, outcomes, strict=True)]
        if any(answers):
            # A broker refuses a whole batch for one bad record; the good ones go again.
            again = [i for i, e in enumerate(outcomes) if is_neighbour(e)]
            for index, answer in zip(
                again, await self.publish([records[i] for i in again]), strict=True
            ):
                answers[index] = answer
                outcomes[index] = None
        broken = next((e for e in outcomes if e is not None and _verdict(e) is None), None)
        if broken is not None:
            if not is_neighbour(broken):
                self._retire(session, f"{type(broken).__name__}: {broken}")
            raise UnavailableError(f"Kafka did not confirm: {type(broken).__name__}")
        return answers

    async def _send(
        self, session: "Session", records: Sequence[OutgoingRecord]
    ) -> list[BaseException | None]:
        lease = self._budget.lease()
        lease.take(sum(len(record.value) for record in records), len(records))
        # The lease ends with the last confirmation, not with the caller's patience.
        delivery = Delivery(len(records), on_done=lease.release)
        try:
            self._senders.submit(session.send, records, delivery)
        except RuntimeError:
            lease.release()
            raise UnavailableError("the collector is stopping") from None
        try:
            async with asyncio.timeout(self._config.publish_timeout_seconds):
                return await delivery.wait()
        except TimeoutError:
            return [errors.KafkaTimeoutError("no confirmation in time")] * len(records)

    async def close(self) -> None:
        """Flush, then close the connection; nothing is accepted afterwards."""
        await asyncio.to_thread(self._close)

    def _close(self) -> None:
        self._stopping = True
        self._wake.set()
        if self._keeper is not None:
            self._keeper.join()
        with self._lock:
            session, self._session = self._session, None
            self._detail = "closed"
        self._senders.shutdown(wait=True)
        if session is not None:
            session.close()
        for thread in self._retiring:
            thread.join()

    def _retire(self, session: "Session", why: str) -> None:
        with self._lock:
            if self._session is not session:
                return
            self._session = None
            self._detail = why
            logger.warning("The Kafka producer is retired and a new one is made: %s.", why)
            # It still waits for what others have sent through it, hence a thread.
            thread = threading.Thread(target=session.close, name="lookup-audit-retire", daemon=True)
            self._retiring = [t for t in self._retiring if t.is_alive()] + [thread]
            thread.start()
        self._wake.set()

    def _keep_connected(self) -> None:
        while not self._stopping:
            session = self._session
            if session is None:
                pause = self._connect()
            else:
                pause = _PROBE_SECONDS
                problem = session.probe()
                if problem is None:
                    self._retire(session, "the broker stopped answering")
                    continue
                with self._lock:
                    if self._session is session:
                        self._detail = problem
            self._wake.wait(pause)
            self._wake.clear()

    def _connect(self) -> float:
        try:
            session = self._connect_session(self._config)
        except Exception as error:
            # Anything may come out of a constructor that talks to a network; all of it means
            # "not now", and the reason is shown where it is looked for.
            known = isinstance(error, UnavailableError)
            detail = str(error) if known else f"{type(error).__name__}: {error}"
            if detail != self._detail:
                logger.warning("Kafka cannot be reached: %s.", detail)
            self._detail = detail
            return _RETRY_SECONDS
        with self._lock:
            self._session, self._detail = session, ""
        logger.info("Kafka is connected: %s.", ", ".join(self._config.bootstrap_servers))
        return 0.0


def check_options(options: Mapping[str, Any]) -> None:
    """Refuse options that the client does not know.

    Raises:
        ConfigError: Naming them.
    """
    unknown = sorted(options.keys() - KafkaProducer.DEFAULT_CONFIG.keys())
    if unknown:
        names = ", ".join(unknown)
        raise ConfigError(f"kafka_options: kafka-python has no option {names}; leave it out")


def _verdict(error: BaseException) -> Reason | None:
    """Why the broker refuses the record itself; ``None`` if the fault is not the record's."""
    if isinstance(error, _TOO_LARGE):
        return Reason.TOO_LARGE
    return Reason.REJECTED_BY_STORE if isinstance(error, _REFUSED) else None


def is_neighbour(error: BaseException | None) -> bool:
    """Whether a record failed only for another one of its batch."""
    # kafka-python gives the other records of a refused batch a plain KafkaError.
    return type(error) is errors.KafkaError


def refusal(record: OutgoingRecord, error: BaseException | None) -> Rejected | None:
    """Why the broker refuses the record itself, or ``None`` if it does not."""
    verdict = _verdict(error) if error is not None else None
    if verdict is None:
        return None
    if verdict is Reason.TOO_LARGE:
        return too_large(record)
    message = f"the broker refuses the record: {error}"
    return Rejected(Reason.REJECTED_BY_STORE, "", message, record.event_id)


def _look_for(servers: Sequence[str]) -> None:
    """Raise the last refusal if no broker accepts a connection."""
    refusals = []
    for server in servers:
        host, _, port = server.rpartition(":")
        try:
            socket.create_connection((host.strip("[]"), int(port)), _CONNECT_SECONDS).close()
        except OSError as error:
            refusals.append(UnavailableError(f"{server}: {error}"))
        else:
            return
    raise refusals[-1]


class KafkaSession:
    """A connected producer, and an admin client beside it that sees whether the broker is there.

    Raises:
        Exception: Whatever kafka-python raises when no broker answers.
    """

    def __init__(self, config: CollectorConfig):
        self._config = config
        # kafka-python never closes the socket of a refused connection and logs an error for each
        # attempt: look before asking. A proxy knows hosts that we do not.
        if not _PROXIES & config.kafka_options.keys():
            _look_for(config.bootstrap_servers)
        timeout_ms = int(config.publish_timeout_seconds * 1000)
        # Each bound lies inside the next: a request, its delivery with retries, our own patience.
        self._delivery_seconds = timeout_ms * 0.9 / 1000
        self._producer: Any = self._make(
            KafkaProducer,
            acks="all",
            enable_idempotence=True,
            compression_type="lz4",
            linger_ms=_LINGER_MS,
            batch_size=_BATCH_BYTES,
            max_request_size=config.max_event_bytes + RECORD_OVERHEAD_BYTES,
            max_block_ms=timeout_ms // 5,
            request_timeout_ms=timeout_ms * 6 // 10,
            delivery_timeout_ms=timeout_ms * 9 // 10,
            allow_auto_create_topics=False,
            metrics_enabled=False,
        )
        self._admin: Any = None
        self._admin_lock = threading.Lock()
        self._closed = False

    def _make(self, client_class: Any, **options: Any) -> Any:
        made: list[Any] = []
        given, known = self._config.kafka_options, client_class.DEFAULT_CONFIG

        def make_net_client(**client_options: Any) -> Any:
            made.append(KafkaNetClient(**client_options))
            return made[-1]

        try:
            return client_class(
                **options
                | {
                    "bootstrap_servers": list(self._config.bootstrap_servers),
                    "client_id": "lookup-audit-collector",
                    "bootstrap_timeout_ms": int(_CONNECT_SECONDS * 1000),
                    "reconnect_backoff_max_ms": 1000,
                    "kafka_client": make_net_client,
                }
                | {name: value for name, value in given.items() if name in known}
            )
        except BaseException:
            # A constructor that fails leaves its sockets and threads behind (5 descriptors each
            # in 3.0.12); it is called twice a second during an outage.
            for client in made:
                client.close()
            raise

    def send(self, records: Sequence[OutgoingRecord], delivery: Settles) -> None:
        """Give records to the producer; blocks for a fifth of the publish timeout at most."""
        for index, record in enumerate(records):
            try:
                future = self._producer.send(
                    record.topic, record.value, key=record.key, headers=list(record.headers)
                )
            except errors.MessageSizeTooLargeError as error:
                delivery.settle(index, error)
            except Exception as error:
                # Without metadata every further send would block as long again.
                for rest in range(index, len(records)):
                    delivery.settle(rest, error)
                return
            else:
                future.add_both(delivery.settle, index)

    def probe(self) -> str | None:
        """Ask for the topics through the admin client."""
        with self._admin_lock:
            found = self._describe()
            # A fresh client for the second try: one that lost its only broker stays lost.
            return found if found is not None else self._describe()

    def _describe(self) -> str | None:
        if self._closed:
            return None
        try:
            if self._admin is None:
                self._admin = self._make(
                    KafkaAdminClient, request_timeout_ms=int(_CONNECT_SECONDS * 1000)
                )
            topics = self._admin.describe_topics(sorted(set(TOPICS.values())))
        except Exception as error:
            logger.debug("The probe of Kafka failed: %s.", error)
            self._close_admin()
            return None
        missing = [topic["name"] for topic in topics if topic["error_code"]]
        return f"no topic {', '.join(missing)}; create it" if missing else ""

    def _close_admin(self) -> None:
        admin, self._admin = self._admin, None
        if admin is not None:
            admin.close()

    def close(self) -> None:
        """Wait for confirmations, one delivery timeout at most, and close the connections."""
        with self._admin_lock:
            self._closed = True
            self._close_admin()
        try:
            self._producer.close(timeout=self._delivery_seconds)
        except errors.KafkaError:
            # close() gives up before it stops its thread when a flush takes too long. Forcing the
            # sender fails what is left, so that nobody waits for it.
            self._producer._sender.force_close()
            self._producer._sender.join(_CONNECT_SECONDS)
