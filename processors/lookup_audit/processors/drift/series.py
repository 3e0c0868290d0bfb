"""One watched rate of one stratum: its reference, its season, its evidence, its incident.

``advance`` takes one closed minute of counts. It is a pure function, so that the alarms of a
stratum follow from its minutes alone, however often and in however large steps they are read.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from lookup_audit.processors.drift import incident as incidents
from lookup_audit.processors.drift import reference as references
from lookup_audit.processors.drift import season
from lookup_audit.processors.drift.config import MINUTES_A_DAY, DriftConfig
from lookup_audit.processors.drift.detector import (
    BOTH,
    RISES,
    Evidence,
    Tilts,
    brackets,
    injection,
    no_evidence,
    step,
)
from lookup_audit.processors.drift.dispersion import Spread, design_effect, is_trusted
from lookup_audit.processors.drift.incident import Incident, Transition
from lookup_audit.processors.drift.reference import Phase, Reference
from lookup_audit.processors.drift.season import Profile
from lookup_audit.schemas.names import DriftMetric

ONE_SIDED: Final = frozenset({DriftMetric.HIGH_SCORE_ERROR, DriftMetric.LOW_SCORE_REFUSAL})
# A stratum without calls for longer spends no more of the budget, and takes no share of it.
IDLE_MINUTES: Final = 7 * MINUTES_A_DAY
_REFIT_MINUTES: Final = 7 * MINUTES_A_DAY


class SeriesKey(NamedTuple):
    """What is watched: a rate, in a stratum."""

    metric: DriftMetric
    tenant: str
    service: str
    mode: str
    model_version: str
    quality_basis: str

    @property
    def tilts(self) -> Tilts:
        """Errors alarm when they rise; the other rates in both directions."""
        return RISES if self.metric in ONE_SIDED else BOTH


@dataclass(frozen=True, slots=True)
class Series:
    """State of one rate of one stratum; its size does not grow with time.

    Args:
        key: Which one.
        first: Minute of its first calls.
        last: Minute of its newest calls.
        reference: What it is compared with.
        profile: Its season and spread.
        evidence: For a change that nobody knows of.
        incident: The change that is known, if any.
    """

    key: SeriesKey
    first: int
    last: int
    reference: Reference
    profile: Profile
    evidence: Evidence
    incident: Incident | None = None

    @property
    def is_watched(self) -> bool:
        """Whether it can alarm."""
        return self.reference.phase is not Phase.WARMING


class Batch(NamedTuple):
    """One closed minute of one series."""

    minute: int
    k: float
    n: float


class Tested(NamedTuple):
    """A batch that was tested, for the roll-up over strata.

    Args:
        logs: Log-evidence for each tilt.
        mean: The rate expected.
        band: Half the dead band.
        dispersion: The design effect.
    """

    logs: list[float]
    mean: float
    band: float
    dispersion: float


@dataclass(frozen=True, slots=True)
class Context:
    """What a series needs to know of the others.

    Args:
        config: The user's words.
        per_minute: False alarms it may spend in a minute.
        pooled: Gives the spread over the strata of its mode and metric; asked at a fit only.
    """

    config: DriftConfig
    per_minute: float
    pooled: Callable[[], tuple[Spread, ...]] = tuple


def new_series(key: SeriesKey, minute: int, predecessor: Series | None = None) -> Series:
    """A series at its first minute.

    Args:
        key: Which one.
        minute: Of its first calls.
        predecessor: The same stratum under the model version before. Its reference, season and
            spread hold until somebody accepts the new version's rate.
    """
    reference, profile = Reference(), Profile()
    if predecessor is not None and predecessor.is_watched:
        old = predecessor.reference
        version = old.version or predecessor.key.model_version
        reference = replace(old, phase=Phase.FROZEN, quarantine=(), version=version)
        profile = inherited(predecessor.profile)
    return Series(key, minute, minute, reference, profile, no_evidence(key.tilts))


def inherited(profile: Profile) -> Profile:
    """Season and spread without the sums they came from."""
    return Profile(
        offsets=profile.offsets,
        scales=profile.scales,
        dispersion=profile.dispersion,
        fitted_at=profile.fitted_at,
    )


def expected_rate(series: Series, minute: int) -> float:
    """The reference's rate in this minute of the week."""
    rate = series.reference.rate + series.profile.offset(minute)
    return min(max(rate, 0.0), 1.0)


def band_of(series: Series, config: DriftConfig, minute: int) -> float:
    """Half the dead band: wider for a young stratum, and for a reference pinned while unsharp."""
    reference = series.reference
    if reference.phase is Phase.FROZEN:
        return max(config.band, 3.0 * reference.standard_error(series.profile.dispersion))
    # Caution ends with the first fit that has seen a week, not with the week.
    fitted_age = series.profile.fitted_at - reference.since
    young = fitted_age < config.young_days * MINUTES_A_DAY
    if young and not series.profile.offsets:
        return max(config.band, config.young_points / 100.0)
    return config.band


