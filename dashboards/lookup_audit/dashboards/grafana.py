"""Grafana's HTTP API by way of ``grafana-api``: the one module that knows that package.

Its session, address and authentication are used; its own request function is not. Version 1.0.3
(2020) fails after a deletion that worked (204 has no JSON), on pages of proxies, and on ``null``;
it follows a redirect to the login page and never tries again. Nothing of a token is ever in an
error or a log.
"""

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import packages_distributions
from typing import Any, Final
from urllib.parse import quote, urlsplit

from lookup_audit.schemas.errors import ConfigError, LookupAuditError, UnavailableError

logger = logging.getLogger(__name__)

_TRIES: Final = 4
_FIRST_WAIT_SECONDS: Final = 0.5
_MAX_WAIT_SECONDS: Final = 10.0
_RETRIED: Final = frozenset({429, 502, 503, 504})
_TIMEOUT_SECONDS: Final = 30.0
_SHOWN: Final = 300


class GrafanaError(LookupAuditError):
    """Grafana refuses a call; the message says what to do."""

    def __init__(self, message: str, status: int):
        super().__init__(message)
        self.status = status


@dataclass(frozen=True)
class GrafanaConfig:
    """Where Grafana is and who asks.

    Args:
        url: Base URL, with a path where it is served under one.
        token: Of a service account.
        verify: Whether a certificate must be valid, or the file of its authority.
    """

    url: str
    token: str = field(repr=False)
    verify: bool | str = True


