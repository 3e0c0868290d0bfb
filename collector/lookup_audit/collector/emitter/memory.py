"""The emitter's in-memory twin for a service's own tests: same calls, no thread, no network.

It judges every event as the collector would, so that a test finds a wrong field before an auditor
does::

    emitter = InMemoryEmitter()
    search("timeout", emitter=emitter)
    assert emitter.rejected == []
    assert emitter.lookups[0]["relevance_level"] == "PRECISE"
"""

import json
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

from pydantic import BaseModel

from lookup_audit.collector.emitter.entry import pack, to_json
from lookup_audit.collector.emitter.tally import EmitterStats
from lookup_audit.schemas.decode import CODECS
from lookup_audit.schemas.errors import Rejected
from lookup_audit.schemas.names import EventType, Reason


class InMemoryEmitter:
    """Keeps what is emitted.

    Attributes:
        lookups: Accepted LookupResults, as a receiver would read them.
        outcomes: Accepted AnswerOutcomes.
        judgements: Accepted Judgements.
        rejected: What a collector would refuse, with reason, field and fix.
    """

    instance_id = "memory/1"

    def __init__(self) -> None:
        self.lookups: list[dict[str, Any]] = []
        self.outcomes: list[dict[str, Any]] = []
        self.judgements: list[dict[str, Any]] = []
        self.rejected: list[Rejected] = []
        self._emitted = 0

    def emit(self, event: Mapping[str, Any] | BaseModel) -> bool:
        """Take a LookupResult; see :meth:`LookupEmitter.emit`."""
        return self._take(EventType.LOOKUP, event, self.lookups)

    def emit_outcome(self, event: Mapping[str, Any] | BaseModel) -> bool:
        """Take an AnswerOutcome; see :meth:`LookupEmitter.emit_outcome`."""
        return self._take(EventType.OUTCOME, event, self.outcomes)

    def emit_judgement(self, event: Mapping[str, Any] | BaseModel) -> bool:
        """Take a Judgement; see :meth:`LookupEmitter.emit_judgement`."""
        return self._take(EventType.JUDGEMENT, event, self.judgements)

    def _take(
        self,
        kind: EventType,
        event: Mapping[str, Any] | BaseModel,
        accepted: list[dict[str, Any]],
    ) -> bool:
        self._emitted += 1
        if isinstance(event, BaseModel):
            event = event.model_dump(mode="json", exclude_none=True)
        try:
            raw = to_json(pack(event))
        except (TypeError, ValueError) as error:
            self.rejected.append(Rejected(Reason.WRONG_TYPE, "", str(error)))
            return False
        decoded = CODECS[kind].decode(raw)
        if isinstance(decoded, Rejected):
            self.rejected.append(decoded)
        else:
            accepted.append(json.loads(raw))
        # A real emitter learns of a refusal later, too.
        return True

    def flush(self, timeout_seconds: float = 5.0) -> bool:
        """Everything has its answer already."""
        return True

    def close(self, timeout_seconds: float | None = None) -> None:
        """Nothing to let go of."""

    def stats(self) -> EmitterStats:
        """The account so far."""
        reasons: dict[str, int] = {}
        for refused in self.rejected:
            reasons[str(refused.reason)] = reasons.get(str(refused.reason), 0) + 1
        accepted = len(self.lookups) + len(self.outcomes) + len(self.judgements)
        return EmitterStats(emitted=self._emitted, accepted=accepted, rejected=reasons)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
