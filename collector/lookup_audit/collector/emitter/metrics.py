"""The emitter's counts as OpenTelemetry metrics, where the API is installed.

``lookup_audit.emitter.events`` counts by ``emitter.result`` (``accepted``, ``rejected``,
``dropped``) and ``error.type``; ``lookup_audit.emitter.queue.size`` shows what waits in memory.
"""

from collections.abc import Callable, Iterable

from lookup_audit.collector.emitter.tally import Count

try:
    from opentelemetry import metrics
except ImportError:
    HAS_METRICS = False
else:
    HAS_METRICS = True


def make_count(queued: Callable[[], int]) -> Count | None:
    """Instruments of the application's own meter provider, or ``None`` without the API.

    Args:
        queued: How many events wait in memory now.
    """
    if not HAS_METRICS:
        return None
    meter = metrics.get_meter("lookup_audit.emitter")
    events = meter.create_counter(
        "lookup_audit.emitter.events", "{event}", "Events emitted, by what became of them"
    )

    def observe(_: metrics.CallbackOptions) -> Iterable[metrics.Observation]:
        return [metrics.Observation(queued())]

    meter.create_observable_gauge(
        "lookup_audit.emitter.queue.size", [observe], "{event}", "Events that wait in memory"
    )

    def count(result: str, reason: str, number: int) -> None:
        attributes = {"emitter.result": result}
        events.add(number, attributes | ({"error.type": reason} if reason else {}))

    return count
