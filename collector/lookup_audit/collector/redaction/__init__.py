"""Redaction at the door: what must not be kept is gone before anything is written."""

from lookup_audit.collector.redaction.config import RedactionConfig, load_redaction
from lookup_audit.collector.redaction.redactor import Redactor, Withheld, redactor_of

__all__ = ["RedactionConfig", "Redactor", "Withheld", "load_redaction", "redactor_of"]
