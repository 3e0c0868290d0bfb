"""What a test may do with a broker, whichever kind it is given."""

import os
import signal
import time
from collections.abc import Callable
from typing import Protocol

from lookup_audit.deploy.embedded.broker import EmbeddedBroker

EMBEDDED, APACHE, DOCKER = "embedded", "apache", "docker"
WAIT_SECONDS = 40.0


class RunningBroker(Protocol):
    """What every kind of broker under test can do."""

    @property
    def kind(self) -> str:
        """One of ``embedded``, ``apache``, ``docker``."""

    @property
    def bootstrap(self) -> str:
        """Address for clients, the same over restarts."""

    def start(self) -> None:
        """Start it again after :meth:`stop` or :meth:`kill`; the embedded one comes back empty."""

    def kill(self) -> None:
        """End it with SIGKILL, as a crash would."""


class TopicFactory(Protocol):
    """Makes a topic that no other test knows."""

    def __call__(self, partitions: int = 1) -> str:
        """Create it and return its name."""


class EmbeddedBrokerUnderTest(EmbeddedBroker):
    """The embedded broker, which a test may also crash."""

    kind = EMBEDDED

    def kill(self) -> None:
        """End it with SIGKILL, as a crash would."""
        pid = self.pid
        assert pid is not None, "the embedded broker does not run"
        os.kill(pid, signal.SIGKILL)
        while self.is_alive:
            time.sleep(0.01)


def wait_until(condition: Callable[[], bool], what: str) -> None:
    """Wait until a condition holds, and fail naming it if it does not."""
    deadline = time.monotonic() + WAIT_SECONDS
    while not condition():
        assert time.monotonic() < deadline, f"{what} did not happen in {WAIT_SECONDS} s"
        time.sleep(0.02)
