"""The verdict on one lookup: what it reported, what the recorded numbers say, and why they differ.

:func:`audit` is the whole rule book in one call. It never raises for an accepted event and never
drops one because it cannot be verified.
"""

from typing import Annotated

import msgspec
from pydantic import BaseModel, ConfigDict, Field

from lookup_audit.schemas.case import LookupCase
from lookup_audit.schemas.checks import (
    CHECK_FUNCTIONS,
    has_rerank_mismatch,
    recomputed_level,
)
from lookup_audit.schemas.decode import Decoded
from lookup_audit.schemas.event_paths import REDACTION_WORDS
from lookup_audit.schemas.fields import Unit
from lookup_audit.schemas.finding import Finding
from lookup_audit.schemas.names import (
    NO_LEVEL,
    CheckName,
    CheckStatus,
    Degradation,
    Layer,
    Level,
    LevelMismatch,
    QualityBasis,
    SourceDegradation,
)
from lookup_audit.schemas.plain import Plain, plain
from lookup_audit.schemas.quality import DISTANCE_LOOKS_SQUARED, IMPOSSIBLE_DISTANCE
from lookup_audit.schemas.records import LookupResult
from lookup_audit.schemas.ruleset import Registry
from lookup_audit.schemas.timeliness import is_storable_time

# What a producer says of itself is a column; only known words may become one.
_SOURCE_DEGRADATIONS = frozenset(map(str, SourceDegradation)) | REDACTION_WORDS


class Verdict(BaseModel):
    """The public form of a verdict, as ``lookup-audit lookup --json`` prints it.

    Args:
        recomputed_level: ``None`` where the level check is unverifiable.
        level_mismatch: Class of a failed level check, else ``None``.
        quality_score: Recomputed quality of the candidate that decides the level.
        ruleset_id: Ruleset recomputed by, ``None`` without any thresholds.
        failed_checks: Names of failed checks.
        failures: ``check:reason@place`` of each failed check.
        unverifiable: ``check:reason@place`` of each check with a missing input.
        source_degradations: What the source could not tell, from
            :class:`lookup_audit.schemas.names.SourceDegradation`, and what was redacted, such as
            ``redacted:query.text``.
    """

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")

    reported_level: Level
    recomputed_level: Level | None
    level_check: CheckStatus
    level_mismatch: LevelMismatch | None
    quality_score: Unit | None
    quality_basis: QualityBasis | None
    ruleset_id: Annotated[str, Field(pattern=r"^rs-[0-9a-f]{16}$")] | None
    failed_checks: tuple[CheckName, ...]
    failures: tuple[str, ...]
    unverifiable: tuple[str, ...]
    degradations: tuple[Degradation, ...]
    source_degradations: tuple[str, ...] = ()


class AuditedLookup(msgspec.Struct, gc=False):
    """A verdict beside its lookup, in the lean form that becomes columns.

    Members of the verdict are those of :class:`Verdict`; ``qualities``, ``layers`` and
    ``duplicates`` are per candidate of the event.
    """

    decoded: Decoded[LookupResult]
    reported_level: Level
    recomputed_level: Level | None
    level_check: CheckStatus
    level_mismatch: str | None
    quality_score: float | None
    quality_basis: QualityBasis | None
    ruleset_id: str | None
    stated_ruleset_id: str | None
    failed_checks: list[CheckName]
    failures: list[str]
    unverifiable: list[str]
    degradations: list[str]
    qualities: list[float | None]
    layers: list[Layer | None]
    duplicates: list[bool]

    def verdict(self) -> Verdict:
        """The public form."""
        names = Verdict.model_fields.keys() - {"degradations", "source_degradations"}
        members = {name: getattr(self, name) for name in names}
        lists = ("failed_checks", "failures", "unverifiable")
        members |= {name: tuple(members[name]) for name in lists}
        stated = [name for name in self.degradations if name in _SOURCE_DEGRADATIONS]
        found = [name for name in self.degradations if name not in _SOURCE_DEGRADATIONS]
        members["degradations"] = tuple(map(Degradation, found))
        return Verdict(**members, source_degradations=tuple(stated))


def audit(decoded: Decoded[LookupResult], registry: Registry) -> AuditedLookup:
    """Recompute one lookup and compare.

    Args:
        decoded: An accepted lookup.
        registry: The rulesets that should be in force.
    """
    if not (decoded.unknown_fields or decoded.notes or decoded.record.degradations):
        found = plain(decoded.record, registry)
        if found is not None and not _rrf_above_maximum(decoded.record):
            return _passed(decoded, found)
    return audit_fully(decoded, registry)


