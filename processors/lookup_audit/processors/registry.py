"""The ruleset registry in the store: appended to by people, read by every processor."""

import hashlib
import json
import logging
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Protocol

import pyarrow as pa
from pydantic import ValidationError

from lookup_audit.processors.reading import Reader, rows
from lookup_audit.processors.store import Store
from lookup_audit.schemas.errors import LookupAuditError, UnavailableError
from lookup_audit.schemas.ruleset import Appointment, Registry, Ruleset

logger = logging.getLogger(__name__)

_TIME = pa.timestamp("us", tz="UTC")


class Inserter(Protocol):
    """Takes rows: a store, or the narrow door that people's decisions have."""

    def insert(self, table: str, batch: pa.Table, *, token: str) -> None:
        """See :meth:`lookup_audit.processors.store.Store.insert`."""


def appoint(
    store: Inserter, appointments: Sequence[Appointment], *, added_by: str, now: datetime
) -> None:
    """Put rulesets in force; repeating it changes nothing.

    Args:
        store: Where the registry lives.
        appointments: Which ruleset holds for whom, from when.
        added_by: Who says so.
        now: The time now.
    """
    count = len(appointments)
    contents = [json.dumps(a.ruleset.model_dump(), sort_keys=True) for a in appointments]
    digest = hashlib.sha256(repr((now.isoformat(), appointments)).encode())
    batch = pa.table(
        {
            "ruleset_id": pa.array([a.ruleset.ruleset_id for a in appointments], pa.string()),
            "content": pa.array(contents, pa.string()),
            "service": pa.array([a.service for a in appointments], pa.string()),
            "mode": pa.array([a.mode for a in appointments], pa.string()),
            "effective_from": pa.array([a.effective_from for a in appointments], _TIME),
            "registered": pa.array([True] * count, pa.bool_()),
            "added_at": pa.array([now] * count, _TIME),
            "added_by": pa.array([added_by] * count, pa.string()),
        }
    )
    store.insert("audit_store.rulesets", batch, token=f"appoint;{digest.hexdigest()}")


_APPOINTMENTS = (
    "SELECT content, service, mode, toString(effective_from) AS effective_from "
    "FROM audit_store.rulesets FINAL WHERE registered"
)


def load_registry(store: Store) -> Registry:
    """The registry as it is now; raises UnavailableError."""
    return Registry(_appointment(*row) for row in store.query(_APPOINTMENTS))


def read_appointments(reader: Reader) -> list[Appointment]:
    """The appointments as they are now, for a reader of figures."""
    return [_appointment(**row) for row in rows(reader, _APPOINTMENTS)]


def _appointment(content: str, service: str, mode: str, effective_from: str) -> Appointment:
    return Appointment(
        Ruleset.model_validate_json(content),
        datetime.fromisoformat(effective_from).replace(tzinfo=UTC),
        service,
        mode,
    )


class RegistryKeeper:
    """Keeps a registry fresh; the last one known serves while the store does not answer.

    Args:
        store: Where the registry lives.
        on_change: Gets each registry that was read.
        every_seconds: How old the registry may grow.
    """

    def __init__(
        self, store: Store, on_change: Callable[[Registry], None], *, every_seconds: float = 10.0
    ):
        self._store = store
        self._on_change = on_change
        self._every = every_seconds
        self._read_at: float | None = None

    def refresh(self) -> None:
        """Read the registry if it is due.

        Raises:
            UnavailableError: It could not be read even once: without it no verdict can be given.
        """
        now = time.monotonic()
        if self._read_at is not None and now - self._read_at < self._every:
            return
        try:
            self._on_change(load_registry(self._store))
        except (LookupAuditError, ValidationError) as error:
            if self._read_at is None:
                text = f"the ruleset registry cannot be read: {error}"
                raise UnavailableError(text, retry_after_seconds=1.0) from error
            logger.warning(
                "The ruleset registry could not be read; the last one known serves: %s", error
            )
        self._read_at = now
