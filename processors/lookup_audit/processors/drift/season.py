"""The weekly season: how a stratum's rate differs by hour of the week, without a change.

Calls are summed by hour of the week while the reference is learned. The offsets are fitted in two
layers, hour of day and then hour of week, each shrunk to zero by what its noise explains
(empirical Bayes): one week of data shows a daily rhythm and not yet a weekly one. No season gives
offsets of zero.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from lookup_audit.processors.drift.dispersion import (
    NO_SQUARES,
    Spread,
    Squares,
    design_effect,
    spread,
)

HOURS: Final = 168
_EPOCH_IS_THURSDAY: Final = 72  # hours from Monday midnight to the epoch


class Hour(NamedTuple):
    """What fell into one hour, or into one hour of the week over many weeks.

    Args:
        k: Successes.
        n: Calls.
        minutes: Squares over blocks of 1 minute.
        tens: Over blocks of 10 minutes.
        whole: Over blocks of 60 minutes.
    """

    k: float = 0.0
    n: float = 0.0
    minutes: Squares = NO_SQUARES
    tens: Squares = NO_SQUARES
    whole: Squares = NO_SQUARES

    def plus(self, other: "Hour") -> "Hour":
        """Both together."""
        return Hour(
            self.k + other.k,
            self.n + other.n,
            self.minutes.plus(other.minutes),
            self.tens.plus(other.tens),
            self.whole.plus(other.whole),
        )


NO_HOUR: Final = Hour()


class OpenHour(NamedTuple):
    """The hour that is still running.

    Args:
        hour: Hours since the epoch; -1 before the first call.
        sums: What fell into it, without its open ten minutes and itself as a block.
        ten: The open ten minutes since the epoch.
        ten_k: Successes in them.
        ten_n: Calls in them.
    """

    hour: int = -1
    sums: Hour = NO_HOUR
    ten: int = -1
    ten_k: float = 0.0
    ten_n: float = 0.0

    def closed(self) -> Hour:
        """The hour with all its blocks."""
        sums = self.sums
        if self.ten_n:
            sums = sums._replace(tens=sums.tens.add(self.ten_k, self.ten_n))
        return sums._replace(whole=sums.whole.add(sums.k, sums.n)) if sums.n else sums


@dataclass(frozen=True, slots=True)
class Profile:
    """A stratum's season and spread, as far as they are known.

    Args:
        hours: Sums by hour of the week; empty when nothing is learned any more.
        open: The hour that is running.
        offsets: By hour of the week, to be added to the reference's rate; empty for none.
        scales: Spread by block length at the last fit.
        dispersion: The design effect in use.
        fitted_at: Minute of the last fit; -1 before it.
    """

    hours: tuple[Hour, ...] = ()
    open: OpenHour = OpenHour()
    offsets: tuple[float, ...] = ()
    scales: tuple[Spread, ...] = ()
    dispersion: float = 1.0
    fitted_at: int = -1

    def offset(self, minute: int) -> float:
        """What the season adds in this minute."""
        return self.offsets[hour_of_week(minute)] if self.offsets else 0.0


def hour_of_week(minute: int) -> int:
    """Hours since Monday 00:00 UTC.

    >>> hour_of_week(0)
    72
    """
    return (minute // 60 + _EPOCH_IS_THURSDAY) % HOURS


def observe(profile: Profile, minute: int, k: float, n: float) -> Profile:
    """With one more minute of calls that are no part of a change, as far as is known."""
    hour, ten = minute // 60, minute // 10
    now = profile.open
    if now.hour != hour:
        profile = close_hour(profile)
        now = OpenHour(hour)
    sums = now.sums
    tens, ten_k, ten_n = sums.tens, now.ten_k, now.ten_n
    if now.ten != ten:
        if ten_n:
            tens = tens.add(ten_k, ten_n)
        ten_k = ten_n = 0.0
    sums = Hour(sums.k + k, sums.n + n, sums.minutes.add(k, n), tens, sums.whole)
    return replace(profile, open=OpenHour(hour, sums, ten, ten_k + k, ten_n + n))


def close_hour(profile: Profile) -> Profile:
    """Take the running hour into the sums."""
    if profile.open.hour < 0:
        return profile
    hours = list(profile.hours or (NO_HOUR,) * HOURS)
    index = hour_of_week(profile.open.hour * 60)
    hours[index] = hours[index].plus(profile.open.closed())
    return replace(profile, hours=tuple(hours), open=OpenHour())


def drop_open(profile: Profile) -> Profile:
    """Forget the running hour: it may be part of a change."""
    return replace(profile, open=OpenHour())


def fit_offsets(hours: Sequence[Hour]) -> tuple[float, ...]:
    """The season by hour of the week; empty where no call was seen."""
    total_k, total_n = sum(h.k for h in hours), sum(h.n for h in hours)
    if not total_n:
        return ()
    mean = total_k / total_n
    days = [_together(hours[h::24]) for h in range(24)]
    noise = _within(days, mean) * _variance(mean, total_n)
    daily = _shrunk([(h.k - h.n * mean, h.n) for h in days], noise)
    weekly = _shrunk(
        [(h.k - h.n * (mean + daily[i % 24]), h.n) for i, h in enumerate(hours)], noise
    )
    offsets = [daily[i % 24] + weekly[i] for i in range(HOURS)]
    # The season moves no rate as a whole.
    centre = sum(o * h.n for o, h in zip(offsets, hours, strict=True)) / total_n
    return tuple(o - centre for o in offsets)


def fit_scales(hours: Sequence[Hour], offsets: Sequence[float]) -> tuple[Spread, ...]:
    """The spread by block length around reference and season."""
    total_k, total_n = sum(h.k for h in hours), sum(h.n for h in hours)
    mean = (total_k + 0.5) / (total_n + 1.0)
    means = [
        min(max(mean + (offsets[i] if offsets else 0.0), 1e-4), 1.0 - 1e-4) for i in range(HOURS)
    ]
    return tuple(
        spread(zip(column, means, strict=True))
        for column in zip(*((h.minutes, h.tens, h.whole) for h in hours), strict=True)
    )


def _together(hours: Sequence[Hour]) -> Hour:
    total = NO_HOUR
    for hour in hours:
        total = total.plus(hour)
    return total


def _variance(mean: float, n: float) -> float:
    smooth = (mean * n + 0.5) / (n + 1.0)
    return smooth * (1.0 - smooth)


def _within(days: Sequence[Hour], mean: float) -> float:
    """Design effect inside hours of the day: no daily rhythm can be part of it."""
    bins = [h for h in days if h.n]
    scales = []
    for name in ("minutes", "tens", "whole"):
        blocks = sum(getattr(h, name).blocks for h in bins)
        # A mean was fitted to each hour of the day.
        free = 1.0 - len(bins) / blocks if blocks else 0.0
        if free >= 0.5:
            one = spread((getattr(h, name), (h.k + mean) / (h.n + 1.0)) for h in bins)
            scales.append(Spread(one.seen, one.expected * free, one.blocks))
    return design_effect(scales)


def _shrunk(deviations: Sequence[tuple[float, float]], noise: float) -> list[float]:
    """Deviations per call, each shrunk by its own noise against the spread of all."""
    total = sum(n for _, n in deviations)
    between = sum(n * ((d / n) ** 2 - noise / n) for d, n in deviations if n) / total
    between = max(0.0, between)
    return [
        (d / n) * between / (between + noise / n) if n and between > 0.0 else 0.0
        for d, n in deviations
    ]
