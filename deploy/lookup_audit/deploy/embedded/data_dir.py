"""The data directory of an embedded stack: held by one process at a time, found by the others.

The lock is the operating system's, so that it is gone when its holder is, however it ended. A
running stack writes its address beside it, for the other verbs to find.
"""

import fcntl
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

from lookup_audit.schemas.errors import ConfigError

_LOCK, _RUNNING = "lookup-audit.lock", "running.json"


@dataclass(frozen=True, slots=True)
class Running:
    """How to reach the stack that holds a directory."""

    pid: int
    url: str
    bootstrap_servers: str


class DataDir:
    """A directory on disk; ``engine`` below it belongs to the database engine."""

    def __init__(self, path: Path):
        self.path = path
        self._lock: IO[str] | None = None

    @property
    def engine(self) -> Path:
        """Where the engine keeps its files."""
        return self.path / "engine"

    @property
    def exists(self) -> bool:
        """Whether a stack has ever run here."""
        return self.engine.is_dir()

    def must_exist(self) -> None:
        """Refuse a directory where no stack has ever run.

        Raises:
            ConfigError: Says how to start, and what else can be named.
        """
        if not self.exists:
            raise ConfigError(
                f"there is no data in {self.path}; start with 'lookup-audit demo' or "
                "'lookup-audit up', name the directory with --data-dir, or a ClickHouse server "
                "with --store http://user:password@host:8123"
            )

    def acquire(self) -> None:
        """Hold the directory for this process.

        Raises:
            ConfigError: Another process holds it, or it cannot be written.
        """
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            lock = open(self.path / _LOCK, "a+", encoding="utf-8")  # noqa: SIM115  held for life
        except OSError as error:
            raise ConfigError(
                f"cannot write to the data directory {self.path} ({error.strerror}); "
                "choose another with --data-dir"
            ) from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            lock.seek(0)
            holder = lock.read().strip() or "another process"
            lock.close()
            raise ConfigError(
                f"the data directory {self.path} is in use by {holder}; stop it, or choose "
                "another directory with --data-dir"
            ) from error
        lock.truncate(0)
        lock.write(f"process {os.getpid()}")
        lock.flush()
        self._lock = lock

    def publish(self, running: Running) -> None:
        """Tell the other verbs where the stack answers."""
        target = self.path / _RUNNING
        partial = target.with_suffix(".tmp")
        partial.write_text(json.dumps(asdict(running)), encoding="utf-8")
        partial.replace(target)

    def running(self) -> Running | None:
        """The stack that holds the directory now, or ``None``."""
        try:
            found = json.loads((self.path / _RUNNING).read_text(encoding="utf-8"))
            running = Running(**found)
        except (OSError, ValueError, TypeError):
            return None
        return running if self._is_held() else None

    def _is_held(self) -> bool:
        try:
            with open(self.path / _LOCK, encoding="utf-8") as lock:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except FileNotFoundError:
            return False
        except OSError:
            return True
        return False

    def release(self) -> None:
        """Let go of the directory; safe to call twice."""
        if self._lock is not None:
            (self.path / _RUNNING).unlink(missing_ok=True)
            self._lock.close()
            self._lock = None
