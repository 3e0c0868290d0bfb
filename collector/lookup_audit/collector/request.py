"""What every receiving route does first: take the body within its budget, note how it came."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime

from starlette.requests import Request

from lookup_audit.collector.body import read_body
from lookup_audit.collector.config import CollectorConfig
from lookup_audit.collector.envelope import Arrival, read_trace_parent
from lookup_audit.collector.pressure import Budget


@asynccontextmanager
async def taken_body(
    request: Request, config: CollectorConfig, bodies: Budget
) -> AsyncIterator[bytes]:
    """The whole body, whose size counts against the budget until it has been dealt with.

    Raises:
        HTTPException: See :func:`read_body`; 429 where too much is in flight.
        ClientDisconnect: The sender went away.
    """
    with bodies.lease() as lease:
        yield await read_body(
            request,
            max_bytes=config.max_body_bytes,
            timeout_seconds=config.body_timeout_seconds,
            take=lease.take,
        )


def arrival_of(request: Request, received_at: datetime) -> Arrival:
    """How a request came."""
    return Arrival(
        received_at=received_at,
        trace_parent=read_trace_parent(request.headers.get("traceparent")),
        trace_state=request.headers.get("tracestate", "")[:512],
    )
