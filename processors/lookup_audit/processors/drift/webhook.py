"""Alarms to a webhook in the form of the Alertmanager API v2: an array of alerts, by POST.

Existing routing, silencing and grouping then work. The labels of one alarm never change, so that
the other side's fingerprint is stable. Alertmanager forgets an alert that is not repeated: an open
one is sent again now and then, with an end that lies ahead; a closed one is sent once.
"""

import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any, Final
from urllib.parse import urlsplit

from lookup_audit.processors.drift.channels import newest_of_each
from lookup_audit.schemas.alarm import DriftAlarm
from lookup_audit.schemas.errors import ConfigError, UnavailableError
from lookup_audit.schemas.fields import format_instant

ALERT_NAME: Final = "LookupAuditDrift"
_BATCH: Final = 64
# Refusals after which the same request may be taken later.
_LATER: Final = frozenset({408, 425, 429})


class Webhook:
    """Posts alerts.

    Args:
        url: Such as ``http://alertmanager:9093/api/v2/alerts``.
        token: Sent as a bearer token, where the other side wants one.
        repeat_seconds: How often an open alarm is sent again.
        tries: Attempts of one delivery.
        timeout_seconds: Of one attempt.
        sleep: Waits between attempts, 1, 2, 4 … seconds.

    Raises:
        ConfigError: The address is not one.
    """

    def __init__(
        self,
        url: str,
        *,
        token: str | None = None,
        repeat_seconds: float = 60.0,
        tries: int = 3,
        timeout_seconds: float = 5.0,
        sleep: Callable[[float], Any] = time.sleep,
    ):
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ConfigError(
                "the webhook's address must look like http://alertmanager:9093/api/v2/alerts"
            )
        self._url = url
        self._where = f"{parts.scheme}://{parts.hostname}{parts.path}"
        self._headers = {"Content-Type": "application/json"}
        if token:
            self._headers["Authorization"] = f"Bearer {token}"
        self._repeat = timedelta(seconds=repeat_seconds)
        self._tries = tries
        self._timeout = timeout_seconds
        self._sleep = sleep
        self._told: dict[str, datetime] = {}

    @property
    def name(self) -> str:
        """See :class:`Channel`."""
        return "webhook"

    def send(self, alarms: Sequence[DriftAlarm], now: datetime) -> None:
        """See :meth:`Channel.send`; an alarm that opened and closed unheard pages nobody."""
        opened = {alarm.alarm_id for alarm in alarms if alarm.revision == 1}
        heard = [
            alarm
            for alarm in newest_of_each(alarms)
            if alarm.state == "open" or alarm.alarm_id not in opened
        ]
        self._post(heard, now)

    def repeat(self, open_alarms: Sequence[DriftAlarm], now: datetime) -> None:
        """See :meth:`Channel.repeat`."""
        due = [
            alarm
            for alarm in open_alarms
            if abs(now - self._told.get(alarm.alarm_id, _NEVER)) >= self._repeat
        ]
        self._post(due, now)
        still = {alarm.alarm_id for alarm in open_alarms}
        self._told = {name: when for name, when in self._told.items() if name in still}

    def _post(self, alarms: Sequence[DriftAlarm], now: datetime) -> None:
        for start in range(0, len(alarms), _BATCH):
            batch = alarms[start : start + _BATCH]
            self._try([alert(one, now + 4 * self._repeat) for one in batch])
            self._told |= {one.alarm_id: now for one in batch}

    def _try(self, alerts: list[dict[str, Any]]) -> None:
        body = json.dumps(alerts, ensure_ascii=False).encode()
        problem = ""
        for attempt in range(self._tries):
            if attempt:
                self._sleep(2.0 ** (attempt - 1))
            request = urllib.request.Request(
                self._url, data=body, headers=self._headers, method="POST"
            )
            try:
                with urllib.request.urlopen(request, timeout=self._timeout) as answer:
                    answer.read()
                    return
            except urllib.error.HTTPError as error:
                said = error.read(300).decode("utf-8", "replace").strip()
                problem = f"{self._where} answered {error.code} {said}".rstrip()
                if error.code < 500 and error.code not in _LATER:
                    raise ConfigError(problem) from error
            except OSError as error:
                problem = f"{self._where} does not answer: {error}"
        raise UnavailableError(problem)

    def close(self) -> None:
        """See :meth:`Channel.close`."""


_NEVER: Final = datetime.fromisoformat("1970-01-01T00:00:00+00:00")


def alert(alarm: DriftAlarm, open_until: datetime) -> dict[str, Any]:
    """One alarm as an alert.

    Args:
        alarm: The newest word on it.
        open_until: When the other side may forget it, should nothing more be heard.
    """
    ends = alarm.closed_at or open_until
    labels = {
        "alertname": ALERT_NAME,
        "severity": "warning",
        "alarm_id": alarm.alarm_id,
        "metric": str(alarm.metric),
        "direction": alarm.direction,
        "tenant": alarm.tenant,
        "service": alarm.service,
        "mode": alarm.mode,
        "model_version": alarm.model_version,
        "quality_basis": alarm.quality_basis,
    }
    annotations = {
        "summary": alarm.summary,
        "change_points": f"{alarm.change_points:+.1f}",
        "interval": f"{alarm.change_low:+.1f} to {alarm.change_high:+.1f}",
        "calls": str(alarm.calls),
        "since": format_instant(alarm.started_at),
        "state": alarm.state,
        "explain": f"lookup-audit drift explain {alarm.alarm_id}",
    }
    return {
        # An empty label is no label to Alertmanager.
        "labels": {name: value for name, value in labels.items() if value},
        "annotations": annotations,
        "startsAt": format_instant(alarm.detected_at),
        "endsAt": format_instant(ends),
        "generatorURL": alarm.board_url or "",
    }
