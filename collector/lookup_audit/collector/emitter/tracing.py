"""The application's current span: its ids for the event, our attributes for its other backends.

Works with opentelemetry-api where it is installed and does nothing where it is not. No text of a
query or a document is ever written to a span: those go through redaction, spans do not.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

try:
    from opentelemetry import context, trace
except ImportError:
    HAS_TRACING = False
else:
    HAS_TRACING = True

# The collector leaves a span with this attribute out: its lookup came natively.
EVENT_ID: Final = "lookup_audit.event.id"
_ATTRIBUTES: Final = {
    "mode": "lookup_audit.retrieval.mode",
    "quality_score": "lookup_audit.retrieval.quality.score",
    "relevance_level": "lookup_audit.retrieval.relevance.level",
    "evidence_status": "lookup_audit.evidence.status",
    "truncated": "lookup_audit.retrieval.truncated",
    "selected_chunk_ids": "lookup_audit.retrieval.selected_ids",
    "top_k": "gen_ai.retrieval.top_k",
}


class SpanIds(NamedTuple):
    """Where in the application's trace a lookup happened, in hex."""

    trace_id: str
    span_id: str


def current_span_ids() -> SpanIds | None:
    """The current span, or ``None`` without one."""
    if not HAS_TRACING:
        return None
    found = trace.get_current_span().get_span_context()
    if not found.is_valid:
        return None
    return SpanIds(f"{found.trace_id:032x}", f"{found.span_id:016x}")


def describe_on_current_span(event: Mapping[str, Any]) -> None:
    """Write what the event says of the call on the current span, if that is being recorded."""
    if not HAS_TRACING:
        return
    span = trace.get_current_span()
    if not span.is_recording():
        return
    attributes: dict[str, Any] = {"gen_ai.operation.name": "retrieval"}
    for name, attribute in _ATTRIBUTES.items():
        value = event.get(name)
        if isinstance(value, (str, bool, int, float)):
            attributes[attribute] = value
        elif isinstance(value, (list, tuple)):
            attributes[attribute] = [str(member) for member in value]
    attributes[EVENT_ID] = str(event.get("event_id", ""))
    span.set_attributes(attributes)


def suppress_instrumentation() -> None:
    """Keep instrumented clients on this thread from tracing our own deliveries."""
    if HAS_TRACING:
        key = "suppress_instrumentation"
        context.attach(context.set_value(key, True))
