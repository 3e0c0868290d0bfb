"""Rulesets: the numbers in force, named by what they say, and the registry that appoints them.

A ruleset's id is a hash of its content, so that two services that claim one name cannot mean two
things. The registry is independent of the services: it says which ruleset *should* be in force
for a service and mode from a time on.
"""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property, lru_cache
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from lookup_audit.schemas import records
from lookup_audit.schemas.errors import ConfigError
from lookup_audit.schemas.fields import Finite
from lookup_audit.schemas.names import DistanceMetric, RankFallback, RuleName


class Ruleset(BaseModel):
    """Thresholds, distance metric and formulas by which a level is recomputed.

    Args:
        rule: Which level rule, see :mod:`lookup_audit.schemas.level`.
        max_l2_distance: L2 distance at which quality reaches 0.
        normalized: Vectors have unit length, so that no L2 distance above 2 can exist.
    """

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")

    rule: RuleName = "unified-quality/1"
    max_l2_distance: Annotated[float, Field(allow_inf_nan=False, gt=0)] = 2.0
    highly_relevant_threshold: Finite = 0.75
    reference_threshold: Finite = 0.5
    distance_metric: DistanceMetric = "l2"
    normalized: bool = False
    rank_fallback: RankFallback = "reciprocal"
    high_layer_similarity: Finite = 0.82
    middle_layer_similarity: Finite = 0.70

    @cached_property
    def ruleset_id(self) -> str:
        """``rs-`` and the first 16 hex digits of SHA-256 over the sorted JSON of the content."""
        # 0.0 and -0.0 are one number with two spellings.
        members = {k: v + 0.0 if isinstance(v, float) else v for k, v in self.model_dump().items()}
        content = json.dumps(members, sort_keys=True, separators=(",", ":"))
        return "rs-" + hashlib.sha256(content.encode()).hexdigest()[:16]

    def __hash__(self) -> int:
        # One a lookup is asked for, and the generated one walks over all members.
        return hash(self.ruleset_id)


DEFAULT_RULESET = Ruleset()


@lru_cache(maxsize=4096)
def stated_ruleset(thresholds: records.Thresholds) -> Ruleset | None:
    """The ruleset an event states of itself; ``None`` where it does not name both thresholds.

    Its other members are taken at their defaults where the event is silent.
    """
    stated = {
        name: value
        for name in Ruleset.model_fields
        if (value := getattr(thresholds, name)) is not None
    }
    if "highly_relevant_threshold" not in stated or "reference_threshold" not in stated:
        return None
    return Ruleset(**stated)


@lru_cache(maxsize=4096)
def stated_differences(thresholds: records.Thresholds, ruleset: Ruleset) -> tuple[str, ...]:
    """Names of the thresholds an event states otherwise than the ruleset has them."""
    return tuple(
        name
        for name in Ruleset.model_fields
        if (value := getattr(thresholds, name)) is not None and value != getattr(ruleset, name)
    )


@dataclass(frozen=True, slots=True)
class Appointment:
    """A ruleset in force for a service and mode from a time on; ``""`` stands for any."""

    ruleset: Ruleset
    effective_from: datetime
    service: str = ""
    mode: str = ""

    def __post_init__(self) -> None:
        if self.effective_from.tzinfo is None:
            raise ConfigError("effective_from of a ruleset needs a time zone")


class Registry:
    """The appointments known now. Immutable: a refresh makes a new one."""

    def __init__(self, appointments: Iterable[Appointment] = ()):
        # The id breaks ties, so that the order in which a store lists them decides nothing.
        self._newest_first = sorted(
            appointments, key=lambda a: (a.effective_from, a.ruleset.ruleset_id), reverse=True
        )
        self.rulesets: tuple[Ruleset, ...] = tuple(
            {a.ruleset.ruleset_id: a.ruleset for a in self._newest_first}.values()
        )

    def in_force(self, service: str, mode: str, at: str) -> Ruleset | None:
        """The ruleset appointed for a lookup.

        The most specific appointment wins (service and mode, service, mode, any), then the newest.

        Args:
            service: Service name, ``""`` if unknown.
            mode: Retrieval mode.
            at: When the lookup happened, RFC 3339 text.
        """
        if not self._newest_first:
            return None
        moment = datetime.fromisoformat(at)
        best: Appointment | None = None
        for appointment in self._newest_first:
            if (
                appointment.effective_from <= moment
                and appointment.service in ("", service)
                and appointment.mode in ("", mode)
                and (best is None or _specificity(appointment) > _specificity(best))
            ):
                best = appointment
        return best.ruleset if best else None


def _specificity(appointment: Appointment) -> int:
    return 2 * bool(appointment.service) + bool(appointment.mode)
