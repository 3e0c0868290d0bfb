"""The embedded engine as a fixture: one directory a test session, as the engine demands.

Load it with ``pytest_plugins = ["tests.support.engine"]``. The tables are emptied before each
test that takes ``store``.
"""

from collections.abc import Iterator

import pytest

from lookup_audit.processors.migrate import migrate
from lookup_audit.processors.store import ClickHouseStore, open_store

TABLES = (
    "lookups",
    "outcomes",
    "judgements",
    "event_ids",
    "outcome_links",
    "answered_lookups",
    "counting_judgements",
    "dead_letters",
    "repeats",
    "rulesets",
    "sample_plans",
    "samples",
    "drift_leases",
    "drift_steps",
    "drift_minutes",
    "drift_states",
    "drift_strata",
    "drift_alarms",
    "drift_acceptances",
    "drift_deliveries",
)


@pytest.fixture(scope="session")
def engine_path(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tmp_path_factory.mktemp("engine"))


@pytest.fixture(scope="session")
def engine(engine_path: str) -> Iterator[ClickHouseStore]:
    store = open_store(f"embedded:{engine_path}")
    migrate(store)
    yield store
    store.close()


@pytest.fixture
def store(engine: ClickHouseStore) -> ClickHouseStore:
    for table in TABLES:
        engine.command(f"TRUNCATE TABLE audit_store.{table}")
    return engine
