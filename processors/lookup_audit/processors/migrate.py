"""Numbered SQL files, each applied once, in order, and never changed afterwards.

What was applied is written into the database with a checksum of its text, so that a file edited
after the fact is an error and not a schema that differs from the one reviewed.
"""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import resources

from lookup_audit.processors.store import Store
from lookup_audit.schemas.errors import ConfigError

_NAME = re.compile(r"(\d{4})_([a-z0-9_]+)\.sql")

_LEDGER = """
CREATE TABLE IF NOT EXISTS audit_store.migrations
(
    number UInt32,
    name String,
    checksum String,
    applied_at DateTime64(3, 'UTC')
)
ENGINE = MergeTree ORDER BY number
"""


@dataclass(frozen=True, slots=True)
class Migration:
    """One numbered file."""

    number: int
    name: str
    sql: str

    @property
    def checksum(self) -> str:
        """SHA-256 of the text."""
        return hashlib.sha256(self.sql.encode()).hexdigest()

    def statements(self) -> list[str]:
        """The statements, without comment lines, split at semicolons at a line's end."""
        lines = (line for line in self.sql.splitlines() if not line.lstrip().startswith("--"))
        return [s.strip() for s in re.split(r";\s*$", "\n".join(lines), flags=re.M) if s.strip()]


def shipped_migrations() -> list[Migration]:
    """The migrations of this version, in order; numbers are dense from 1."""
    found = []
    for entry in resources.files(__package__).joinpath("migrations").iterdir():
        if match := _NAME.fullmatch(entry.name):
            found.append(Migration(int(match[1]), match[2], entry.read_text("utf-8")))
    return sorted(found, key=lambda migration: migration.number)


def pending(store: Store, migrations: Sequence[Migration] | None = None) -> list[Migration]:
    """What has not been applied yet; creates the ledger if there is none.

    Raises:
        ConfigError: An applied file was changed, or the database is newer than this version.
    """
    shipped = list(migrations if migrations is not None else shipped_migrations())
    store.command("CREATE DATABASE IF NOT EXISTS audit_store")
    store.command(_LEDGER)
    rows = store.query("SELECT number, name, checksum FROM audit_store.migrations ORDER BY number")
    applied = {number: (name, checksum) for number, name, checksum in rows}
    known = {migration.number for migration in shipped}
    if unknown := sorted(set(applied) - known):
        raise ConfigError(
            f"the database has migration {unknown[0]:04d} ({applied[unknown[0]][0]}), which this "
            "version does not know; install the version that applied it, or a newer one"
        )
    for migration in shipped:
        if migration.number in applied and applied[migration.number][1] != migration.checksum:
            raise ConfigError(
                f"migration {migration.number:04d}_{migration.name} was changed after it was "
                "applied; restore the file and put the change into a new one"
            )
    return [migration for migration in shipped if migration.number not in applied]


# What a row's age is counted from, by table.
_AGED_BY = {
    "lookups": "occurred_at",
    "outcomes": "occurred_at",
    "judgements": "occurred_at",
    "event_ids": "occurred_at",
    "outcome_links": "outcome_at",
    "answered_lookups": "occurred_at",
    "counting_judgements": "judged_at",
    "dead_letters": "kafka_timestamp",
    "repeats": "kafka_timestamp",
    "sample_plans": "day",
    "samples": "day",
    "drift_steps": "closed_to",
    "drift_minutes": "minute",
    "drift_alarms": "detected_at",
}


def set_retention(store: Store, days: int) -> None:
    """Let the store drop whole weeks older than this; tables that say so already are left alone.

    Args:
        store: A migrated store.
        days: The same number that collector and processor refuse older events by.
    """
    tables = store.query(
        "SELECT name, create_table_query FROM system.tables WHERE database = 'audit_store'"
    )
    for name, statement in tables:
        if column := _AGED_BY.get(name):
            rule = f"TTL toDateTime({column}) + toIntervalDay({days:d})"
            if f"{rule} " not in statement and not statement.endswith(rule):
                store.command(
                    f"ALTER TABLE audit_store.{name} MODIFY {rule} "
                    "SETTINGS materialize_ttl_after_modify = 0"
                )


def migrate(store: Store, migrations: Sequence[Migration] | None = None) -> list[Migration]:
    """Apply what is pending and return it. Safe to repeat after a failure half-way.

    Every statement is idempotent (``IF NOT EXISTS``, ``OR REPLACE``), so a file that was applied
    in part is simply applied again.
    """
    done = []
    for migration in pending(store, migrations):
        for statement in migration.statements():
            store.command(statement)
        store.command(
            "INSERT INTO audit_store.migrations VALUES "
            "({number:UInt32}, {name:String}, {checksum:String}, {at:DateTime64(3, 'UTC')})",
            {
                "number": migration.number,
                "name": migration.name,
                "checksum": migration.checksum,
                "at": f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S.%f}"[:-3],
            },
        )
        done.append(migration)
    return done
