import hmac
import logging
from pathlib import Path

import pytest

from lookup_audit.collector import auth
from lookup_audit.collector.auth import (
    TOKENS_VARIABLE,
    hash_token,
    is_accepted,
    load_token_hashes,
    make_token,
    parse_tokens,
)
from lookup_audit.schemas.errors import ConfigError
from tests.support.events import encode, make_lookup
from tests.unit.collector.running import running

TOKEN, OTHER = make_token(), make_token()
HASHES = (hash_token(OTHER), hash_token(TOKEN))


def test_made_tokens_are_long_and_differ() -> None:
    assert TOKEN != OTHER
    assert len(TOKEN) >= 40


def test_a_known_token_is_accepted_in_any_case_of_its_scheme() -> None:
    assert is_accepted(f"Bearer {TOKEN}", HASHES)
    assert is_accepted(f"bearer  {TOKEN} ", HASHES)


@pytest.mark.parametrize(
    "header",
    [None, "", "Bearer", f"Basic {TOKEN}", TOKEN, f"Bearer {TOKEN}x", f"Bearer {HASHES[0]}"],
    ids=["none", "empty", "no-token", "other-scheme", "no-scheme", "longer-token", "hash-as-token"],
)
def test_anything_else_is_refused(header: str | None) -> None:
    assert not is_accepted(header, HASHES)


def test_every_hash_is_compared_in_constant_time_even_after_a_match(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compared: list[str] = []

    def spy(given: str, known: str) -> bool:
        compared.append(known)
        return hmac.compare_digest(given, known)

    class SpyHmac:
        compare_digest = staticmethod(spy)

    monkeypatch.setattr(auth, "hmac", SpyHmac)
    assert is_accepted(f"Bearer {OTHER}", HASHES)
    assert not is_accepted("Bearer wrong", HASHES)
    assert compared == [*HASHES, *HASHES]


def test_a_token_file_gives_hashes_only(tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    path.write_text(f"# senders\n{TOKEN}\nsha256:{hash_token(OTHER)}\n\n{TOKEN}\n")
    assert load_token_hashes(path, {}) == (hash_token(TOKEN), hash_token(OTHER))


def test_tokens_may_come_from_the_environment() -> None:
    hashes = load_token_hashes(None, {TOKENS_VARIABLE: f"{TOKEN},{OTHER}"})
    assert hashes == (hash_token(TOKEN), hash_token(OTHER))
    assert load_token_hashes(None, {}) == ()


def test_a_short_token_is_refused_without_being_repeated() -> None:
    with pytest.raises(ConfigError, match="token 1 has fewer than 32 characters") as caught:
        parse_tokens("hunter2", source="the token file x")
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("text", ["", "# nothing\n", " \n"])
def test_a_source_without_tokens_is_a_mistake(text: str) -> None:
    with pytest.raises(ConfigError, match="holds no token"):
        parse_tokens(text, source="x")


@pytest.mark.parametrize("content", [None, b"\xff\xfe"], ids=["missing", "not-utf-8"])
def test_an_unreadable_token_file_is_named(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "tokens"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigError, match="cannot be read"):
        load_token_hashes(path, {})


def test_a_call_without_a_valid_token_is_answered_401_before_its_body_is_looked_at() -> None:
    with running(token_hashes=HASHES) as collector:
        for headers in ({}, {"Authorization": "Bearer wrong"}):
            answer = collector.post(b"\x00garbage", headers=headers)
            assert answer.status == 401
            assert answer.headers["www-authenticate"] == "Bearer"
            assert "Authorization: Bearer" in answer.json["error"]
        assert collector.call("GET", "/metrics").status == 401
        assert collector.call("GET", "/no-such-page").status == 401
        good = {"Authorization": f"Bearer {TOKEN}"}
        assert collector.post(encode(make_lookup()), headers=good).status == 202
        assert collector.call("GET", "/metrics", headers=good).status == 200
    assert len(collector.records) == 1


def test_the_probes_need_no_token() -> None:
    with running(token_hashes=HASHES) as collector:
        assert collector.call("GET", "/healthz").status == 200
        assert collector.call("GET", "/readyz").status == 200


def test_a_token_is_never_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with running(token_hashes=HASHES) as collector:
        collector.post(b"{}", headers={"Authorization": f"Bearer {TOKEN}"})
        collector.post(b"{}", headers={"Authorization": "Bearer la_wrong_token"})
    assert TOKEN not in caplog.text
    assert "la_wrong_token" not in caplog.text
