"""A child process that cannot outlive its parent, whatever ends the parent.

Between the two stands a supervisor: this file, run by the same interpreter. It ends the child
as soon as it is no longer the parent's child itself. That also holds after SIGKILL and on macOS;
the kernel's own parent-death signal is Linux only and follows the thread that forked, not the
process. Supervisor and child form a session of their own, so a terminal's Ctrl-C reaches the
parent alone, which can then drain before it stops the child.

Only the standard library is imported: the supervisor runs isolated and starts in milliseconds.
"""

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

_WATCH_INTERVAL_SECONDS = 0.05
_PR_SET_PDEATHSIG = 1


class Child:
    """One program with its log file, started and stopped as often as needed.

    The program sees no environment variable and runs in the root folder: brokers also take
    settings from both (a ``.env`` file in any folder above the current one), and a user's
    ``OTEL_EXPORTER_OTLP_ENDPOINT`` is not meant for them.

    Args:
        command: Absolute path of the program and its arguments.
        log: File for everything it prints, overwritten at each start; the process id is kept
            beside it (``.pid``).
        grace_seconds: How long it may take to end by itself once asked to.
    """

    def __init__(self, command: Sequence[str], *, log: Path, grace_seconds: float = 5.0):
        self._command = list(command)
        self.log = log
        self._pid_file = log.with_suffix(".pid")
        self._grace_seconds = grace_seconds
        self._supervisor: subprocess.Popen[bytes] | None = None

    @property
    def is_alive(self) -> bool:
        """Whether the program still runs."""
        return self._supervisor is not None and self._supervisor.poll() is None

    @property
    def pid(self) -> int | None:
        """Process id of the program itself, or None while there is none."""
        if not self.is_alive:
            return None
        with contextlib.suppress(FileNotFoundError):
            return int(self._pid_file.read_text())
        return None

    def start(self) -> None:
        """Start the program and return at once."""
        self.stop()
        self.log.parent.mkdir(parents=True, exist_ok=True)
        self._pid_file.unlink(missing_ok=True)
        supervise = [sys.executable, "-I", "-S", str(Path(__file__).resolve())]
        arguments = [str(os.getpid()), str(self._pid_file.resolve()), str(self._grace_seconds)]
        with self.log.open("wb") as log:
            self._supervisor = subprocess.Popen(
                [*supervise, *arguments, *self._command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def stop(self) -> None:
        """Ask the program to end, wait, and kill it where it does not; harmless when it is gone."""
        supervisor, self._supervisor = self._supervisor, None
        if supervisor is None:
            return
        supervisor.terminate()
        try:
            supervisor.wait(self._grace_seconds + 2.0)
        except subprocess.TimeoutExpired:
            os.killpg(supervisor.pid, signal.SIGKILL)
            supervisor.wait()

    def log_tail(self, lines: int = 15) -> str:
        """The last lines it printed, for an error message."""
        try:
            text = self.log.read_text(errors="replace")
        except FileNotFoundError:
            return "(no log)"
        return "\n".join(text.splitlines()[-lines:]) or "(it printed nothing)"


def _die_with_supervisor() -> None:
    """Cover the one case that nobody watches: the supervisor itself is killed. Linux only."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _supervise(parent: int, pid_file: Path, grace_seconds: float, command: list[str]) -> int:
    """Run the command until it ends, until a SIGTERM, or until the parent is gone."""
    asked = False

    def ask(_signal: int, _frame: FrameType | None) -> None:
        nonlocal asked
        asked = True

    signal.signal(signal.SIGTERM, ask)
    # A preexec_fn is safe here: this process never has a second thread.
    child = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        cwd="/",
        env={},
        preexec_fn=_die_with_supervisor if sys.platform == "linux" else None,
    )
    fresh = pid_file.with_suffix(".new")
    fresh.write_text(str(child.pid))
    fresh.replace(pid_file)
    deadline: float | None = None
    while child.poll() is None:
        if deadline is None and (asked or os.getppid() != parent):
            child.terminate()
            deadline = time.monotonic() + grace_seconds
        elif deadline is not None and time.monotonic() > deadline:
            child.kill()
        time.sleep(_WATCH_INTERVAL_SECONDS)
    pid_file.unlink(missing_ok=True)
    return child.returncode


if __name__ == "__main__":
    sys.exit(_supervise(int(sys.argv[1]), Path(sys.argv[2]), float(sys.argv[3]), sys.argv[4:]))
