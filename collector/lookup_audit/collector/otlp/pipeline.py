"""From spans to confirmed records: joined, mapped, published, and only then done.

A request is acknowledged when its events are safe in Kafka, or when its spans wait on disk for
their parents. A broker that does not answer is a 503, and the same request may be sent again: its
events have the same ids.
"""

import asyncio
import logging
import time
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from lookup_audit.collector.config import CollectorConfig
from lookup_audit.collector.envelope import Arrival
from lookup_audit.collector.otlp.evaluations import Evaluation
from lookup_audit.collector.otlp.joining import Joiner
from lookup_audit.collector.otlp.lookup import format_ns
from lookup_audit.collector.otlp.mapping import Mapped, Past, map_evaluations, map_trace
from lookup_audit.collector.otlp.records import make_last_resort, make_record
from lookup_audit.collector.otlp.roles import classify
from lookup_audit.collector.otlp.spans import Span
from lookup_audit.collector.otlp.spool import Spool
from lookup_audit.collector.publishing import OutgoingRecord, Publisher
from lookup_audit.collector.telemetry import IngestMetrics
from lookup_audit.schemas.errors import Rejected, UnavailableError
from lookup_audit.schemas.fields import parse_instant
from lookup_audit.schemas.names import EventType, Reason
from lookup_audit.schemas.timeliness import untimely

logger = logging.getLogger(__name__)

# Exporters give a request ten seconds, retries included.
_ANSWER_SECONDS: Final = 4.5
_TICK_SECONDS: Final = 0.25
# Give other requests a turn after this many traces (about 5 ms).
_TURN_TRACES: Final = 16
_RETRY_SECONDS: Final = 1.0
# Of a long queue of waiting traces, so many are published in one go.
_DUE_TRACES: Final = 500


@dataclass(slots=True)
class Batch:
    """The events of some traces on their way.

    Args:
        records: Accepted events.
        kinds: What each is, and its dialect.
        weights: How many spans went into each.
        rejected: The refused ones, with the spans in each.
        mapped: By trace.
    """

    records: list[OutgoingRecord] = field(default_factory=list)
    kinds: list[tuple[EventType, str]] = field(default_factory=list)
    weights: list[int] = field(default_factory=list)
    rejected: list[tuple[Rejected, int]] = field(default_factory=list)
    mapped: dict[str, Mapped] = field(default_factory=dict)

    @property
    def rejected_spans(self) -> int:
        """Spans whose event was refused."""
        return sum(weight for _, weight in self.rejected)


