"""Delivery of events to the collector from a background thread.

An event handed over here is either accepted by the collector or named in ``refused``; there is
no third way out. While the collector is away the thread keeps trying, the queue fills, and then
``send`` blocks: the producer slows down instead of losing an event.
"""

from __future__ import annotations

import http.client
import json
import logging
import queue
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

logger = logging.getLogger(__name__)

Json = dict[str, Any]

RETRY_STATUSES = frozenset({408, 429, 500, 502, 503, 504})


class UndeliveredError(RuntimeError):
    """Events were still waiting when the time to flush was over."""

    def __init__(self, path: str, waiting: int) -> None:
        super().__init__(f"{waiting} events for {path} are not delivered; is the collector up?")
        self.waiting = waiting


@dataclass(frozen=True, slots=True)
class Answer:
    """An HTTP answer: status, the JSON body where there is one, the wait it asks for."""

    status: int
    body: Json
    retry_after_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Refusal:
    """An event that the collector refused for good, with what it said."""

    event: Json
    reason: str
    detail: str


Post = Callable[[str, Sequence[Json]], Answer]


class JsonPoster:
    """POSTs JSON to one server over a kept connection; one thread at a time."""

    def __init__(
        self, base_url: str, *, token: str | None = None, timeout_seconds: float = 15.0
    ) -> None:
        parts = urlsplit(base_url)
        kind = (
            http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        )
        self._connection = kind(parts.hostname or "127.0.0.1", parts.port, timeout=timeout_seconds)
        self._prefix = parts.path.rstrip("/")
        self.headers = {"content-type": "application/json"}
        if token is not None:
            self.headers["authorization"] = f"Bearer {token}"
        self.last_headers: dict[str, str] = {}

    def __call__(self, path: str, payload: object, headers: dict[str, str] | None = None) -> Answer:
        """Send one request.

        Raises:
            OSError: The server cannot be reached.
            http.client.HTTPException: The server broke the connection off.
        """
        body = json.dumps(payload, allow_nan=False).encode()
        try:
            self._connection.request(
                "POST", self._prefix + path, body, {**self.headers, **(headers or {})}
            )
            response = self._connection.getresponse()
            raw = response.read()
        except (OSError, http.client.HTTPException):
            self._connection.close()
            raise
        self.last_headers = {name.lower(): value for name, value in response.getheaders()}
        return Answer(
            response.status, _json_object(raw), _seconds(response.getheader("retry-after"))
        )

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


def _json_object(raw: bytes) -> Json:
    try:
        value = json.loads(raw)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _seconds(header: str | None) -> float | None:
    return float(header) if header is not None and header.isdigit() else None


@dataclass(slots=True)
class DeliveryState:
    """What became of the events so far."""

    handed_over: int = 0
    accepted: int = 0
    refused: list[Refusal] = field(default_factory=list)

    @property
    def waiting(self) -> int:
        """Events neither accepted nor refused yet."""
        return self.handed_over - self.accepted - len(self.refused)


class Delivery:
    """Sends events of one kind in batches; ``close`` waits until each has an answer."""

    def __init__(
        self,
        post: Post,
        path: str,
        *,
        batch_size: int = 25,
        queue_size: int = 2000,
        retry_seconds: float = 0.5,
    ) -> None:
        self._post = post
        self._path = path
        self._batch_size = batch_size
        self._retry_seconds = retry_seconds
        self._queue: queue.Queue[Json] = queue.Queue(queue_size)
        self._changed = threading.Condition()
        self._stopping = threading.Event()
        self.state = DeliveryState()
        self._thread = threading.Thread(target=self._run, name=f"deliver {path}", daemon=True)
        self._thread.start()

    def send(self, event: Json) -> None:
        """Hand an event over; blocks while the queue is full."""
        with self._changed:
            self.state.handed_over += 1
        self._queue.put(event)

    def flush(self, timeout_seconds: float = 30.0) -> None:
        """Wait until every event has its answer.

        Raises:
            UndeliveredError: Some have none after the timeout.
        """
        with self._changed:
            self._changed.wait_for(lambda: self.state.waiting == 0, timeout_seconds)
            if self.state.waiting:
                raise UndeliveredError(self._path, self.state.waiting)

    def close(self, timeout_seconds: float = 30.0) -> None:
        """Flush, then end the thread."""
        try:
            self.flush(timeout_seconds)
        finally:
            self._stopping.set()
            self._thread.join(timeout_seconds)

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                batch = [self._queue.get(timeout=0.05)]
            except queue.Empty:
                continue
            while len(batch) < self._batch_size:
                try:
                    batch.append(self._queue.get_nowait())
                except queue.Empty:
                    break
            self._deliver(batch)

    def _deliver(self, batch: list[Json]) -> None:
        while not self._stopping.is_set():
            try:
                answer = self._post(self._path, batch)
            except (OSError, http.client.HTTPException) as error:
                logger.warning("The collector did not take %d events: %s", len(batch), error)
                self._stopping.wait(self._retry_seconds)
                continue
            if answer.status in RETRY_STATUSES:
                self._stopping.wait(answer.retry_after_seconds or self._retry_seconds)
                continue
            self._settle(batch, answer)
            return

    def _settle(self, batch: list[Json], answer: Answer) -> None:
        rejected = answer.body.get("rejected")
        if answer.status in (202, 422) and isinstance(rejected, list):
            refused = [
                Refusal(batch[r["index"]], str(r.get("reason")), str(r.get("message")))
                for r in rejected
            ]
        elif answer.status == 202:
            refused = []
        else:
            refused = [Refusal(event, f"http_{answer.status}", "") for event in batch]
        if refused:
            logger.error(
                "The collector refused %d of %d events for %s: %s",
                len(refused),
                len(batch),
                self._path,
                refused[0].reason,
            )
        with self._changed:
            self.state.accepted += len(batch) - len(refused)
            self.state.refused.extend(refused)
            self._changed.notify_all()


def wait_until(ready: Callable[[], bool], timeout_seconds: float, pause: float = 0.01) -> bool:
    """Poll a condition; False if it did not come true in time."""
    deadline = time.monotonic() + timeout_seconds
    while not ready():
        if time.monotonic() > deadline:
            return False
        time.sleep(pause)
    return True
