"""The emitter: events out of a retrieval service, without the service ever noticing.

``emit`` copies the event into a bounded queue and returns; one background thread does all else.
Nothing here raises into the caller after construction, and nothing is lost without being counted:
an event that was dropped also leaves its sequence number out, which the completeness check sees.
"""

import atexit
import logging
import os
import sys
import threading
import time
import weakref
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Final, Self

from pydantic import BaseModel

from lookup_audit.collector.emitter.config import EmitterConfig
from lookup_audit.collector.emitter.entry import Entry, pack, to_json
from lookup_audit.collector.emitter.http import HttpTransport
from lookup_audit.collector.emitter.identity import Identity
from lookup_audit.collector.emitter.metrics import make_count
from lookup_audit.collector.emitter.queue import EventQueue
from lookup_audit.collector.emitter.tally import Drop, EmitterStats, Tally
from lookup_audit.collector.emitter.tracing import current_span_ids, describe_on_current_span
from lookup_audit.collector.emitter.transport import MakeTransport
from lookup_audit.collector.emitter.worker import Worker
from lookup_audit.collector.redaction import Withheld, redactor_of
from lookup_audit.schemas.errors import ConfigError
from lookup_audit.schemas.names import EventType

logger = logging.getLogger(__name__)

Event = Mapping[str, Any] | BaseModel

# Beyond the time a caller gives, for the thread to notice.
_JOIN_SECONDS: Final = 0.5


