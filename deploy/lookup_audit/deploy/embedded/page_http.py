"""``GET /``: the boards as a page for browsers, and a few lines of text for everybody else.

The page runs the panels' statements through the read-only engine. Where tokens are configured a
browser without one gets a form that asks for it; the token stays in that page's memory.
"""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from importlib import resources
from typing import Final, TypeVar

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import BaseRoute, Route

from lookup_audit.collector.auth import is_accepted
from lookup_audit.dashboards.answers import Answer, Run, read_json_compact
from lookup_audit.dashboards.model import Panel
from lookup_audit.dashboards.page import html
from lookup_audit.dashboards.page.times import TimeError
from lookup_audit.dashboards.page.view import (
    Asked,
    AskedWrongError,
    View,
    answer_panel,
    read,
    read_marks,
    read_options,
)
from lookup_audit.deploy.embedded.read_only import ReadOnlyEngine
from lookup_audit.schemas.errors import LookupAuditError

T = TypeVar("T")

ASSETS: Final = {
    "style.css": "text/css; charset=utf-8",
    "page.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
}
# Answered without a token: the page itself looks for one, the assets hold nothing stored.
OPEN_PATHS: Final = ("/", *(f"/page/{name}" for name in ASSETS))
# As many as the engine has connections: more would only wait.
_AT_ONCE: Final = 2
_HEADERS: Final = {
    "Content-Security-Policy": html.CONTENT_POLICY,
    "X-Content-Type-Options": "nosniff",
    # Addresses hold ids of lookups.
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
    "Vary": "Accept, Authorization",
}


def page_routes(
    engine: ReadOnlyEngine, describe: Callable[[], str], token_hashes: Sequence[str] = ()
) -> list[BaseRoute]:
    """Routes of the page and of what it loads.

    Args:
        engine: Answers the panels.
        describe: The text for clients that take no HTML.
        token_hashes: Of the tokens that may see the page; empty for everybody.
    """
    served = _Page(engine, describe, token_hashes)
    return [
        Route("/", served.index, methods=["GET"]),
        *(Route(f"/page/{name}", _asset(name), methods=["GET"]) for name in ASSETS),
    ]


def takes_html(accept: str) -> bool:
    """Whether a client names HTML among what it takes; ``*/*`` alone, as of curl, does not."""
    kinds = (part.split(";")[0].strip().lower() for part in accept.split(","))
    return any(kind in ("text/html", "application/xhtml+xml") for kind in kinds)


class _Page:
    def __init__(
        self, engine: ReadOnlyEngine, describe: Callable[[], str], token_hashes: Sequence[str]
    ):
        self._engine = engine
        self._describe = describe
        self._token_hashes = tuple(token_hashes)
        # Threads of its own, so that readers of boards never keep an ingest waiting for one.
        self._workers = ThreadPoolExecutor(_AT_ONCE, "lookup-audit-page")

    async def index(self, request: Request) -> Response:
        wants_page = takes_html(request.headers.get("accept", ""))
        authorization = request.headers.get("authorization")
        if self._token_hashes and not is_accepted(authorization, self._token_hashes):
            return _ask_for_token(wants_page)
        if not wants_page:
            return PlainTextResponse(self._describe() + "\n", headers={"Vary": "Accept"})
        try:
            asked = read(request.query_params.multi_items(), datetime.now(UTC))
        except (AskedWrongError, TimeError) as error:
            return _html(html.message_page("This address cannot be read", str(error)), 400)
        return _html(html.board_page(await self._view(asked)))

    async def _view(self, asked: Asked) -> View:
        panels = [panel for panel in asked.board.panels if panel.sql]
        options, marks, answers = await asyncio.gather(
            self._ask(lambda: _or_nothing(lambda: read_options(self._run, asked))),
            self._ask(lambda: _or_nothing(lambda: read_marks(self._run, asked))),
            asyncio.gather(*(self._ask(_of(self._run, asked, panel)) for panel in panels)),
        )
        found = {panel.id: answer for panel, answer in zip(panels, answers, strict=True)}
        return View(asked, options or {}, found, marks or ())

    async def _ask(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._workers, work)

    def _run(self, sql: str) -> Answer:
        data, _ = self._engine.query(sql, default_format="JSONCompact")
        return read_json_compact(data)


def _of(run: Run, asked: Asked, panel: Panel) -> Callable[[], Answer | str]:
    return lambda: answer_panel(run, asked, panel)


def _or_nothing(work: Callable[[], T]) -> T | None:
    """What a picker or a mark cannot show must not take the panels with it."""
    try:
        return work()
    except LookupAuditError:
        return None


def _ask_for_token(wants_page: bool) -> Response:
    challenge = {"WWW-Authenticate": "Bearer"}
    if wants_page:
        return _html(html.token_page(), 401, challenge)
    error = {"error": "a valid token is needed; send 'Authorization: Bearer <token>'"}
    return JSONResponse(error, 401, challenge)


def _html(text: str, status: int = 200, extra: dict[str, str] | None = None) -> Response:
    return Response(
        text.encode("utf-8", "replace"),
        status,
        {**_HEADERS, **(extra or {})},
        "text/html; charset=utf-8",
    )


def _asset(name: str) -> Callable[[Request], Response]:
    content = resources.files("lookup_audit.dashboards.page").joinpath(name).read_bytes()
    headers = {"X-Content-Type-Options": "nosniff", "Cache-Control": "no-cache"}

    def serve(_: Request) -> Response:
        return Response(content, headers=headers, media_type=ASSETS[name])

    return serve