class Grafana:
    """The calls that publishing needs.

    Args:
        config: See there.
        sleep: Waits between tries, in seconds.

    Raises:
        ConfigError: The address or the token is no such thing, or another package has taken the
            place of ``grafana-api``.
    """

    def __init__(self, config: GrafanaConfig, *, sleep: Callable[[float], None] = time.sleep):
        parts = urlsplit(config.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ConfigError("Grafana's address must look like https://grafana.example.com")
        if parts.username or parts.query or parts.fragment:
            raise ConfigError("Grafana's address holds no name, password or query; use a token")
        if not config.token.strip() or any(c.isspace() for c in config.token.strip()):
            raise ConfigError("the token for Grafana is empty or holds a space")
        if not config.token.isascii():
            raise ConfigError("the token for Grafana holds characters that no header can")
        self._face = _make_face(config)
        # Not from the environment: a .netrc would replace the token.
        self._face.api.s.trust_env = False
        self._sleep = sleep
        self._base = config.url.rstrip("/")

    @property
    def url(self) -> str:
        """Base URL, for messages."""
        return self._base

    def version(self) -> str:
        """Grafana's version; ``unknown`` where it is not told."""
        found = self._call("GET", "/health")
        return str(found.get("version", "unknown")) if isinstance(found, dict) else "unknown"

    def folder(self, uid: str) -> dict[str, Any] | None:
        """A folder, or ``None``."""
        return self._find(f"/folders/{quote(uid, safe='')}")

    def create_folder(self, uid: str, title: str) -> None:
        """Make a folder."""
        self._call("POST", "/folders", {"uid": uid, "title": title})

    def dashboard(self, uid: str) -> dict[str, Any] | None:
        """``{"dashboard", "meta"}`` of a uid, or ``None``."""
        return self._find(f"/dashboards/uid/{quote(uid, safe='')}")

    def put_dashboard(self, model: Mapping[str, Any], folder_uid: str, message: str) -> None:
        """Create or replace a dashboard by its uid."""
        self._call(
            "POST",
            "/dashboards/db",
            {
                "dashboard": dict(model),
                "folderUid": folder_uid,
                "overwrite": True,
                "message": message,
            },
        )

    def rule_group(self, folder_uid: str, group: str) -> dict[str, Any] | None:
        """A group of alert rules, or ``None``."""
        return self._find(_group_path(folder_uid, group))

    def put_rule_group(self, folder_uid: str, group: Mapping[str, Any]) -> None:
        """Create or replace a whole group of alert rules.

        Rules stay editable in Grafana; the next publish replaces them.
        """
        self._call(
            "PUT",
            _group_path(folder_uid, str(group["title"])),
            dict(group),
            {"X-Disable-Provenance": "true"},
        )

    def source(self, uid: str) -> dict[str, Any] | None:
        """A data source by its uid, or ``None``."""
        return self._find(f"/datasources/uid/{quote(uid, safe='')}")

    def _find(self, path: str) -> dict[str, Any] | None:
        try:
            found = self._call("GET", path)
        except GrafanaError as error:
            if error.status == 404:
                return None
            raise
        if not isinstance(found, dict):
            raise GrafanaError(f"Grafana answered no object to GET {path}", 200)
        return found

    def _call(
        self, method: str, path: str, body: object = None, headers: Mapping[str, str] | None = None
    ) -> Any:
        """One call, tried again where that may help; every call of ours may be repeated."""
        wait = _FIRST_WAIT_SECONDS
        for attempt in range(1, _TRIES + 1):
            try:
                answer = self._send(method, path, body, headers)
            except UnavailableError:
                if attempt == _TRIES:
                    raise
            else:
                if answer.status_code not in _RETRIED or attempt == _TRIES:
                    return _read(answer, f"{method} {path}")
                wait = max(wait, _retry_after(answer))
            logger.warning("Grafana did not take %s %s; trying again.", method, path)
            self._sleep(min(wait, _MAX_WAIT_SECONDS))
            wait *= 2
        raise AssertionError("unreachable")

    def _send(self, method: str, path: str, body: object, headers: Mapping[str, str] | None) -> Any:
        import requests

        api = self._face.api
        try:
            return api.s.request(
                method,
                api.url + path,
                json=body,
                headers={"Accept": "application/json", **(headers or {})},
                auth=api.auth,
                verify=api.verify,
                timeout=_TIMEOUT_SECONDS,
                allow_redirects=False,
            )
        except requests.exceptions.SSLError as error:
            raise ConfigError(
                f"the certificate of {self._base} is not trusted; name its authority with --ca"
            ) from error
        except requests.RequestException as error:
            raise UnavailableError(
                f"Grafana at {self._base} does not answer: {type(error).__name__}"
            ) from error


def _make_face(config: GrafanaConfig) -> Any:
    owners = packages_distributions().get("grafana_api", [])
    if set(owners) != {"grafana-api"}:
        raise ConfigError(
            f"the package grafana_api comes from {' and '.join(sorted(set(owners))) or 'nowhere'}, "
            "not from grafana-api alone; uninstall the others and run: pip install --force-"
            "reinstall grafana-api==1.0.3"
        )
    from grafana_api.grafana_face import GrafanaFace

    parts = urlsplit(config.url)
    face = GrafanaFace(
        auth=config.token.strip(),
        host=parts.hostname,
        protocol=parts.scheme,
        verify=config.verify,
        timeout=_TIMEOUT_SECONDS,
    )
    # The package forgets ports and paths, and the brackets of an IPv6 address.
    face.api.url = f"{config.url.rstrip('/')}/api"
    return face


def _read(answer: Any, call: str) -> Any:
    status = answer.status_code
    if 300 <= status < 400:
        target = urlsplit(answer.headers.get("Location", "")).path
        raise GrafanaError(
            f"{call} was redirected to {target or 'elsewhere'}: a login page means that a proxy "
            "wants a sign-in of its own; else use the address that Grafana itself is served at",
            status,
        )
    if status in (200, 201, 202, 204) and not answer.content:
        return None
    try:
        found = answer.json()
    except ValueError:
        found = None
        if status < 300:
            raise GrafanaError(
                f"{call} was answered with a page and not with JSON: is the address that of "
                "Grafana itself?",
                status,
            ) from None
    if status < 300:
        return found
    raise GrafanaError(f"{call}: {_advice(status)}{_said(found)}", status)


_ADVICE: Final[Mapping[int, str]] = {
    400: "Grafana finds the request wrong",
    401: "Grafana does not know the token; make one for a service account with the role Editor",
    403: "the token may not do this; its service account needs the role Editor, or "
    "folders:write, dashboards:write and alert.provisioning:write on the folder",
    404: "Grafana has no such thing; an address with a path needs the path",
    409: "it belongs to another owner; what is provisioned from files cannot be published as well",
    410: "this Grafana no longer has that interface; provision from files instead",
    412: "a board of the same title is in the folder, or it was changed meanwhile; rename or "
    "delete the other one",
}


def _advice(status: int) -> str:
    return _ADVICE.get(status, f"Grafana answered {status}")


def _said(found: Any) -> str:
    message = found.get("message") if isinstance(found, dict) else None
    if not isinstance(message, str) or not message:
        return ""
    return f" ({' '.join(message.split())[:_SHOWN]})"


def _retry_after(answer: Any) -> float:
    try:
        return float(answer.headers.get("Retry-After", "0"))
    except ValueError:
        return 0.0


def _group_path(folder_uid: str, group: str) -> str:
    return (
        f"/v1/provisioning/folder/{quote(folder_uid, safe='')}/rule-groups/{quote(group, safe='')}"
    )
