"""A real Apache Kafka from its published jars: what the embedded broker leaves out is seen here.

One node that is broker and controller, started with the JDK; Maven fetches the jars once and they
are kept in ``.cache/`` of the project, or in the folder that ``LOOKUP_AUDIT_KAFKA_JARS`` names.
"""

import base64
import functools
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from lookup_audit.deploy.embedded.child import Child
from lookup_audit.deploy.topics import cluster_id
from lookup_audit.schemas.errors import UnavailableError

KAFKA_VERSION = "4.3.1"
MINIMUM_JAVA = 17
JARS_VARIABLE = "LOOKUP_AUDIT_KAFKA_JARS"
START_TIMEOUT_SECONDS = 60.0
RESOLVE_TIMEOUT_SECONDS = 480.0

# slf4j-simple binds the API version that this Kafka depends on.
_POM = f"""\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>lookup-audit.tests</groupId>
  <artifactId>kafka-node</artifactId>
  <version>1</version>
  <packaging>pom</packaging>
  <dependencies>
    <dependency>
      <groupId>org.apache.kafka</groupId>
      <artifactId>kafka_2.13</artifactId>
      <version>{KAFKA_VERSION}</version>
    </dependency>
    <dependency>
      <groupId>org.slf4j</groupId>
      <artifactId>slf4j-simple</artifactId>
      <version>1.7.36</version>
    </dependency>
  </dependencies>
</project>
"""

# Small internal topics, no first-rebalance delay and a short lease of the broker's make starts and
# starts after a crash faster. What limits a client, such as its session timeout, is the default.
_PROPERTIES = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller_port}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs={data}
auto.create.topics.enable=false
group.initial.rebalance.delay.ms=0
offsets.topic.num.partitions=2
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=2
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.num.partitions=2
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
broker.heartbeat.interval.ms=500
broker.session.timeout.ms=3000
log.initial.task.delay.ms=500
log.retention.check.interval.ms=1000
"""


@functools.cache
def available() -> str | None:
    """Say why no Apache Kafka can be started here, or None; the first call may fetch the jars."""
    try:
        _java()
        _jars()
    except UnavailableError as error:
        return str(error)
    return None


class ApacheKafka:
    """One node and its data, kept over :meth:`restart` and :meth:`kill` with :meth:`start`.

    Args:
        directory: Where its configuration, data and log go.
    """

    kind = "apache"

    def __init__(self, directory: Path):
        self._directory = directory.resolve()
        self._port, controller_port = _free_ports(2)
        self._properties = self._directory / "server.properties"
        self._directory.mkdir(parents=True, exist_ok=True)
        self._properties.write_text(
            _PROPERTIES.format(
                port=self._port, controller_port=controller_port, data=self._directory / "data"
            )
        )
        self._child = Child(
            [*_jvm(), "kafka.Kafka", str(self._properties)],
            log=self._directory / "kafka.log",
            grace_seconds=20.0,
        )
        self._formatted = False

    @property
    def bootstrap(self) -> str:
        """Address for clients, the same over restarts."""
        return f"127.0.0.1:{self._port}"

    @property
    def is_alive(self) -> bool:
        """Whether the process runs, paused or not."""
        return self._child.is_alive

    def start(self) -> None:
        """Start the node with the data it has and return once it answers."""
        if not self._formatted:
            self._format()
        self._child.start()
        deadline = time.monotonic() + START_TIMEOUT_SECONDS
        while self._child.is_alive and time.monotonic() < deadline:
            if _accepts_connections(self._port):
                cluster_id(self.bootstrap, timeout_seconds=deadline - time.monotonic())
                return
            time.sleep(0.05)
        tail = self._child.log_tail()
        self.stop()
        raise UnavailableError(f"Apache Kafka did not start. Its log:\n{tail}")

    def stop(self) -> None:
        """End the node as an operator would, data flushed."""
        self._child.stop()

    def restart(self) -> None:
        """Stop and start on the same data and address."""
        self.stop()
        self.start()

    def kill(self) -> None:
        """End the node with SIGKILL, as a crash would."""
        self._signal(signal.SIGKILL)
        while self._child.is_alive:
            time.sleep(0.01)

    def pause(self) -> None:
        """Freeze the node: connections stay open and nothing answers."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let a paused node go on."""
        self._signal(signal.SIGCONT)

    def _signal(self, number: int) -> None:
        pid = self._child.pid
        if pid is None:
            raise UnavailableError("Apache Kafka does not run")
        os.kill(pid, number)

    def _format(self) -> None:
        tool = [*_jvm(), "kafka.tools.StorageTool"]
        # Kafka's form of a UUID; a leading zero byte keeps it from starting with a dash.
        cluster = base64.urlsafe_b64encode(b"\0" + os.urandom(15)).rstrip(b"=").decode()
        arguments = ["format", "--cluster-id", cluster, "--config", str(self._properties)]
        _run([*tool, *arguments], "Formatting its storage", 60.0)
        self._formatted = True

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


