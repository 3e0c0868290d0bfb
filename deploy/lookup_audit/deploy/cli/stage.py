"""What the verbs that run for ever share: they end on a signal and wait for their store."""

import logging
import signal
import threading
from collections.abc import Callable
from types import FrameType

from lookup_audit.processors.migrate import pending
from lookup_audit.processors.store import ClickHouseStore, open_store
from lookup_audit.schemas.errors import ConfigError, UnavailableError

logger = logging.getLogger(__name__)

_WAIT_SECONDS = 2.0


def stop_on_signals(stop: Callable[[], None]) -> threading.Event:
    """Drain on the first SIGINT or SIGTERM and break off on the second.

    Args:
        stop: Called on the first one.

    Returns:
        Set from the first one on.
    """
    stopping = threading.Event()

    def handle(number: int, frame: FrameType | None) -> None:
        if stopping.is_set():
            raise KeyboardInterrupt
        stopping.set()
        stop()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, handle)
    return stopping


def wait_for_store(url: str, stopping: threading.Event) -> ClickHouseStore | None:
    """The store, as soon as it answers; ``None`` where a signal came first.

    Raises:
        ConfigError: The address is none, or the tables are not up to date.
    """
    while not stopping.is_set():
        try:
            store = open_store(url)
            behind = pending(store)
        except UnavailableError as error:
            logger.warning("Waiting: %s", error)
            stopping.wait(_WAIT_SECONDS)
            continue
        if behind:
            raise ConfigError(
                f"the database lacks {len(behind)} migration(s); "
                "run: lookup-audit migrate --store URL"
            )
        return store
    return None
