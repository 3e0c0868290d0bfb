"""A retrieval service in miniature, to be killed and forked: emits lookups and says so.

``python -m tests.support.emitting_service URL SPOOL TENANT COUNT [fork|hang]``: emits at a steady
pace; with ``fork`` a child emits as many again; with ``hang`` it prints ``spooled`` once all is on
disk and then waits to be killed.
"""

import os
import sys
import time

from lookup_audit.collector import LookupEmitter
from tests.support.events import make_lookup

_PACE_SECONDS = 0.004


def _emit(emitter: LookupEmitter, tenant: str, count: int) -> None:
    for _ in range(count):
        assert emitter.emit(make_lookup(tenant=tenant, service=None)), emitter.stats()
        time.sleep(_PACE_SECONDS)


def main(url: str, spool: str, tenant: str, count: int, how: str = "") -> None:
    emitter = LookupEmitter(
        url,
        spool_dir=spool,
        service="kb",
        linger_seconds=0.05,
        batch_events=20,
        retry_seconds=0.1,
        retry_max_seconds=0.5,
        close_seconds=60,
    )
    child = 0
    if how == "fork":
        _emit(emitter, tenant, count)
        child = os.fork()
        if child == 0:
            _emit(emitter, tenant, count)
            # The interpreter's end closes the emitter, as it does in a worker of gunicorn.
            sys.exit(0)
    _emit(emitter, tenant, count)
    if how == "hang":
        while emitter.stats().queued:
            time.sleep(0.01)
        time.sleep(0.2)
        print("spooled", flush=True)
        time.sleep(600)
    if child:
        _, status = os.waitpid(child, 0)
        assert status == 0, status
    emitter.close()
    stats = emitter.stats()
    assert not stats.dropped, stats
    assert not stats.rejected, stats
    assert not stats.pending, stats


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), *sys.argv[5:])
