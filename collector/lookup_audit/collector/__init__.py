"""Collector stage of Lookup Audit; what a retrieval service imports is the emitter's part of it."""

from lookup_audit.collector.emitter import (
    EmitterConfig,
    EmitterStats,
    InMemoryEmitter,
    LookupEmitter,
    candidates_from_langchain,
    candidates_from_llama_index,
    lookup_result,
    new_event_id,
)

__all__ = [
    "EmitterConfig",
    "EmitterStats",
    "InMemoryEmitter",
    "LookupEmitter",
    "candidates_from_langchain",
    "candidates_from_llama_index",
    "lookup_result",
    "new_event_id",
]
