"""``pip install lookup-audit`` alone: the emitter needs nothing of the other extras."""

import os
import subprocess
import sys

HEAVY = (
    "kafka starlette uvicorn clickhouse_connect pyarrow numpy scipy matplotlib opentelemetry "
    "prometheus_client chdb grafana_api backports.zstd compression.zstd"
)

SCRIPT = f"""
import sys

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if any(name == heavy or name.startswith(heavy + ".") for heavy in {HEAVY.split()!r}):
            raise ModuleNotFoundError(name)
        return None

sys.meta_path.insert(0, Refuse())
from lookup_audit.collector import InMemoryEmitter, LookupEmitter, lookup_result
from lookup_audit.schemas.errors import ConfigError

emitter = LookupEmitter("http://127.0.0.1:9", spool_dir=sys.argv[1], tenant="acme")
event = lookup_result(query="q", mode="dense", model_version="m", candidates=[])
assert emitter.emit(event)
emitter.close(0.2)
assert emitter.stats().dropped == {{}}, emitter.stats()
assert InMemoryEmitter().emit(event)
try:
    LookupEmitter(bootstrap_servers="127.0.0.1:9092")
except ConfigError as error:
    assert "lookup-audit[kafka]" in str(error), error
else:
    raise AssertionError("Kafka without its client")
print(sorted(name for name in sys.modules if name.startswith("lookup_audit.deploy")))
"""


def test_the_emitter_needs_the_base_dependencies_alone(tmp_path: object) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", SCRIPT, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ},
    )
    assert (done.stdout.strip(), done.returncode) == ("[]", 0), done.stderr
