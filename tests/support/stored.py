"""Events into a store the way they come: encoded, audited, written by the sink."""

from collections.abc import Sequence
from itertools import count
from typing import Any

from lookup_audit.processors.sink import Written
from lookup_audit.processors.store import Store
from lookup_audit.schemas.names import Topic
from tests.support.events import Event, encode
from tests.support.twins import make_encoder, make_message, make_sink

_offsets = count()


def store_lookups(store: Store, *events: Event) -> Written:
    """Store lookups at fresh offsets."""
    return _write(store, events, Topic.RESULTS)


def store_answers(store: Store, *events: Event) -> Written:
    """Store outcomes and judgements at fresh offsets."""
    return _write(store, events, Topic.OUTCOMES)


def _write(store: Store, events: Sequence[Event], topic: Topic) -> Written:
    messages: list[Any] = [make_message(encode(e), next(_offsets), topic=topic) for e in events]
    return make_sink(store).write(make_encoder().encode(messages))
