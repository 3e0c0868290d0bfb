"""The daily sample: planned, drawn, given to reviewers as a sheet, and read back as judgements."""

from lookup_audit.processors.sampling.day import (
    DaySample,
    draw_day,
    stored_plan,
    tenants_of,
    write_day,
)
from lookup_audit.processors.sampling.draw import draw
from lookup_audit.processors.sampling.plan import (
    DEFAULT_SIZE,
    DayPlan,
    Stratum,
    StratumPlan,
    plan_day,
)

__all__ = [
    "DEFAULT_SIZE",
    "DayPlan",
    "DaySample",
    "Stratum",
    "StratumPlan",
    "draw",
    "draw_day",
    "plan_day",
    "stored_plan",
    "tenants_of",
    "write_day",
]