def javac() -> Path:
    """The compiler beside the JVM.

    Raises:
        UnavailableError: Only a runtime is installed.
    """
    compiler = _java().with_name("javac")
    if not compiler.exists():
        raise UnavailableError(f"no javac beside {_java()}; install a JDK")
    return compiler


def java() -> Path:
    """The JVM.

    Raises:
        UnavailableError: There is none, or an older one.
    """
    return _java()


def class_path() -> str:
    """Kafka's jars, kafka-clients among them, as the JVM's tools take them.

    Raises:
        UnavailableError: They cannot be had.
    """
    return f"{_jars()}/*"


def _jvm() -> list[str]:
    """The command up to the main class; the jars are a wildcard of the JVM's, not of a shell."""
    options = ["-Xms64m", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
    options += ["-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"]
    return [str(_java()), *options, "-cp", f"{_jars()}/*"]


@functools.cache
def _java() -> Path:
    home = os.environ.get("JAVA_HOME")
    found = str(Path(home, "bin", "java")) if home else shutil.which("java")
    if found is None:
        raise UnavailableError("no java on the PATH")
    printed = _run([found, "-version"], f"{found} -version", 30.0)
    version = re.search(r'version "(\d+)', printed)
    if version is None or int(version.group(1)) < MINIMUM_JAVA:
        raise UnavailableError(f"{found} is not Java {MINIMUM_JAVA} or newer")
    return Path(found).resolve()


@functools.cache
def _jars() -> Path:
    """The folder of jars, fetched if need be; it appears under its name only when complete."""
    project = Path(__file__).parents[2]
    cache = Path(os.environ.get(JARS_VARIABLE) or project / ".cache" / "apache-kafka").resolve()
    jars = cache / KAFKA_VERSION
    if jars.is_dir():
        return jars
    maven = shutil.which("mvn")
    if maven is None:
        raise UnavailableError(f"no mvn on the PATH to fetch Kafka's jars, and none in {jars}")
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache) as folder:
        pom = Path(folder, "pom.xml")
        pom.write_text(_POM)
        copy = [maven, "--batch-mode", "--quiet", "--file", str(pom)]
        copy += ["dependency:copy-dependencies", "-DincludeScope=runtime"]
        fetched = Path(folder, "jars")
        _run([*copy, f"-DoutputDirectory={fetched}"], "Fetching its jars", RESOLVE_TIMEOUT_SECONDS)
        if not jars.is_dir():
            fetched.rename(jars)
    return jars


def _run(command: list[str], what: str, timeout_seconds: float) -> str:
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=timeout_seconds,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UnavailableError(f"{what} failed: {error}") from error
    if done.returncode != 0:
        raise UnavailableError(f"{what} failed: {done.stdout.strip()[-1500:]}")
    return done.stdout


def _free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [int(each.getsockname()[1]) for each in sockets]
    for each in sockets:
        each.close()
    return ports


def _accepts_connections(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1.0):
            return True
    except OSError:
        return False


if __name__ == "__main__":
    why = available()
    if why:
        print(why)
    raise SystemExit(1 if why else 0)
