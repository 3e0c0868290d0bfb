"""``python -m tests.support.drift_data DIR``: a data directory with a drop that was alarmed."""

import sys
from datetime import timedelta
from pathlib import Path

from lookup_audit.processors.migrate import migrate
from lookup_audit.processors.store import open_store
from tests.support.drift import Time, add_traffic, make_watcher, settle


def main() -> None:
    """Fill it and watch it."""
    engine = Path(sys.argv[1]) / "engine"
    engine.mkdir(parents=True)
    store = open_store(f"embedded:{engine}")
    migrate(store)
    changed = add_traffic(store, "before", hours=30, a_minute=4)
    end = add_traffic(store, "after", start=changed, hours=10, a_minute=4, rate=0.4)
    add_traffic(store, "few", start=end, hours=2, mode="hybrid", basis="hybrid_l2")
    settle(make_watcher(store, Time(end + timedelta(hours=3))))
    store.close()


if __name__ == "__main__":
    main()
