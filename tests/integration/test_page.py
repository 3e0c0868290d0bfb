"""``GET /`` over a filled engine: what a browser, a script-less reader and curl get."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from html.parser import HTMLParser
from urllib.parse import quote

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware

from lookup_audit.collector.auth import RequireToken, hash_token, make_token
from lookup_audit.dashboards.boards import BOARDS
from lookup_audit.deploy.embedded.page_http import OPEN_PATHS, page_routes, takes_html
from lookup_audit.deploy.embedded.read_only import QueryError, ReadOnlyEngine
from lookup_audit.processors.store import ClickHouseStore
from tests.support.asgi import Client
from tests.support.board_data import NASTY_MODEL, NASTY_QUERY, fill

pytest_plugins = ["tests.support.engine"]

HTML = {"accept": "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8"}
TOKEN = make_token()


class Elements(HTMLParser):
    """Tags with their attributes, and the text outside of scripts and styles."""

    def __init__(self, page: str):
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data

    def attributes(self, tag: str, name: str) -> list[str]:
        return [value for t, a in self.tags if t == tag and (value := a.get(name)) is not None]


@pytest.fixture(scope="module")
def ids(engine: ClickHouseStore) -> list[str]:
    from tests.support.engine import TABLES

    for table in TABLES:
        engine.command(f"TRUNCATE TABLE audit_store.{table}")
    return fill(engine, datetime.now(UTC))


@pytest.fixture(scope="module")
def reader(engine_path: str, ids: list[str]) -> Iterator[ReadOnlyEngine]:
    made = ReadOnlyEngine(engine_path)
    yield made
    made.close()


@pytest.fixture
def client(reader: ReadOnlyEngine) -> Client:
    return Client(Starlette(routes=page_routes(reader, lambda: "where things are")))


@pytest.fixture
def guarded(reader: ReadOnlyEngine) -> Client:
    hashes = (hash_token(TOKEN),)
    guard = Middleware(RequireToken, token_hashes=hashes, open_paths=OPEN_PATHS)
    routes = page_routes(reader, lambda: "where things are", hashes)
    return Client(Starlette(routes=routes, middleware=[guard]))


@pytest.mark.parametrize("board", [board.uid for board in BOARDS])
def test_a_board_is_whole_escaped_and_self_contained(
    client: Client, ids: list[str], board: str
) -> None:
    answer = client.get(f"/?board={board}&from=now-2d&var-event_id={ids[-1]}", headers=HTML)
    page = Elements(answer.text)

    assert answer.status_code == 200
    assert 'class="problem"' not in answer.text
    assert "<script>alert" not in answer.text
    assert [a.get("src") for tag, a in page.tags if tag == "script"] == ["/page/page.js"]
    assert not [a for _, a in page.tags if any(n.startswith("on") or n == "style" for n in a)]
    links = [*page.attributes("a", "href"), *page.attributes("link", "href")]
    assert all(link.startswith(("/", "#")) and not link.startswith("//") for link in links)
    assert "img" not in {tag for tag, _ in page.tags}


def test_stored_text_is_shown_as_text(client: Client, ids: list[str]) -> None:
    page = client.get(f"/?board=lookup&var-event_id={ids[-1]}", headers=HTML).text

    assert NASTY_QUERY in Elements(page).text
    assert NASTY_MODEL in Elements(page).text
    assert NASTY_MODEL not in page


def test_the_headline_is_read_without_a_script(client: Client) -> None:
    page = Elements(client.get("/", headers=HTML).text)

    assert "High-score errors against low-score refusals" in page.text
    for word in ("dense", "hybrid", "mini@1"):
        assert word in page.text


def test_one_lookup_is_two_clicks_from_the_overview(client: Client) -> None:
    overview = Elements(client.get("/?from=now-2d", headers=HTML).text)
    link = next(h for h in overview.attributes("a", "href") if "var-event_id=" in h)
    lookup = Elements(client.get(link, headers=HTML).text)

    assert "Reported against recomputed" in lookup.text
    assert "no lookup has this id" not in lookup.text
    assert "from=now-2d" in link


def test_pickers_offer_what_is_stored_and_choose_it(client: Client) -> None:
    page = Elements(client.get("/?from=now-2d", headers=HTML).text)
    option = next(
        str(a["value"]) for tag, a in page.tags if tag == "option" and "script" in str(a["value"])
    )
    chosen = client.get(f"/?from=now-2d&var-model_version={quote(option)}", headers=HTML)

    assert NASTY_MODEL in Elements(chosen.text).text
    assert "<td>mini@1</td>" not in chosen.text
    assert "<td>dense</td>" in chosen.text
    dense = client.get("/?from=now-2d&var-mode=dense", headers=HTML).text
    assert "<td>hybrid</td>" not in dense


@pytest.mark.parametrize(
    "query",
    ["board=nope", "from=yesterday", "from=now&to=now-1d", "var-mode=" + "x" * 2000],
)
def test_an_address_that_cannot_be_read_says_why(client: Client, query: str) -> None:
    answer = client.get(f"/?{query}", headers=HTML)

    assert answer.status_code == 400
    assert "This address cannot be read" in answer.text


@pytest.mark.parametrize(
    "value", ["<script>alert(1)</script>", "' OR 1=1 --", "\\", '"><b>', "东", "%27", "\u202e"]
)
@pytest.mark.parametrize("name", ["var-event_id", "var-mode", "from", "board", "unknown"])
def test_nothing_in_an_address_becomes_markup_or_sql(client: Client, name: str, value: str) -> None:
    answer = client.get(f"/?board=lookup&{name}={quote(value)}", headers=HTML)

    assert answer.status_code in (200, 400)
    assert "<script>alert" not in answer.text
    assert 'class="problem"' not in answer.text
    assert "<b>" not in answer.text.replace("<b>–", "")


def test_the_policy_forbids_everything_from_elsewhere(client: Client) -> None:
    headers = client.get("/", headers=HTML).headers

    assert "default-src 'none'" in headers["content-security-policy"]
    assert "unsafe" not in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cache-control"] == "no-store"
    assert headers["referrer-policy"] == "no-referrer"


@pytest.mark.parametrize("accept", ["*/*", "", "application/json", "text/plain"])
def test_who_takes_no_html_gets_a_few_lines_of_text(client: Client, accept: str) -> None:
    answer = client.get("/", headers={"accept": accept})

    assert answer.text == "where things are\n"
    assert answer.headers["content-type"].startswith("text/plain")


@pytest.mark.parametrize("path", OPEN_PATHS[1:])
def test_the_page_loads_only_what_is_served_beside_it(client: Client, path: str) -> None:
    answer = client.get(path)

    assert answer.status_code == 200
    # A name space is no address that is asked for.
    assert "http" not in answer.text.replace("http://www.w3.org/2000/svg", "").replace(
        "http-equiv", ""
    )


def test_the_script_keeps_the_token_in_memory_only(client: Client) -> None:
    script = client.get("/page/page.js").text

    for store in ("localStorage", "sessionStorage", "cookie", "innerHTML", "eval"):
        assert store not in script


def test_without_a_token_a_browser_is_asked_for_one_and_sees_nothing(guarded: Client) -> None:
    answer = guarded.get("/?board=pipeline", headers=HTML)

    assert answer.status_code == 401
    assert 'id="token-form"' in answer.text
    assert "mini@1" not in answer.text
    assert "where things are" not in answer.text


@pytest.mark.parametrize(
    "sent", ["", "Bearer wrong", f"Basic {TOKEN}"], ids=["none", "wrong", "another scheme"]
)
def test_a_wrong_token_shows_nothing(guarded: Client, sent: str) -> None:
    for accept in (HTML["accept"], "*/*"):
        answer = guarded.get("/", headers={"accept": accept, "authorization": sent})
        assert answer.status_code == 401
        assert "mini@1" not in answer.text


def test_with_the_token_the_page_and_the_text_are_shown(guarded: Client) -> None:
    token = {"authorization": f"Bearer {TOKEN}"}

    assert "mini@1" in guarded.get("/", headers={**HTML, **token}).text
    assert guarded.get("/", headers={"accept": "*/*", **token}).text == "where things are\n"


class FailingEngine(ReadOnlyEngine):
    """Refuses what reads two of the views."""

    def query(
        self,
        sql: str,
        *,
        default_format: str = "TabSeparated",
        parameters: Mapping[str, str] | None = None,
    ) -> tuple[bytes, str]:
        if "audit.ratio_daily" in sql or "audit.change_points" in sql:
            raise QueryError("Code: 241. DB::Exception: <memory>")
        return super().query(sql, default_format=default_format, parameters=parameters)


def test_a_panel_that_fails_leaves_the_others(engine_path: str, ids: list[str]) -> None:
    failing = FailingEngine(engine_path)
    client = Client(Starlette(routes=page_routes(failing, lambda: "")))
    page = client.get("/?from=now-2d", headers=HTML).text
    failing.close()

    assert page.count('class="problem"') == 1
    assert "&lt;memory&gt;" in page
    assert "mini@1" in page


def test_html_is_given_only_to_those_who_name_it() -> None:
    assert takes_html("text/html")
    assert takes_html("application/xml, TEXT/HTML;q=0.1")
    assert not takes_html("*/*")
    assert not takes_html("text/plain")