class Pipeline:
    """Takes spans and evaluations of any request; one for a collector.

    Args:
        config: Limits and times.
        publisher: Takes the events.
        clock: Gives aware times.
        metrics: Counts every span once.
    """

    def __init__(
        self,
        config: CollectorConfig,
        publisher: Publisher,
        clock: Callable[[], datetime],
        metrics: IngestMetrics,
    ):
        self._config = config
        self._publisher = publisher
        self._clock = clock
        self._metrics = metrics
        directory = config.otlp_spool_dir
        self._spool = Spool(directory) if directory is not None else None
        self.joiner = Joiner(
            join_seconds=config.otlp_join_seconds if self._spool is not None else 0.0,
            max_bytes=config.otlp_join_bytes,
        )
        metrics.watch_waiting(lambda: self.joiner.spans)
        self._task: asyncio.Task[None] | None = None
        self._stopping = asyncio.Event()

    async def start(self) -> None:
        """Take up what an earlier run left waiting, and begin to let traces go."""
        if self._spool is None:
            return
        self._spool.open()
        for name, spans in self._spool.read():
            self.joiner.restore(spans, name, time.monotonic())
        self._task = asyncio.create_task(self._keep_releasing())

    async def close(self) -> None:
        """Publish what waits; what the broker does not take stays on disk."""
        self._stopping.set()
        if self._task is not None:
            await self._task
            self.joiner.flush()
            while await self._release():
                pass

    async def take(self, spans: Sequence[Span], arrival: Arrival) -> Batch:
        """Publish what is complete and keep the rest; returns what was refused.

        Raises:
            UnavailableError: The broker or the disk did not take it in time.
        """
        spans, untimely_spans = self._timely(spans, arrival.received_at)
        taken = self.joiner.take(spans, time.monotonic())
        try:
            if taken.held and self._spool is not None:
                waiting = [span for held in taken.held.values() for span in held]
                try:
                    name = await asyncio.to_thread(self._spool.write, waiting)
                except OSError as error:
                    raise UnavailableError(f"the spool cannot be written: {error}") from error
                self.joiner.note_file(taken.held, name)
            batch = await self._map(taken.ready, arrival)
            await self._publish(batch)
        except BaseException:
            self.joiner.put_back(taken.ready)
            raise
        self._metrics.count_spans("ignored", taken.uninteresting, "not_retrieval")
        self._finish(taken.ready, batch)
        for refusal in untimely_spans:
            self._metrics.count_spans("rejected", 1, str(refusal.reason))
            batch.rejected.append((refusal, 1))
        return batch

    def _timely(
        self, spans: Sequence[Span], now: datetime
    ) -> tuple[Sequence[Span], list[Rejected]]:
        """Refuse retrievals from the future or before the retention, before any waits."""
        retention = timedelta(days=self._config.retention_days)
        earliest = int(now.timestamp() - retention.total_seconds()) * 10**9
        latest = int(now.timestamp()) * 10**9
        if all(earliest < span.end_ns < latest for span in spans):
            return spans, []
        kept, refused = [], []
        for span in spans:
            refusal = None
            if classify(span)[0] in ("retriever", "reranker"):
                moment = parse_instant(format_ns(span.end_ns))
                refusal = untimely(moment, now=now, retention=retention, event_id=span.span_id)
            if refusal is None:
                kept.append(span)
            else:
                refused.append(refusal)
        return kept, refused

    async def take_evaluations(self, evaluations: Iterable[Evaluation], arrival: Arrival) -> Batch:
        """Publish the Judgements of evaluations.

        Raises:
            UnavailableError: The broker did not confirm in time.
        """
        mapped = Mapped()
        map_evaluations(evaluations, mapped)
        batch = Batch(mapped={"": mapped})
        self._add(batch, mapped, arrival)
        await self._publish(batch)
        for reason, count in mapped.ignored.items():
            self._metrics.count_spans("ignored", count, reason)
        return batch

    async def _map(self, traces: Mapping[str, Sequence[Span]], arrival: Arrival) -> Batch:
        batch = Batch()
        for number, (trace_id, spans) in enumerate(traces.items()):
            mapped = _map_safely(trace_id, spans, self.joiner.past(trace_id))
            batch.mapped[trace_id] = mapped
            self._add(batch, mapped, arrival)
            if number % _TURN_TRACES == 0:
                await asyncio.sleep(0)
        return batch

    def _add(self, batch: Batch, mapped: Mapped, arrival: Arrival) -> None:
        for kind, event, weight in mapped.events:
            record = make_record(kind, event, config=self._config, arrival=arrival)
            if isinstance(record, Rejected):
                batch.rejected.append((record, weight))
            else:
                batch.records.append(record)
                batch.kinds.append((kind, event.get("source_format", "otlp")))
                batch.weights.append(weight)

    async def _publish(self, batch: Batch) -> None:
        if not batch.records:
            self._count(batch, [])
            return
        started = time.perf_counter()
        try:
            async with asyncio.timeout(_ANSWER_SECONDS):
                answers = await self._publisher.publish(batch.records)
        except TimeoutError:
            error = UnavailableError("Kafka did not confirm in time")
            self._time(batch, started, "unavailable")
            raise error from None
        except UnavailableError:
            self._time(batch, started, "unavailable")
            raise
        self._time(batch, started, "")
        for answer, weight in zip(answers, batch.weights, strict=True):
            if answer is not None:
                batch.rejected.append((answer, weight))
        self._count(batch, answers)

    def _time(self, batch: Batch, started: float, error: str) -> None:
        self._metrics.time_send(batch.records, time.perf_counter() - started, error=error)

    def _count(self, batch: Batch, answers: Sequence[Rejected | None]) -> None:
        for (kind, source), record, answer in zip(batch.kinds, batch.records, answers, strict=True):
            if answer is None:
                self._metrics.count_mapped(str(kind), source, size=len(record.value))
        for refusal, _ in batch.rejected:
            self._metrics.count_mapped("", "otlp", error=str(refusal.reason))

    def _finish(self, traces: Mapping[str, Sequence[Span]], batch: Batch) -> None:
        """The batch is safe: count its spans and forget what waited for them."""
        files: set[str] = set()
        for trace_id, spans in traces.items():
            mapped = batch.mapped[trace_id]
            for reason, count in mapped.ignored.items():
                self._metrics.count_spans("ignored", count, reason)
            files |= self.joiner.done(trace_id, mapped.past, spans)
        used = sum(mapped.used for mapped in batch.mapped.values())
        rejected = min(used, batch.rejected_spans)
        self._metrics.count_spans("accepted", used - rejected)
        self._metrics.count_spans("rejected", rejected, "event_refused")
        if files and self._spool is not None:
            self._spool.delete(files)

    async def _keep_releasing(self) -> None:
        pause = _TICK_SECONDS
        while not self._stopping.is_set():
            try:
                async with asyncio.timeout(pause):
                    await self._stopping.wait()
            except TimeoutError:
                pass
            try:
                failed = await self._release() is None
            except Exception:
                # Without this loop nothing that waits would ever leave.
                logger.exception("Waiting traces could not be published; they are tried again.")
                failed = True
            pause = _RETRY_SECONDS if failed else _TICK_SECONDS

    async def _release(self) -> int | None:
        """Publish traces that have waited; how many, or ``None`` where the broker failed."""
        due = self.joiner.due(time.monotonic())
        chosen = dict(list(due.items())[:_DUE_TRACES])
        self.joiner.put_back(due.keys() - chosen.keys())
        if not chosen:
            return 0
        arrival = Arrival(self._clock())
        try:
            batch = await self._map(chosen, arrival)
            self._rescue(batch)
            await self._publish(batch)
        except UnavailableError as error:
            self.joiner.put_back(chosen)
            logger.debug("Waiting traces stay: %s.", error)
            return None if not self._stopping.is_set() else 0
        self._finish(chosen, batch)
        return len(chosen)

    def _rescue(self, batch: Batch) -> None:
        """Events refused after their spans were acknowledged go on, to become dead letters."""
        refused = {refusal.event_id for refusal, _ in batch.rejected}
        for mapped in batch.mapped.values():
            for kind, event, weight in mapped.events:
                record = make_last_resort(kind, event) if refused else None
                if record is not None and record.event_id in refused:
                    batch.records.append(record)
                    batch.kinds.append((kind, event.get("source_format", "otlp")))
                    batch.weights.append(weight)
        batch.rejected.clear()


def _map_safely(trace_id: str, spans: Sequence[Span], past: Past) -> Mapped:
    """Map a trace; a fault of ours costs this trace and not its neighbours."""
    try:
        return map_trace(spans, past)
    except Exception as error:
        # The error's own words may quote what redaction would have removed.
        place = traceback.extract_tb(error.__traceback__)[-1]
        logger.error(
            "The spans of trace %s could not be mapped: %s in %s, line %s.",
            trace_id,
            type(error).__name__,
            place.name,
            place.lineno,
        )
        mapped = Mapped(past=past)
        mapped.ignored[Reason.INTERNAL_ERROR.value] += len(spans)
        return mapped


def describe(rejected: Sequence[tuple[Rejected, int]], faults: Sequence[Any]) -> str:
    """Why spans were refused, in a sentence or two for an exporter's log."""
    reasons = [str(fault) for fault in faults] + [r.message or str(r.reason) for r, _ in rejected]
    unique = list(dict.fromkeys(reasons))
    more = f" (and {len(unique) - 3} other reasons)" if len(unique) > 3 else ""
    return "; ".join(unique[:3]) + more
