"""The collector as a running server: in a thread of this process, or as the process itself.

The port is bound before anything starts, so that a taken one is a clear message and port 0 is
known at once. Stopping takes the steps that lose nothing: no new connections, requests in flight
finish, the publisher flushes, everything closes.
"""

import contextlib
import logging
import os
import signal
import socket
import threading
import time
from collections.abc import Mapping, Sequence
from types import FrameType

import uvicorn
from starlette.routing import BaseRoute
from starlette.types import ASGIApp

from lookup_audit.collector.app import Check, make_app
from lookup_audit.collector.config import CollectorConfig, unsafe_bind
from lookup_audit.collector.publisher import KafkaPublisher
from lookup_audit.collector.telemetry import Telemetry
from lookup_audit.schemas.errors import ConfigError, UnavailableError

logger = logging.getLogger(__name__)

_START_SECONDS = 10.0


class CollectorServer:
    """Serves an app from a background thread; use as a context manager or start and stop it.

    Args:
        app: From :func:`lookup_audit.collector.app.make_app`.
        config: Address, port and the time to stop in.
    """

    def __init__(self, app: ASGIApp, config: CollectorConfig):
        # Checked again, since a copied model skips its validators.
        unsafe = unsafe_bind(config.host, config.token_hashes)
        if unsafe:
            raise ConfigError(unsafe)
        self._app = app
        self._config = config
        self._socket: socket.socket | None = None
        self._server: uvicorn.Server | None = None
        self._thread: threading.Thread | None = None

    @property
    def port(self) -> int:
        """The port that is served, also where 0 was asked for."""
        if self._socket is None:
            raise RuntimeError("the server is not started")
        port: int = self._socket.getsockname()[1]
        return port

    @property
    def url(self) -> str:
        """Base URL, without a slash at its end."""
        host = self._config.host
        return f"http://[{host}]:{self.port}" if ":" in host else f"http://{host}:{self.port}"

    def start(self) -> None:
        """Bind the port and serve; returns when requests are answered.

        Raises:
            ConfigError: The port is taken or the address is not of this machine.
            UnavailableError: The app did not start.
        """
        self._socket = bind(self._config.host, self._config.port)
        self._server = uvicorn.Server(
            uvicorn.Config(
                self._app,
                log_config=None,
                access_log=False,
                server_header=False,
                lifespan="on",
                timeout_graceful_shutdown=int(self._config.shutdown_seconds) or 1,
            )
        )
        self._thread = threading.Thread(
            target=_run, args=(self._server, self._socket), name="lookup-audit-http", daemon=True
        )
        self._thread.start()
        give_up = time.monotonic() + _START_SECONDS
        while self.is_alive and time.monotonic() < give_up:
            if self._server.started:
                logger.info("The collector listens on %s.", self.url)
                return
            time.sleep(0.005)
        self.stop()
        raise UnavailableError("the HTTP server did not start; its log tells why")

    def stop(self) -> None:
        """Finish what is in flight and stop; safe to call twice."""
        if self._server is not None and self._thread is not None:
            self._server.should_exit = True
            self._thread.join()
            logger.info("The collector has stopped.")
        if self._socket is not None:
            self._socket.close()
        self._server = self._thread = None

    @property
    def is_alive(self) -> bool:
        """Whether the server's thread still runs."""
        return self._thread is not None and self._thread.is_alive()

    def __enter__(self) -> "CollectorServer":
        self.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.stop()


def _run(server: uvicorn.Server, listener: socket.socket) -> None:
    # uvicorn ends the process when an app does not start; a thread only ends.
    with contextlib.suppress(SystemExit):
        server.run(sockets=[listener])


def bind(host: str, port: int) -> socket.socket:
    """Bind an address.

    Raises:
        ConfigError: Naming the port or the host that cannot be had.
    """
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        listener = socket.socket(family, socket.SOCK_STREAM)
    except OSError as error:
        raise ConfigError(f"host {host} is not an address of this machine: {error}") from error
    try:
        if os.name == "posix":
            # Lets a restart take the port of connections that are still winding down.
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(2048)
    except OSError as error:
        listener.close()
        raise ConfigError(
            f"port {port} on {host} cannot be bound ({error.strerror}); stop the program that has "
            "it, or set another port (0 takes a free one)"
        ) from error
    return listener


def serve(
    config: CollectorConfig,
    *,
    telemetry: Telemetry | None = None,
    checks: Mapping[str, Check] | None = None,
    extra_routes: Sequence[BaseRoute] = (),
) -> None:
    """Run the collector until SIGTERM or SIGINT, then stop without losing anything.

    Call it from the main thread. A second signal stops at once.

    Raises:
        ConfigError: The port is taken or the address is wrong.
        UnavailableError: The server ended by itself.
    """
    app = make_app(
        config,
        KafkaPublisher(config),
        telemetry=telemetry,
        checks=checks,
        extra_routes=extra_routes,
    )
    stop = threading.Event()

    def ask_to_stop(number: int, _: FrameType | None) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        logger.info("The collector stops on %s.", signal.Signals(number).name)
        stop.set()

    before = {
        number: signal.signal(number, ask_to_stop) for number in (signal.SIGTERM, signal.SIGINT)
    }
    try:
        with CollectorServer(app, config) as server:
            while server.is_alive and not stop.wait(1.0):
                pass
        if not stop.is_set():
            raise UnavailableError("the HTTP server ended by itself; its log tells why")
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
