"""Who emits: an instance id for each boot of each process, and its unbroken sequence numbers.

A receiver that has seen numbers 1 to n of an instance without a hole has missed nothing of it, so
an event that was dropped leaves its number out on purpose.
"""

import itertools
import os
import socket
from collections.abc import Mapping
from typing import Any

_MAX_HOST = 200


class Identity:
    """The numbers of one boot; make a new one in a forked child.

    Args:
        service: Its name.
        version: Its version.
    """

    def __init__(self, service: str | None, version: str | None):
        self.instance_id = f"{socket.gethostname()[:_MAX_HOST]}/{os.getpid()}-{os.urandom(6).hex()}"
        self._constant = {"name": service, "version": version, "instance_id": self.instance_id}
        # next() of a count is one step of the interpreter: no lock, and no number twice.
        self._numbers = itertools.count(1)

    def stamp(self, given: object) -> dict[str, Any] | None:
        """The ``service`` member of the next event; what the event says of itself stays.

        ``None`` where the event has an instance of its own, or says something else entirely.
        """
        if given is None:
            return {**self._constant, "sequence": next(self._numbers)}
        if not isinstance(given, Mapping) or given.get("instance_id", given.get("instanceId")):
            return None
        known = {name: value for name, value in given.items() if value is not None}
        return {**self._constant, **known, "sequence": next(self._numbers)}
