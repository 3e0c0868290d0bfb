"""A checkpoint's text: the state of one series or roll-up as JSON, exact to the last bit."""

from pydantic import TypeAdapter

from lookup_audit.processors.drift.rollup import Rollup
from lookup_audit.processors.drift.series import Series

SERIES: TypeAdapter[Series] = TypeAdapter(Series)
ROLLUP: TypeAdapter[Rollup] = TypeAdapter(Rollup)


def series_text(series: Series) -> str:
    """A series as text."""
    return SERIES.dump_json(series).decode()


def read_series(text: str) -> Series:
    """A series from its text; raises ``ValueError`` for anything else."""
    return SERIES.validate_json(text)


def rollup_text(rollup: Rollup) -> str:
    """A roll-up as text."""
    return ROLLUP.dump_json(rollup).decode()


def read_rollup(text: str) -> Rollup:
    """A roll-up from its text; raises ``ValueError`` for anything else."""
    return ROLLUP.validate_json(text)