class LookupEmitter:
    """Sends lookups, outcomes and judgements from a Python service.

    Make one for the process and keep it; any thread may use it. It survives ``fork`` (each child
    has a queue, a thread and a boot id of its own) and delivers what is left when the interpreter
    ends. A child that ends by ``os._exit`` has to call :meth:`close` itself.

    Args:
        url: Base URL of the collector; see :class:`EmitterConfig` for every other setting.
        config: A finished config instead of settings.
        make_transport: Another way to send, made once per process.
        **settings: Members of :class:`EmitterConfig`.

    Raises:
        ConfigError: A setting is wrong; the message names it and the fix.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        config: EmitterConfig | None = None,
        make_transport: MakeTransport | None = None,
        **settings: Any,
    ):
        if config is not None and (url is not None or settings):
            raise ConfigError("give the emitter either config or single settings, not both")
        self._config = config or EmitterConfig.load(url=url, **settings)
        self._make_transport = make_transport or _transport_of(self._config, self._watch_exit)
        self._count = make_count(_queued(self))
        self._begin()
        self._start()
        _EMITTERS.add(self)

    def _begin(self) -> None:
        """Everything that belongs to one process."""
        config = self._config
        self._identity = Identity(config.service, config.service_version)
        self._tally = Tally(self._count)
        wake = threading.Event()
        self._queue = EventQueue(
            max_events=config.max_queue_events,
            max_bytes=config.max_queue_bytes,
            wake_at=config.batch_events,
            wake=wake,
        )
        self._worker = Worker(
            config, self._queue, wake, self._tally, self._prepare, self._make_transport
        )
        self._starting = threading.Lock()
        self._is_started = False
        self._is_closed = False
        self._has_complained = False

    def _start(self) -> None:
        with self._starting:
            if not self._is_started and not self._is_closed:
                self._worker.start()
                self._is_started = True
        self._watch_exit()

    def _watch_exit(self) -> None:
        # Last registered, first called: a Kafka client made meanwhile registers itself, too.
        atexit.unregister(self.close)
        atexit.register(self.close)
        # A child of multiprocessing ends without atexit.
        multiprocessing = sys.modules.get("multiprocessing.util")
        if multiprocessing is not None:
            multiprocessing.Finalize(None, self.close, exitpriority=10)

    @property
    def instance_id(self) -> str:
        """The ``service.instance_id`` of this process's events."""
        return self._identity.instance_id

    def emit(self, event: Event) -> bool:
        """Take a LookupResult; returns whether it was taken. Never raises.

        Tenant, service, instance, sequence number and trace context are added where the event
        has none. The event is copied and may be changed afterwards.

        Args:
            event: A mapping as :func:`lookup_audit.collector.lookup_result` makes it, or a
                :class:`lookup_audit.schemas.lookup.LookupResult`.
        """
        return self._take(EventType.LOOKUP, event)

    def emit_outcome(self, event: Event) -> bool:
        """Take an AnswerOutcome; see :meth:`emit`."""
        return self._take(EventType.OUTCOME, event)

    def emit_judgement(self, event: Event) -> bool:
        """Take a Judgement; see :meth:`emit`."""
        return self._take(EventType.JUDGEMENT, event)

    def _take(self, kind: EventType, event: Event) -> bool:
        try:
            reason = self._try_take(kind, event)
        except Exception as error:
            self._complain(error)
            unencodable = isinstance(error, (TypeError, ValueError))
            reason = Drop.UNENCODABLE if unencodable else Drop.INTERNAL_ERROR
        if reason is None:
            return True
        self._tally.refused_entry(reason)
        return False

    def _try_take(self, kind: EventType, event: Event) -> Drop | None:
        if self._is_closed:
            return Drop.CLOSED
        if not self._is_started:
            self._start()
        completed = self._complete(kind, event)
        if self._queue.is_full and not self._config.block_seconds:
            # Before the copy is made: an outage must not cost the service more than normal days.
            return Drop.QUEUE_FULL
        value = pack(completed)
        if len(value) > self._config.max_event_bytes:
            return Drop.TOO_LARGE
        # Counted before it can be delivered, so that the account never shows more out than in.
        self._tally.entered()
        if self._queue.put(Entry(kind, value), wait_seconds=self._config.block_seconds):
            return None
        self._tally.withdrawn()
        return Drop.QUEUE_FULL

    def _complete(self, kind: EventType, event: Event) -> Mapping[str, Any]:
        if isinstance(event, BaseModel):
            event = event.model_dump(mode="json", exclude_none=True)
        added: dict[str, Any] = {}
        if self._config.tenant is not None and event.get("tenant") is None:
            added["tenant"] = self._config.tenant
        if kind is not EventType.JUDGEMENT and event.get("trace_id", event.get("traceId")) is None:
            ids = current_span_ids()
            if ids is not None:
                added["trace_id"] = ids.trace_id
                if kind is EventType.LOOKUP:
                    added["span_id"] = ids.span_id
        if kind is EventType.LOOKUP:
            service = self._identity.stamp(event.get("service"))
            if service is not None:
                added["service"] = service
            if self._config.set_span_attributes:
                describe_on_current_span(event)
        return {**event, **added}

    def _prepare(self, entry: Entry) -> Entry | Drop:
        value = to_json(entry.value)
        if self._config.redaction is not None:
            redacted = redactor_of(self._config.redaction).redact(value, entry.kind)
            if isinstance(redacted, Withheld):
                # Its number is missing from the sequence, which tells the receiver.
                return Drop.REDACTION_FAILED
            value = redacted
        return Entry(entry.kind, value)

    def _complain(self, error: Exception) -> None:
        if not self._has_complained:
            self._has_complained = True
            # Without the text: it may quote the event.
            logger.error(
                "An event could not be taken (%s); further ones are only counted.",
                type(error).__name__,
            )
            logger.debug("Where it failed.", exc_info=True)

    def flush(self, timeout_seconds: float = 5.0) -> bool:
        """Wait until everything taken so far has its answer; whether that came in time."""
        self._worker.hurry()
        return self._tally.wait_until_settled(timeout_seconds)

    def close(self, timeout_seconds: float | None = None) -> None:
        """Deliver what is left within the time given, then end; later events are dropped.

        What could not be delivered stays in the spool; without one it is counted as dropped.

        Args:
            timeout_seconds: ``close_seconds`` of the config unless given.
        """
        with self._starting:
            if self._is_closed:
                return
            self._is_closed = True
        atexit.unregister(self.close)
        _EMITTERS.discard(self)
        if not self._is_started:
            return
        patience = self._config.close_seconds if timeout_seconds is None else timeout_seconds
        deadline = time.monotonic() + patience
        self.flush(patience)
        self._worker.stop(max(0.0, deadline - time.monotonic()) + _JOIN_SECONDS)

    def stats(self) -> EmitterStats:
        """What became of this process's events."""
        return self._tally.stats(queued=len(self._queue), spool_bytes=self._worker.spool_bytes)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _after_fork_in_child(self) -> None:
        """The parent delivers what is in its queue; the child begins with nothing."""
        was_closed = self._is_closed
        self._worker.forget()
        self._begin()
        self._is_closed = was_closed


def _transport_of(config: EmitterConfig, on_connect: Callable[[], None]) -> MakeTransport:
    if config.url is None and not config.bootstrap_servers:
        raise ConfigError(
            "the emitter does not know where to send; give it the collector's url, set "
            "LOOKUP_AUDIT_URL, or give it bootstrap_servers"
        )
    token = config.token.get_secret_value() if config.token is not None else None
    if config.url is not None:
        url = config.url
        return lambda: HttpTransport(
            url, token=token, timeout_seconds=config.request_timeout_seconds
        )
    # Only who speaks to Kafka needs its client.
    from lookup_audit.collector.emitter.kafka import KafkaTransport

    return lambda: KafkaTransport(config, clock=_utc_now, on_connect=on_connect)


def _utc_now() -> datetime:
    return datetime.now(UTC)


def _queued(emitter: "LookupEmitter") -> Callable[[], int]:
    # The meter outlives the emitter and must not keep it alive.
    reference = weakref.ref(emitter)

    def queued() -> int:
        alive = reference()
        return len(alive._queue) if alive is not None else 0

    return queued


_EMITTERS: "weakref.WeakSet[LookupEmitter]" = weakref.WeakSet()


def _reset_all() -> None:
    for emitter in list(_EMITTERS):
        emitter._after_fork_in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_all)
