"""Sends many events to a collector in batches, and keeps the account of each.

Waits and tries again while the collector is overloaded or its broker away; every event ends as
accepted or as rejected with the collector's own words.
"""

import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from lookup_audit.schemas.errors import ConfigError, UnavailableError

_BATCH_EVENTS, _BATCH_BYTES = 500, 8 * 1024 * 1024


@dataclass(slots=True)
class Account:
    """What became of the events so far; each rejection with its ``place`` in the input."""

    accepted: int = 0
    rejected: list[dict[str, Any]] = field(default_factory=list)


class EventSender:
    """Collects events by path and posts them as NDJSON.

    Args:
        url: Base URL of the collector.
        token: Bearer token, where it wants one.
        on_progress: Told after each batch.
        patience_seconds: How long to wait for a collector that does not take events.
    """

    def __init__(
        self,
        url: str,
        token: str | None = None,
        on_progress: Callable[[Account], None] = lambda account: None,
        *,
        patience_seconds: float = 60.0,
    ):
        self._url = url
        # No content type: the collector tells one object from several lines by itself.
        self._headers = {"Content-Type": "application/json"}
        if token:
            self._headers["Authorization"] = f"Bearer {token}"
        self._on_progress = on_progress
        self._patience = patience_seconds
        self._account = Account()
        self._waiting: dict[str, list[tuple[str, bytes]]] = {}

    def add(self, path: str, place: str, raw: bytes) -> None:
        """Queue one event; posts a batch when it is full.

        Raises:
            UnavailableError: The collector did not take a batch in time.
        """
        if b"\n" in raw or b"\r" in raw:
            # Not a line: it goes alone, byte for byte.
            self._post(path)
            self._waiting[path] = [(place, raw)]
            self._post(path)
            return
        waiting = self._waiting.setdefault(path, [])
        waiting.append((place, raw))
        size = sum(len(event) for _, event in waiting) if len(waiting) % 16 == 0 else 0
        if len(waiting) >= _BATCH_EVENTS or size >= _BATCH_BYTES:
            self._post(path)

    def finish(self) -> Account:
        """Post what is left; returns the account."""
        for path in list(self._waiting):
            self._post(path)
        return self._account

    def _post(self, path: str) -> None:
        batch = self._waiting.pop(path, [])
        if not batch:
            return
        answer = self._answer(path, b"\n".join(raw for _, raw in batch))
        self._account.accepted += answer["accepted"]
        for rejected in answer["rejected"]:
            place = batch[rejected["index"]][0]
            self._account.rejected.append({"place": place, **rejected})
        self._on_progress(self._account)

    def _answer(self, path: str, body: bytes) -> dict[str, Any]:
        deadline = time.monotonic() + self._patience
        while True:
            request = urllib.request.Request(self._url + path, body, self._headers)
            try:
                with urllib.request.urlopen(request, timeout=30) as response:
                    return dict(json.load(response))
            except urllib.error.HTTPError as error:
                if error.code == 422:
                    return dict(json.load(error))
                if error.code == 401:
                    raise ConfigError(
                        "the collector wants a token; set LOOKUP_AUDIT_TOKEN to one it knows"
                    ) from error
                if error.code not in (429, 503):
                    text = error.read().decode("utf-8", "replace")[:500]
                    raise ConfigError(f"{self._url}{path} answers {error.code}: {text}") from error
                reason = f"{error.code} {error.reason}"
            except OSError as error:
                reason = str(error)
            if time.monotonic() > deadline:
                raise UnavailableError(f"the collector at {self._url} takes no events: {reason}")
            time.sleep(1.0)
