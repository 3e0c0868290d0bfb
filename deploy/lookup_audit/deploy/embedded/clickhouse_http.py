"""ClickHouse's HTTP interface over the embedded engine, for reading.

What curl, clickhouse-connect and a Grafana data source use of it: the query in the URL or the
body, ``default_format``, ``param_<name>``, ``database``, the ping, and errors with their code.
"""

import asyncio
import json
import os
import uuid
from collections.abc import Mapping
from typing import Final

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Mount, Route

from lookup_audit.deploy.embedded.read_only import READONLY_CODE, QueryError, ReadOnlyEngine

_MAX_QUERY_BYTES: Final = 4 * 1024 * 1024
_MEDIA_TYPES: Final[Mapping[str, str]] = {
    "JSON": "application/json; charset=UTF-8",
    "JSONCompact": "application/json; charset=UTF-8",
    "JSONEachRow": "application/x-ndjson; charset=UTF-8",
    "TabSeparated": "text/tab-separated-values; charset=UTF-8",
    "CSV": "text/csv; charset=UTF-8; header=absent",
    "CSVWithNames": "text/csv; charset=UTF-8; header=present",
}
# Codes that a caller mends in the query; everything else is the engine's own trouble.
_STATUS: Final[Mapping[int, int]] = {60: 404, 81: 404, READONLY_CODE: 403, 159: 408, 241: 500}


def clickhouse_routes(engine: ReadOnlyEngine, prefix: str = "/clickhouse") -> list[BaseRoute]:
    """Routes of the interface under a prefix."""
    served = _Interface(engine)
    return [
        Route(prefix, served.query, methods=["GET", "POST"]),
        Mount(
            prefix,
            routes=[
                Route("/ping", served.ping, methods=["GET"]),
                Route("/", served.query, methods=["GET", "POST"]),
            ],
        ),
    ]


class _Interface:
    def __init__(self, engine: ReadOnlyEngine):
        self._engine = engine

    async def ping(self, _: Request) -> Response:
        return PlainTextResponse("Ok.\n")

    async def query(self, request: Request) -> Response:
        options = request.query_params
        body = bytearray()
        async for chunk in request.stream():
            body += chunk
            if len(body) > _MAX_QUERY_BYTES:
                return PlainTextResponse("Code: 62. DB::Exception: The query is too long", 413)
        sql = "\n".join(filter(None, (options.get("query", ""), body.decode("utf-8", "replace"))))
        if not sql.strip():
            # What ClickHouse answers to a bare visit; health checks rely on it.
            return PlainTextResponse("Ok.\n")
        parameters = {
            name.removeprefix("param_"): value
            for name, value in options.items()
            if name.startswith("param_")
        }
        asked = options.get("default_format") or request.headers.get("x-clickhouse-format")
        headers = {
            "X-ClickHouse-Server-Display-Name": "lookup-audit",
            "X-ClickHouse-Query-Id": options.get("query_id") or str(uuid.uuid4()),
            "X-ClickHouse-Timezone": os.environ.get("TZ") or "UTC",
            "Cache-Control": "no-store",
        }
        try:
            data, output = await asyncio.to_thread(
                self._engine.query,
                sql,
                default_format=asked or "TabSeparated",
                parameters=parameters,
            )
        except QueryError as error:
            headers["X-ClickHouse-Exception-Code"] = str(error.code)
            return PlainTextResponse(f"{error}\n", _STATUS.get(error.code, 400), headers)
        headers["X-ClickHouse-Format"] = output
        headers["X-ClickHouse-Summary"] = json.dumps({"result_bytes": str(len(data))})
        media_type = _MEDIA_TYPES.get(output, "application/octet-stream")
        return Response(data, media_type=media_type, headers=headers)