def advance(
    series: Series, batch: Batch, context: Context
) -> tuple[Series, list[Transition], Tested | None]:
    """The series after one closed minute, what became of its incident, and the test for others.

    Args:
        series: Before it.
        batch: Its counts; ``n`` is above 0.
        context: Budget, settings, and what other strata know.
    """
    minute, k, n = batch
    transitions: list[Transition] = []
    tested: Tested | None = None
    if series.reference.can_test(n):
        tested = _test(series, batch, context.config)
        spent = injection(
            min(minute - series.last, IDLE_MINUTES),
            n,
            per_minute=context.per_minute,
            calls_per_alarm=context.config.calls_per_alarm,
        )
        evidence = step(
            series.evidence,
            tested.logs,
            inject=spent,
            minute=minute,
            k=k,
            n=n,
            expected=n * tested.mean,
        )
        series = replace(series, evidence=evidence)
        series, transitions = _judge(series, batch, tested, spent)
    if series.incident is None:
        series = _learn(series, batch, context)
    return replace(series, last=minute), transitions, tested


def _test(series: Series, batch: Batch, config: DriftConfig) -> Tested:
    mean = expected_rate(series, batch.minute)
    band = band_of(series, config, batch.minute)
    dispersion = series.profile.dispersion
    logs = brackets(series.key.tilts, batch.k, batch.n, mean=mean, band=band, dispersion=dispersion)
    return Tested(logs, mean, band, dispersion)


def _judge(
    series: Series, batch: Batch, tested: Tested, spent: float
) -> tuple[Series, list[Transition]]:
    """Open, follow or close the incident."""
    around = incidents.Around(
        dispersion=tested.dispersion,
        band=tested.band,
        reference_error=series.reference.standard_error(tested.dispersion),
    )
    incident, evidence, transitions = series.incident, series.evidence, []
    if incident is not None:
        shifted = min(max(tested.mean + incident.level, 0.0), 1.0)
        back = brackets(
            incident.back_tilts,
            batch.k,
            batch.n,
            mean=shifted,
            band=tested.band,
            dispersion=tested.dispersion,
        )
        incident, transition = incidents.follow(
            incident,
            back,
            inject=spent,
            minute=batch.minute,
            k=batch.k,
            n=batch.n,
            expected=batch.n * tested.mean,
            around=around,
        )
        transitions += transition
    if evidence.value >= 1.0:
        incident, more = incidents.alarm(
            incident, series.key, series.key.tilts, evidence, batch.minute, around
        )
        transitions += more
        evidence = evidence.spent()
        if series.incident is None:
            # What was held back may be part of the change.
            reference = replace(series.reference, quarantine=())
            series = replace(series, reference=reference, profile=season.drop_open(series.profile))
    return replace(series, incident=incident, evidence=evidence), transitions


def _learn(series: Series, batch: Batch, context: Context) -> Series:
    reference = series.reference
    if reference.phase is Phase.FROZEN:
        return series
    minute = batch.minute
    profile = season.observe(series.profile, *batch)
    reference = references.learn(reference, *batch)
    config = context.config
    if reference.phase is Phase.WARMING:
        if references.is_warm(reference, config, profile.dispersion, minute):
            profile = fit(profile, reference, minute, context)
            if references.is_warm(reference, config, profile.dispersion, minute):
                reference = replace(reference, phase=Phase.LEARNING)
    elif references.can_freeze(reference, config, profile.dispersion, minute):
        profile = fit(profile, reference, minute, context)
        if references.can_freeze(reference, config, profile.dispersion, minute):
            reference = replace(reference, phase=Phase.FROZEN, quarantine=())
            profile = inherited(profile)
    elif _is_fit_due(reference, profile, minute):
        profile = fit(profile, reference, minute, context)
    return replace(series, reference=reference, profile=profile)


def _is_fit_due(reference: Reference, profile: Profile, minute: int) -> bool:
    """Weekly, and when the first week is full."""
    first_week = profile.fitted_at - reference.since < _REFIT_MINUTES <= reference.age(minute)
    return first_week or minute - profile.fitted_at >= _REFIT_MINUTES


def fit(profile: Profile, reference: Reference, minute: int, context: Context) -> Profile:
    """Season and design effect from what was learned so far."""
    profile = season.close_hour(profile)
    week = reference.age(minute) >= _REFIT_MINUTES
    offsets = season.fit_offsets(profile.hours) if week else profile.offsets
    scales = season.fit_scales(profile.hours, offsets)
    used = scales if is_trusted(scales) else context.pooled() or scales
    return replace(
        profile,
        offsets=offsets,
        scales=scales,
        dispersion=design_effect(used),
        fitted_at=minute,
    )


def rebase(series: Series, incident: Incident) -> Series:
    """Take the changed rate as the new reference: what a person accepted.

    The calls since the change began are the new reference's first; season and spread stay.
    """
    reference = Reference(k=incident.k, n=incident.n, since=incident.started)
    return replace(
        series,
        reference=reference,
        profile=inherited(series.profile),
        evidence=no_evidence(series.key.tilts),
        incident=None,
    )
