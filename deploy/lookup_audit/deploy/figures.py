"""Figures as words: one way to write a value with its interval, and that there is none."""

NO_VALUE = "no value"


def with_interval(
    value: float | None, interval: tuple[float, float] | None, *, form: str = ".2f"
) -> str:
    """A value with its interval; ``no value`` where there is none.

    >>> with_interval(0.5, (0.25, 0.75))
    '0.50 (0.25-0.75)'
    >>> with_interval(0.5, None, form=".0%")
    '50%'
    """
    if value is None:
        return NO_VALUE
    if interval is None:
        return format(value, form)
    low, high = interval
    return f"{value:{form}} ({low:{form}}-{high:{form}})"


def number(value: float | None, form: str) -> str:
    """A value alone; ``no value`` where there is none."""
    return with_interval(value, None, form=form)