def _passed(decoded: Decoded[LookupResult], found: Plain) -> AuditedLookup:
    unverifiable = [f"ruleset:{found.ruleset_reason}"] if found.ruleset_reason else []
    return AuditedLookup(
        decoded=decoded,
        reported_level=decoded.record.relevance_level or NO_LEVEL,
        recomputed_level=found.level,
        level_check="pass",
        level_mismatch=None,
        quality_score=found.quality,
        quality_basis=found.basis,
        ruleset_id=found.ruleset.ruleset_id,
        stated_ruleset_id=found.stated.ruleset_id if found.stated is not None else None,
        failed_checks=[],
        failures=[],
        unverifiable=unverifiable,
        degradations=[],
        qualities=found.qualities,
        layers=found.layers,
        duplicates=[False] * len(found.layers),
    )


def audit_fully(decoded: Decoded[LookupResult], registry: Registry) -> AuditedLookup:
    """The rule book check by check, for any lookup; :func:`audit` gives the same, sooner."""
    record = decoded.record
    case = LookupCase(record, registry, decoded.unknown_fields)
    failed: list[CheckName] = []
    failures: list[str] = []
    unverifiable: list[str] = []
    level_check: CheckStatus = "pass"
    mismatch: str | None = None
    for name, check in CHECK_FUNCTIONS.items():
        finding = check(case)
        if finding is None:
            continue
        status, reason, where = finding
        text = f"{name}:{reason}@{where}" if where else f"{name}:{reason}"
        if status == "fail":
            failed.append(name)
            failures.append(text)
        else:
            unverifiable.append(text)
        if name == "level":
            level_check = status
            mismatch = reason if status == "fail" else None
    level = recomputed_level(case)
    best = case.best_quality
    quality, basis = best if isinstance(best, tuple) else (None, None)
    duplicates = _duplicates(record)
    return AuditedLookup(
        decoded=decoded,
        reported_level=record.relevance_level or NO_LEVEL,
        recomputed_level=None if isinstance(level, Finding) else level,
        level_check=level_check,
        level_mismatch=mismatch,
        quality_score=quality,
        quality_basis=basis,
        ruleset_id=case.ruleset.ruleset_id if case.ruleset is not None else None,
        stated_ruleset_id=case.stated.ruleset_id if case.stated is not None else None,
        failed_checks=failed,
        failures=failures,
        unverifiable=unverifiable,
        degradations=_degradations(case, decoded.notes, duplicates, failures),
        qualities=[q[0] if isinstance(q, tuple) else None for q in case.qualities],
        layers=case.layers,
        duplicates=duplicates,
    )


def _duplicates(record: LookupResult) -> list[bool]:
    """Per candidate, whether its chunk came before; those without an id are never merged."""
    chunks = [candidate.chunk_id for candidate in record.candidates]
    if len(set(chunks)) == len(chunks):
        return [False] * len(chunks)
    seen: set[str] = set()
    duplicates = []
    for chunk in chunks:
        duplicates.append(chunk is not None and chunk in seen)
        if chunk is not None:
            seen.add(chunk)
    return duplicates


def _degradations(
    case: LookupCase,
    notes: frozenset[Degradation],
    duplicates: list[bool],
    failures: list[str],
) -> list[str]:
    found: set[str] = set(notes)
    stated = case.record.degradations or ()
    found.update(name for name in stated if name in _SOURCE_DEGRADATIONS)
    if True in duplicates:
        found.add(Degradation.DUPLICATE_CANDIDATE)
    for reason in case.qualities:
        if reason in (IMPOSSIBLE_DISTANCE, DISTANCE_LOOKS_SQUARED):
            found.add(str(reason))
    for candidate in case.record.candidates:
        if candidate.chunk_id is None:
            found.add(Degradation.UNIDENTIFIED_CANDIDATE)
        if candidate.original_rank is None:
            found.add(Degradation.MISSING_RANK)
        updated = candidate.document_updated_at
        if updated is not None and not is_storable_time(updated):
            found.add(Degradation.DOCUMENT_TIME_OUT_OF_RANGE)
    if _rrf_above_maximum(case.record):
        found.add(Degradation.RRF_ABOVE_MAXIMUM)
    if any(text.startswith("order:") for text in failures) and has_rerank_mismatch(case):
        found.add(Degradation.RERANK_MISMATCH)
    return sorted(found)


def _rrf_above_maximum(record: LookupResult) -> bool:
    """Whether a fused score exceeds what its routes can give: ``routes / (k + 1)``."""
    trace = record.retrieval_trace
    if trace is None or trace.fusion is None or trace.fusion.k is None or not trace.routes:
        return False
    maximum = len(trace.routes) / (trace.fusion.k + 1.0) + 1e-9
    return any((c.rrf_score or 0.0) > maximum for c in record.candidates)
