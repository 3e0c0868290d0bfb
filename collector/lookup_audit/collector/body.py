"""A request's body in bounded memory: read as a stream, inflated piece by piece, stopped early.

The limit holds for what is sent and for what it becomes after decompression, and is looked at
before a piece is kept. Problems are raised as ``HTTPException`` with the status to answer.
"""

import asyncio
from collections.abc import Callable
from typing import Final

from starlette.exceptions import HTTPException
from starlette.requests import Request

from lookup_audit.collector.inflate import CODINGS, InflateError, Inflater, make_inflater

# "text/json" is old but means nothing else. Labels do not decide how a body is split.
CONTENT_TYPES: Final = frozenset(
    {
        "application/json",
        "application/jsonl",
        "application/ndjson",
        "application/x-ndjson",
        "text/json",
    }
)
# Give other requests a turn after this much decompression (about 2 ms).
_TURN_BYTES: Final = 1024 * 1024


def check_content_type(value: str | None) -> None:
    """Refuse a body that says it is not JSON; one that says nothing is taken as JSON.

    Raises:
        HTTPException: 415.
    """
    if not value or media_type(value) in CONTENT_TYPES:
        return
    raise HTTPException(
        415,
        f"content type {media_type(value)!r} is not taken; "
        "send 'Content-Type: application/json' or 'application/x-ndjson'",
    )


def media_type(value: str) -> str:
    """The type of a ``Content-Type`` header without its parameters, in lower case.

    >>> media_type("Application/JSON; charset=utf-8")
    'application/json'
    """
    return value.partition(";")[0].strip().lower()


async def read_body(
    request: Request,
    *,
    max_bytes: int,
    timeout_seconds: float,
    take: Callable[[int], None] = lambda size: None,
) -> bytes:
    """Read and decompress the whole body.

    Args:
        request: Whose body has not been read yet.
        max_bytes: Largest body, as sent and after decompression.
        timeout_seconds: How long the sender may take.
        take: Called with the size of each piece before it is kept; may refuse by raising.

    Raises:
        HTTPException: 400 corrupt encoding, 408 too slow, 413 too large, 415 unknown encoding.
        ClientDisconnect: The sender went away.
    """
    inflater = _inflater(request.headers.get("content-encoding", ""))
    declared = request.headers.get("content-length", "")
    if declared.isascii() and declared.isdigit() and int(declared) > max_bytes:
        raise _too_large(max_bytes)
    try:
        async with asyncio.timeout(timeout_seconds):
            return await _read(request, inflater, max_bytes, take)
    except TimeoutError:
        raise HTTPException(
            408,
            f"the body did not arrive within {timeout_seconds:g} seconds",
            headers={"Connection": "close"},
        ) from None
    except InflateError as error:
        raise HTTPException(400, str(error)) from error


async def _read(
    request: Request, inflater: Inflater | None, max_bytes: int, take: Callable[[int], None]
) -> bytes:
    kept: list[bytes] = []
    sent = size = since_turn = 0
    async for chunk in request.stream():
        sent += len(chunk)
        if sent > max_bytes:
            raise _too_large(max_bytes)
        for piece in inflater.feed(chunk) if inflater else (chunk,):
            size += len(piece)
            if size > max_bytes:
                raise _too_large(max_bytes)
            take(len(piece))
            kept.append(piece)
            since_turn += len(piece)
            if inflater and since_turn > _TURN_BYTES:
                since_turn = 0
                await asyncio.sleep(0)
    if inflater:
        inflater.finish()
    return b"".join(kept)


def _inflater(content_encoding: str) -> Inflater | None:
    coding = content_encoding.strip().lower()
    if coding in ("", "identity"):
        return None
    inflater = make_inflater(coding)
    if inflater is None:
        raise HTTPException(
            415,
            f"content encoding {coding!r} is not taken; send one of {', '.join(CODINGS)}",
            headers={"Accept-Encoding": ", ".join(CODINGS)},
        )
    return inflater


def _too_large(max_bytes: int) -> HTTPException:
    return HTTPException(
        413, f"the body is larger than {max_bytes} bytes (after decompression); send it in parts"
    )
