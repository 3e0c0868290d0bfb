"""The product's detector behind the two calls that the drift bench makes.

The bench has no clock, so each call stands for as many minutes as it has events. Its budget, one
false alarm in 50 000 events, is then one in 50 000 minutes. The reference it hands over is trusted
history; the product's caution of the first week (only large changes) is switched off, as the bench
gives three and a half days. Everything else is what the watcher runs.
"""

from dataclasses import dataclass, field, replace

from lookup_audit.processors.drift import reference as references
from lookup_audit.processors.drift import season
from lookup_audit.processors.drift.config import MINUTES_A_DAY, DriftConfig
from lookup_audit.processors.drift.reference import Phase
from lookup_audit.processors.drift.series import (
    Batch,
    Context,
    Series,
    SeriesKey,
    advance,
    fit,
    new_series,
)
from lookup_audit.schemas.names import ALL, DriftMetric

_KEY = SeriesKey(DriftMetric.PRECISE, "bench", "bench", "dense", "v1", ALL)


@dataclass
class ProductDetector:
    """One stratum of the product.

    Args:
        minutes: That one call stands for.
        arl: Events in which one false alarm may be raised.
        ignore_points: Half the dead band.
    """

    minutes: int = 20
    arl: float = 50_000.0
    ignore_points: float = 1.0
    minute: int = 0
    series: Series = field(default_factory=lambda: new_series(_KEY, 0))

    def __post_init__(self) -> None:
        days = self.arl / MINUTES_A_DAY
        config = DriftConfig(
            false_alarm_days=days, ignore_points=self.ignore_points, young_days=0.0
        )
        self._context = Context(config, 1.0 / self.arl)
        self._is_fitted = False

    def warmup(self, successes: int, trials: int) -> None:
        """Learn trusted history."""
        self.minute += self.minutes
        if trials:
            series = self.series
            self.series = replace(
                series,
                last=self.minute,
                reference=references.learn(series.reference, self.minute, successes, trials),
                profile=season.observe(series.profile, self.minute, successes, trials),
            )

    def update(self, successes: int, trials: int) -> bool:
        """Test one batch; after an alarm go on as if nothing were known."""
        if not self._is_fitted:
            self._fit()
        self.minute += self.minutes
        if not trials:
            return False
        batch = Batch(self.minute, successes, trials)
        self.series, transitions, _ = advance(self.series, batch, self._context)
        if transitions:
            self.series = replace(self.series, incident=None)
        return bool(transitions)

    def _fit(self) -> None:
        series = self.series
        profile = fit(series.profile, series.reference, self.minute, self._context)
        reference = replace(series.reference, phase=Phase.LEARNING)
        self.series = replace(series, profile=profile, reference=reference)
        self._is_fitted = True


def factory() -> ProductDetector:
    """A detector for batches of 20."""
    return ProductDetector()


def per_event() -> ProductDetector:
    """A detector for single events."""
    return ProductDetector(minutes=1)


def per_hour() -> ProductDetector:
    """A detector for batches of 60."""
    return ProductDetector(minutes=60)
