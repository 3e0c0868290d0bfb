"""The daily sample: planned, drawn, given to reviewers as a sheet, and read back as judgements."""

from lookup_audit.processors.sampling.day import (
    PLANS_TABLE,
    SAMPLES_TABLE,
    DaySample,
    batch_token,
    draw_day,
    stored_plan,
    tenants_of,
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
    "PLANS_TABLE",
    "SAMPLES_TABLE",
    "DayPlan",
    "DaySample",
    "Stratum",
    "StratumPlan",
    "batch_token",
    "draw",
    "draw_day",
    "plan_day",
    "stored_plan",
    "tenants_of",
]
