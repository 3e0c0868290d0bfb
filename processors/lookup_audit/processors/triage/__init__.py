"""Reading rises: is there one, and what should be looked at first."""

from lookup_audit.processors.triage.causes import Cause, weigh_causes
from lookup_audit.processors.triage.rises import KINDS, Rise, newest_day, read_rises, triage

__all__ = ["KINDS", "Cause", "Rise", "newest_day", "read_rises", "triage", "weigh_causes"]
