"""A share with its n and 95 % interval, and no value over zero events."""

from dataclasses import dataclass

from lookup_audit.processors.statistics.proportions import wilson

Interval = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Rate:
    """``count`` of ``n``.

    >>> Rate(1, 4).value
    0.25
    >>> Rate(0, 0).value is None
    True
    """

    count: int
    n: int

    @property
    def value(self) -> float | None:
        """The share, or no value over zero events."""
        return self.count / self.n if self.n else None

    @property
    def interval(self) -> Interval | None:
        """Wilson's 95 % interval, or none over zero events."""
        return wilson(self.count, self.n)

    def as_json(self) -> dict[str, object]:
        """Count, n, value and the ends of the interval."""
        low, high = self.interval or (None, None)
        return {"count": self.count, "n": self.n, "value": self.value, "low": low, "high": high}
