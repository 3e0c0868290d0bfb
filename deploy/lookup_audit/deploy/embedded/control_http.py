"""The write door of a running stack: ``POST /control/<table>`` with an ArrowStream body.

Served on the collector's port, behind its tokens and cross-site checks. Bad input is answered with
422 and the column at fault, never with 500.
"""

import asyncio
from typing import Final

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from lookup_audit.collector.body import media_type, read_body
from lookup_audit.deploy.control import (
    CheckedStore,
    RowsRefusedError,
    control_table,
    decode_rows,
)
from lookup_audit.processors.store import Store

PREFIX: Final = "/control"
CONTENT_TYPE: Final = "application/vnd.apache.arrow.stream"
TOKEN_HEADER: Final = "Idempotency-Key"
MAX_BODY_BYTES: Final = 16 * 1024 * 1024
_MAX_TOKEN_LENGTH: Final = 256
_BODY_SECONDS: Final = 30.0


def control_routes(store: Store) -> list[BaseRoute]:
    """The route that writes control tables of a store."""
    served = _Door(CheckedStore(store))
    return [Route(PREFIX + "/{table}", served.write, methods=["POST"])]


class _Door:
    def __init__(self, store: CheckedStore):
        self._store = store

    async def write(self, request: Request) -> Response:
        if media_type(request.headers.get("content-type", "")) != CONTENT_TYPE:
            raise HTTPException(415, f"send 'Content-Type: {CONTENT_TYPE}'")
        token = request.headers.get(TOKEN_HEADER, "")
        if not 0 < len(token) <= _MAX_TOKEN_LENGTH:
            raise HTTPException(
                422, f"send '{TOKEN_HEADER}: …' of 1 to {_MAX_TOKEN_LENGTH} characters"
            )
        try:
            table = control_table(request.path_params["table"])
            body = await read_body(request, max_bytes=MAX_BODY_BYTES, timeout_seconds=_BODY_SECONDS)
            stored = await asyncio.to_thread(self._insert, table, body, token)
        except RowsRefusedError as error:
            return JSONResponse({"error": str(error), "column": error.column}, 422)
        except ClientDisconnect:
            # Nobody reads this answer; the status is for the metrics.
            return JSONResponse({"error": "the caller went away"}, 499)
        return JSONResponse({"stored": stored})

    def _insert(self, table: str, body: bytes, token: str) -> int:
        batch = decode_rows(body, table, self._store.columns(table))
        if batch.num_rows:
            self._store.insert(table, batch, token=token)
        return int(batch.num_rows)
