"""A transport that a test can steer, and an emitter over it."""

import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from lookup_audit.collector import LookupEmitter
from lookup_audit.collector.emitter.transport import Answer, Delivered
from lookup_audit.schemas.names import EventType

Reply = Callable[[EventType, Sequence[bytes]], Answer]


class SteeredTransport:
    """Keeps what arrives; answers by ``reply``."""

    def __init__(self, reply: Reply | None = None) -> None:
        self.received: list[tuple[EventType, bytes]] = []
        self.batches: list[int] = []
        self.open = threading.Event()
        self.open.set()
        self.reply = reply

    def send(self, kind: EventType, values: Sequence[bytes]) -> Answer:
        self.open.wait(20)
        self.batches.append(len(values))
        answer = self.reply(kind, values) if self.reply else Delivered(Counter())
        if isinstance(answer, Delivered):
            self.received += [(kind, value) for value in values]
        return answer

    def close(self) -> None:
        pass

    def forget(self) -> None:
        pass

    @property
    def events(self) -> list[Any]:
        return [json.loads(value) for _, value in self.received]


@contextmanager
def emitting(transport: SteeredTransport, **settings: Any) -> Iterator[LookupEmitter]:
    """An emitter with short waits."""
    defaults = {"linger_seconds": 0.01, "retry_seconds": 0.01, "close_seconds": 2.0}
    emitter = LookupEmitter(
        "http://unused.example", make_transport=lambda: transport, **{**defaults, **settings}
    )
    try:
        yield emitter
    finally:
        transport.open.set()
        emitter.close()
