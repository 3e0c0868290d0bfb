"""Bearer tokens: made here, kept only as hashes, compared in constant time.

One SHA-256 is enough because tokens are long and random: there is nothing to guess from a
dictionary, and a slow salted hash would cost every request what it costs an attacker. Tokens of
one's own making must therefore have at least 32 characters. No token is ever logged or echoed.
"""

import hashlib
import hmac
import re
import secrets
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Final

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from lookup_audit.schemas.errors import ConfigError

TOKENS_VARIABLE: Final = "LOOKUP_AUDIT_TOKENS"
MIN_TOKEN_LENGTH: Final = 32
OPEN_PATHS: Final = frozenset({"/healthz", "/readyz"})
_HASH = re.compile(r"sha256:([0-9a-f]{64})")


def make_token() -> str:
    """Make a new token of 256 random bits, to be given to one sender."""
    return "la_" + secrets.token_urlsafe(32)


def hash_token(token: str) -> str:
    """The form in which a token is kept and configured: SHA-256 as 64 hex digits."""
    return hashlib.sha256(token.encode()).hexdigest()


def parse_tokens(text: str, *, source: str) -> tuple[str, ...]:
    """Read tokens, one a line or separated by commas, and return their hashes.

    Each is a token in clear, hashed at once, or ``sha256:<hex>``. ``#`` starts a comment line.

    Args:
        text: What the file or variable holds.
        source: Its name, for the error message.

    Raises:
        ConfigError: A token is too short, or there is none.
    """
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    words = [word for line in lines for word in line.replace(",", " ").split()]
    if not words:
        raise ConfigError(f"{source} holds no token; put one token on each line")
    hashes = []
    for number, word in enumerate(words, 1):
        match = _HASH.fullmatch(word)
        if match is None and len(word) < MIN_TOKEN_LENGTH:
            raise ConfigError(
                f"{source}: token {number} has fewer than {MIN_TOKEN_LENGTH} characters and could "
                "be guessed; make one with lookup_audit.collector.auth.make_token()"
            )
        hashes.append(match.group(1) if match else hash_token(word))
    return tuple(dict.fromkeys(hashes))


def load_token_hashes(path: Path | None, environ: Mapping[str, str]) -> tuple[str, ...]:
    """Hashes of the tokens in a file and in the variable ``LOOKUP_AUDIT_TOKENS``.

    Raises:
        ConfigError: The file cannot be read, or a token is too short.
    """
    hashes: tuple[str, ...] = ()
    if path is not None:
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"the token file {path} cannot be read: {error}") from error
        hashes += parse_tokens(text, source=f"the token file {path}")
    if environ.get(TOKENS_VARIABLE):
        hashes += parse_tokens(environ[TOKENS_VARIABLE], source=TOKENS_VARIABLE)
    return tuple(dict.fromkeys(hashes))


def is_accepted(authorization: str | None, token_hashes: Sequence[str]) -> bool:
    """Whether an ``Authorization`` header carries one of the tokens.

    All hashes are compared, each in constant time, so that the answer's timing tells nothing.
    """
    scheme, _, token = (authorization or "").partition(" ")
    digest = hash_token(token.strip())
    found = False
    for known in token_hashes:
        found |= hmac.compare_digest(digest, known)
    return found and scheme.lower() == "bearer"


class RequireToken:
    """ASGI middleware that answers 401 to a call without a valid token.

    The probes ``/healthz`` and ``/readyz`` stay open: an orchestrator has no token.

    Args:
        app: What to guard.
        token_hashes: Of the tokens that are let through.
        open_paths: Further paths that show nothing stored to whoever has no token.
    """

    def __init__(self, app: ASGIApp, token_hashes: Sequence[str], open_paths: Collection[str] = ()):
        self.app = app
        self._token_hashes = tuple(token_hashes)
        self._open = OPEN_PATHS.union(open_paths)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the call on, or refuse it before its body is read."""
        guarded = scope["type"] == "http" and scope["path"] not in self._open
        if guarded and not is_accepted(
            Headers(scope=scope).get("authorization"), self._token_hashes
        ):
            refusal = JSONResponse(
                {"error": "a valid token is needed; send 'Authorization: Bearer <token>'"},
                status_code=401,
                headers={"WWW-Authenticate": "Bearer"},
            )
            await refusal(scope, receive, send)
            return
        await self.app(scope, receive, send)
