"""What a user sets for redaction, in one frozen model, the same for collector and emitter."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError, field_validator

from lookup_audit.collector.redaction.patterns import PATTERNS, PatternName
from lookup_audit.collector.settings import mistakes
from lookup_audit.schemas.errors import ConfigError
from lookup_audit.schemas.event_paths import Kind, event_paths
from lookup_audit.schemas.lookup import LookupResult
from lookup_audit.schemas.outcome import AnswerOutcome, Judgement

Action = Literal["hash", "drop", "keep"]

KEY_VARIABLE: Final = "LOOKUP_AUDIT_REDACTION_KEY"
FILE_VARIABLE: Final = "LOOKUP_AUDIT_REDACTION"
MIN_KEY_LENGTH: Final = 32

KNOWN: Final[Mapping[str, Kind]] = {
    path: kind
    for model in (LookupResult, AnswerOutcome, Judgement)
    for path, kind in event_paths(model).items()
}
# An event without these is refused, cannot be joined, or has another level.
_NEEDED: Final = frozenset(
    {
        "event_id",
        "outcome_id",
        "judgement_id",
        "lookup_event_ids",
        "lookup_event_ids.*",
        "model_version",
        "candidates",
        "candidates.*",
        "candidates.*.chunk_id",
        "candidates.*.source_url",
        "claims",
        "claims.*",
        "thresholds",
        "retrieval_trace",
        "degradations",
        "degradations.*",
    }
)
# A level rule reads them.
_READ_BY_RULES: Final = "candidates.*.hit_reasons"


class RedactionConfig(BaseModel):
    """Which fields are hashed, dropped or kept, and which patterns are replaced in all others.

    Args:
        key: Secret of the HMAC, at least 32 characters; the same wherever hashes must agree.
        fields: Action by dotted path, ``*`` for any member of a list, ``**`` at the end for all
            that is below. A rule for a candidate's field holds for the projection's as well.
        patterns: Replaced in every text that no rule keeps.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    key: SecretStr
    fields: dict[str, Action] = Field(default_factory=dict)
    patterns: tuple[PatternName, ...] = PATTERNS

    def __hash__(self) -> int:
        return hash((self.key, tuple(sorted(self.fields.items())), self.patterns))

    @field_validator("key")
    @classmethod
    def _check_key(cls, key: SecretStr) -> SecretStr:
        if len(key.get_secret_value()) < MIN_KEY_LENGTH:
            raise ValueError(
                f"has fewer than {MIN_KEY_LENGTH} characters, so that hashes could be reversed; "
                "make one with python -c 'import secrets; print(secrets.token_hex(32))'"
            )
        return key

    @field_validator("fields")
    @classmethod
    def _check_fields(cls, fields: dict[str, Action]) -> dict[str, Action]:
        problems = [p for path, action in fields.items() if (p := _problem(path, action))]
        if problems:
            raise ValueError("; ".join(problems))
        return fields


def _problem(path: str, action: Action) -> str:
    parts = path.split(".")
    if not all(parts) or "**" in parts[:-1]:
        return f"{path!r} is no path; write it like query.text or candidates.*.excerpt"
    if action == "keep":
        return ""
    if parts[0] in ("*", "**"):
        return f"{path}: begin with a field's name, so that the audit keeps what it reads"
    base = path.removesuffix(".**")
    if path != base and base in _NEEDED:
        return f"{path}: the audit needs what is below; name the texts, such as {base}.excerpt"
    why = forbidden(base, action) if path == base else ""
    return f"{path}: {why}" if why else ""


def forbidden(path: str, action: Action) -> str:
    """Why a known place may not be hashed or dropped, or ``""`` where it may."""
    kind = KNOWN.get(path)
    if kind is None or action == "keep":
        return ""
    if path in _NEEDED and (action == "drop" or kind != "text"):
        return "the audit needs it, it cannot be dropped; hash a text, or leave it out"
    if path.startswith(_READ_BY_RULES):
        return "a level rule reads it; leave it out (patterns still apply)"
    if kind in ("number", "word", "time", "flag"):
        return "holds no free text, and the audit reads it; leave it out"
    if action == "hash" and kind in ("object", "list"):
        return f"is no text and cannot be hashed; name a text, or write {path}.**"
    return ""


def load_redaction(
    path: Path | None = None, environ: Mapping[str, str] = os.environ
) -> RedactionConfig | None:
    """The redaction that a JSON file and the environment ask for; ``None`` where neither does.

    ``LOOKUP_AUDIT_REDACTION`` names the file where ``path`` does not, and
    ``LOOKUP_AUDIT_REDACTION_KEY`` holds the key where the file does not.

    Raises:
        ConfigError: The file cannot be read, or naming every mistake in it.
    """
    if path is None and environ.get(FILE_VARIABLE):
        path = Path(environ[FILE_VARIABLE])
    values: dict[str, object] = {}
    if path is not None:
        try:
            values = dict(json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError) as error:
            raise ConfigError(f"the redaction file {path} is no JSON object: {error}") from error
    elif not environ.get(KEY_VARIABLE):
        return None
    if environ.get(KEY_VARIABLE):
        values.setdefault("key", environ[KEY_VARIABLE])
    if "key" not in values:
        raise ConfigError(f"redaction needs a key; set {KEY_VARIABLE}")
    try:
        return RedactionConfig.model_validate(values)
    except ValidationError as error:
        raise ConfigError(mistakes(error, prefix="redaction")) from error
