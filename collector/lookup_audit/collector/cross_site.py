"""Keeps other web sites from using the reader's browser against a service on loopback.

A page from anywhere can make a browser send requests to 127.0.0.1. Browsers say where a request
comes from; senders that are not browsers say nothing and are let through. A name that was pointed
at this machine (DNS rebinding) shows in ``Host``.
"""

from collections.abc import Callable, Collection
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send


class RefuseCrossSite:
    """ASGI middleware that answers 403 to a browser's request from another site.

    Args:
        app: What to guard.
        is_known_host: Whether ``Host`` may name this service, port left out.
        linked_paths: Pages that a link from another site may open. That site cannot read what
            its link opened, and opening them changes nothing.
    """

    def __init__(
        self,
        app: ASGIApp,
        is_known_host: Callable[[str], bool] = lambda host: True,
        linked_paths: Collection[str] = (),
    ):
        self.app = app
        self._is_known_host = is_known_host
        self._linked_paths = frozenset(linked_paths)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the call on, or refuse it before its body is read."""
        if scope["type"] == "http" and (reason := self._objection(scope, Headers(scope=scope))):
            await JSONResponse({"error": reason}, status_code=403)(scope, receive, send)
            return
        await self.app(scope, receive, send)

    def _objection(self, scope: Scope, headers: Headers) -> str:
        host = headers.get("host", "")
        is_foreign = headers.get("sec-fetch-site") in ("cross-site", "same-site")
        if is_foreign and not self._is_followed_link(scope, headers):
            return "requests from another web site are not taken"
        origin = headers.get("origin")
        if origin is not None and urlsplit(origin).netloc != host:
            return f"requests from the web site {origin} are not taken"
        name = urlsplit(f"//{host}").hostname or ""
        if host and not self._is_known_host(name):
            return f"this service is not known as {name}; use 127.0.0.1 or localhost"
        return ""

    def _is_followed_link(self, scope: Scope, headers: Headers) -> bool:
        """Whether the user's own tab goes to a page; frames, images and fetches do not count."""
        return (
            scope["method"] == "GET"
            and scope["path"] in self._linked_paths
            and headers.get("sec-fetch-mode") == "navigate"
            and headers.get("sec-fetch-dest") == "document"
        )
