"""What an SRE says about alarms, in an SRE's words, checked before anything is watched."""

from datetime import timedelta
from typing import Final, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from lookup_audit.schemas.errors import ConfigError

MINUTES_A_DAY: Final = 24 * 60


class DriftConfig(BaseModel):
    """When to raise an alarm, and what to compare with.

    Args:
        false_alarm_days: At most one false alarm per stratum in this many days, on average.
        fleet_false_alarm_days: At most one false alarm over all strata in this many days.
        ignore_points: Changes of a rate below this many percentage points are no change.
        minimum_calls: A stratum is watched after this many effective calls (and one full day).
        reference_days: The reference is learned for at least this long, then it is pinned.
        young_days: Before this age, without an inherited season, only changes of
            ``young_points`` are looked for.
        young_points: See ``young_days``.
        calls_per_alarm: A stratum of few calls spends at most one false alarm in this many calls.
        rollup_share: Part of the fleet's budget that the roll-ups over strata spend.
        lateness_seconds: A lookup that reaches Kafka later than this after its minute is late:
            counted apart, never added to a closed minute.
        hold_seconds: Rows must have been stored for this long before a minute is closed.
        idle_seconds: A partition without new rows for this long no longer holds a minute open.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    false_alarm_days: float = Field(default=90.0, gt=0)
    fleet_false_alarm_days: float = Field(default=30.0, gt=0)
    ignore_points: float = 1.0
    minimum_calls: int = 500
    reference_days: float = 14.0
    young_days: float = Field(default=7.0, ge=0)
    young_points: float = Field(default=5.0, ge=0, le=50)
    calls_per_alarm: int = Field(default=5_000, ge=1)
    rollup_share: float = Field(default=0.2, gt=0, lt=1)
    lateness_seconds: int = Field(default=120, ge=0)
    hold_seconds: int = Field(default=30, ge=1)
    idle_seconds: int = Field(default=180, ge=1)

    @model_validator(mode="after")
    def _sensible(self) -> Self:
        if not 1 <= self.false_alarm_days <= 3650:
            raise ValueError(
                f"false_alarm_days is {self.false_alarm_days:g}; one false alarm per stratum in "
                "30 to 365 days is sensible, 1 to 3650 are taken"
            )
        if not 1 <= self.fleet_false_alarm_days <= 3650:
            raise ValueError(
                f"fleet_false_alarm_days is {self.fleet_false_alarm_days:g}; one false page in 7 "
                "to 90 days over all strata is sensible, 1 to 3650 are taken"
            )
        if not 0.1 <= self.ignore_points <= 20:
            raise ValueError(
                f"ignore_points is {self.ignore_points:g}; rates wander by about half a point by "
                "themselves, so 1 is sensible, 2 is cautious, and 0.1 to 20 are taken"
            )
        if not 50 <= self.minimum_calls <= 1_000_000:
            raise ValueError(
                f"minimum_calls is {self.minimum_calls}; a reference from fewer than 500 calls "
                "is a guess, so 500 is sensible, and 50 to 1000000 are taken"
            )
        if not 1 <= self.reference_days <= 90:
            raise ValueError(
                f"reference_days is {self.reference_days:g}; 14 days hold two weekly cycles, and "
                "1 to 90 are taken"
            )
        return self

    @property
    def band(self) -> float:
        """``ignore_points`` as a share."""
        return self.ignore_points / 100.0

    @property
    def lateness(self) -> timedelta:
        """``lateness_seconds`` as a duration."""
        return timedelta(seconds=self.lateness_seconds)


def drift_config(**values: object) -> DriftConfig:
    """A configuration from a user's settings.

    Raises:
        ConfigError: A setting makes no sense; the message says what would.
    """
    try:
        return DriftConfig.model_validate(values)
    except ValidationError as error:
        problems = "; ".join(
            f"{'.'.join(map(str, e['loc']))}: {e['msg']}" if e["loc"] else e["msg"]
            for e in error.errors()
        )
        raise ConfigError(problems.replace("Value error, ", "")) from error
