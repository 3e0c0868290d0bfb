"""One request to an ASGI app, without a socket."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message


@dataclass(frozen=True)
class Answered:
    """What the app answered."""

    status_code: int
    headers: Headers
    text: str


class Client:
    """Asks an app; each request is an event loop of its own."""

    def __init__(self, app: ASGIApp):
        self._app = app

    def get(self, address: str, headers: Mapping[str, str] | None = None) -> Answered:
        parts = urlsplit(address)
        scope = {
            "type": "http",
            "http_version": "1.1",
            "method": "GET",
            "scheme": "http",
            "path": parts.path,
            "raw_path": parts.path.encode(),
            "root_path": "",
            "query_string": parts.query.encode(),
            "headers": [(k.lower().encode(), v.encode()) for k, v in (headers or {}).items()],
            "server": ("127.0.0.1", 80),
        }
        sent: list[Message] = []

        async def receive() -> Message:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message: Message) -> None:
            sent.append(message)

        async def ask() -> None:
            await self._app(scope, receive, send)

        asyncio.run(ask())
        start = sent[0]
        body = b"".join(message.get("body", b"") for message in sent[1:])
        return Answered(start["status"], Headers(raw=start["headers"]), body.decode())
