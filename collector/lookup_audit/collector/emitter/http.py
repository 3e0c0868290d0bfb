"""Events to a collector over HTTP, with the standard library alone: NDJSON on a kept connection."""

import email.utils
import gzip
import http.client
import json
import ssl
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final
from urllib.parse import urlsplit

from lookup_audit.collector.emitter.transport import Answer, Delivered, TryAgain, TryInParts
from lookup_audit.schemas.names import EventType, Reason

PATHS: Final[Mapping[EventType, str]] = {
    EventType.LOOKUP: "/v1/lookups",
    EventType.OUTCOME: "/v1/outcomes",
    EventType.JUDGEMENT: "/v1/judgements",
}
_GZIP_BYTES: Final = 1024
_MAX_ANSWER_BYTES: Final = 16 * 1024 * 1024
# Asked to wait longer than this, it is better to ask again.
_MAX_RETRY_AFTER: Final = 300.0


class HttpTransport:
    """Posts batches to a collector.

    Args:
        url: Its base URL.
        token: Bearer token, where it wants one.
        timeout_seconds: Patience with one request.
    """

    def __init__(self, url: str, *, token: str | None = None, timeout_seconds: float = 10.0):
        parts = urlsplit(url)
        self._is_tls = parts.scheme == "https"
        self._host = parts.hostname or ""
        self._port = parts.port
        self._prefix = parts.path.rstrip("/")
        self._timeout = timeout_seconds
        self._headers = {"Content-Type": "application/x-ndjson", "Accept": "application/json"}
        if token:
            self._headers["Authorization"] = f"Bearer {token}"
        self._connection: http.client.HTTPConnection | None = None

    def send(self, kind: EventType, values: Sequence[bytes]) -> Answer:
        """See :class:`lookup_audit.collector.emitter.transport.Transport`."""
        body = b"\n".join(values)
        headers = dict(self._headers)
        if len(body) >= _GZIP_BYTES:
            body = gzip.compress(body, compresslevel=1, mtime=0)
            headers["Content-Encoding"] = "gzip"
        is_kept = self._connection is not None
        try:
            try:
                return self._post(kind, body, headers, len(values))
            except (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError):
                # The other side may close a kept connection at any time; a fresh one tells.
                if not is_kept:
                    raise
                self.close()
                return self._post(kind, body, headers, len(values))
        except (OSError, http.client.HTTPException) as error:
            self.close()
            return TryAgain(f"{type(error).__name__}: {error}")

    def _post(self, kind: EventType, body: bytes, headers: Mapping[str, str], count: int) -> Answer:
        connection = self._connection = self._connection or self._connect()
        connection.request("POST", self._prefix + PATHS[kind], body, dict(headers))
        response = connection.getresponse()
        raw = response.read(_MAX_ANSWER_BYTES)
        if response.will_close or not response.isclosed():
            self.close()
        return read_answer(response.status, raw, response.getheader("Retry-After"), count)

    def _connect(self) -> http.client.HTTPConnection:
        if self._is_tls:
            context = ssl.create_default_context()
            return http.client.HTTPSConnection(
                self._host, self._port, timeout=self._timeout, context=context
            )
        return http.client.HTTPConnection(self._host, self._port, timeout=self._timeout)

    def close(self) -> None:
        """Close the connection; the next batch makes a new one."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def forget(self) -> None:
        """Closing a copied socket's descriptor tells the other side nothing."""
        connection, self._connection = self._connection, None
        if connection is not None and connection.sock is not None:
            connection.sock.detach() if self._is_tls else connection.sock.close()


def read_answer(status: int, raw: bytes, retry_after: str | None, count: int) -> Answer:
    """What a collector's answer means for a batch of so many events."""
    if status in (202, 422):
        rejected = _rejected(raw, count)
        return TryAgain("the answer is not a collector's") if rejected is None else rejected
    if status == 413:
        return TryInParts(str(Reason.TOO_LARGE))
    if status == 400:
        return TryInParts("http_400")
    return TryAgain(f"the collector answers {status}", read_retry_after(retry_after))


def _rejected(raw: bytes, count: int) -> Delivered | None:
    try:
        body = json.loads(raw)
        found = body["rejected"]
        rejected = Counter(str(each["reason"]) for each in found if each["index"] < count)
        if body["accepted"] + rejected.total() != count:
            return None
    except (ValueError, KeyError, TypeError):
        return None
    return Delivered(rejected)


def read_retry_after(value: str | None, *, now: float | None = None) -> float | None:
    """A ``Retry-After`` header in seconds, whether it gives a number or a date.

    >>> read_retry_after("3")
    3.0
    """
    if value is None:
        return None
    text = value.strip()
    if text.isascii() and text.isdigit():
        return min(float(text), _MAX_RETRY_AFTER)
    try:
        moment = email.utils.parsedate_to_datetime(text).timestamp()
    except ValueError:
        return None
    return min(max(0.0, moment - (time.time() if now is None else now)), _MAX_RETRY_AFTER)
