"""Emitter: for a Python retrieval service, in its own process; needs pydantic and msgspec alone."""

from lookup_audit.collector.emitter.builder import (
    candidates_from_langchain,
    candidates_from_llama_index,
    lookup_result,
    new_event_id,
)
from lookup_audit.collector.emitter.config import EmitterConfig
from lookup_audit.collector.emitter.emitter import LookupEmitter
from lookup_audit.collector.emitter.memory import InMemoryEmitter
from lookup_audit.collector.emitter.tally import Drop, EmitterStats

__all__ = [
    "Drop",
    "EmitterConfig",
    "EmitterStats",
    "InMemoryEmitter",
    "LookupEmitter",
    "candidates_from_langchain",
    "candidates_from_llama_index",
    "lookup_result",
    "new_event_id",
]
