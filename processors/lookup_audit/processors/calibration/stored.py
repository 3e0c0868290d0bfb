"""Lookups and answers from the store, found by the questions of a gold file."""

import contextlib
import hashlib
import json
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from typing import Any

from pydantic import ValidationError

from lookup_audit.processors.calibration.asked import AnswerGiven, Asked, in_order
from lookup_audit.processors.calibration.gold import GoldQuestion, normalise
from lookup_audit.processors.reading import Reader, rows
from lookup_audit.schemas.records import Candidate
from lookup_audit.schemas.ruleset import Ruleset

# Parameters travel in the address of a request: keep each under some 16 kB.
_QUESTIONS_AT_ONCE = 2_000
_ID_BYTES_AT_ONCE = 8_000


@dataclass(frozen=True, slots=True)
class Scope:
    """Which lookups are looked at; ``""`` is any.

    Args:
        since: RFC 3339 time from which on.
    """

    tenant: str = ""
    model_version: str = ""
    mode: str = ""
    since: str = "1900-01-01T00:00:00Z"

    def parameters(self) -> dict[str, str]:
        """As bound parameters."""
        return {
            "tenant": self.tenant,
            "model_version": self.model_version,
            "mode": self.mode,
            "since": self.since,
        }


def digest(text: str) -> str:
    """Eight hex digits that equal questions share, as ``asked.sql`` works them out.

    Over the ASCII letters in lower case, digits and letters without case (such as Chinese ones)
    of the question as it is compared, taken apart so that an accent written with its letter and
    one written after it count alike. Unequal questions may share it.
    """
    letters = "".join(
        c
        for c in unicodedata.normalize("NFKD", normalise(text))
        if (c.isascii() and c.isalnum()) or unicodedata.category(c) == "Lo"
    )
    return hashlib.md5(letters.encode(), usedforsecurity=False).hexdigest()[:8]


def stored_lookups(reader: Reader, gold: Sequence[GoldQuestion], scope: Scope) -> list[Asked]:
    """Every stored lookup of a gold question, with its answer.

    Raises:
        QueryRefusedError: The tables are not there, or of another version.
        UnavailableError: Nothing answers.
    """
    wanted = {normalise(question.question) for question in gold}
    digests = sorted({digest(question.question) for question in gold})
    found: list[dict[str, Any]] = []
    for start in range(0, len(digests), _QUESTIONS_AT_ONCE):
        some = "".join(digests[start : start + _QUESTIONS_AT_ONCE])
        answer = rows(reader, _sql("asked.sql"), {**scope.parameters(), "digests": some})
        found += [row for row in answer if normalise(row["query_text"]) in wanted]
    rulesets = stored_rulesets(reader) if found else {}
    lookups = [_asked(row, rulesets.get(row["ruleset_id"])) for row in found]
    answers = stored_answers(reader, lookups, scope.tenant)
    return [replace(a, answer=answers.get((a.tenant, a.event_id))) for a in lookups]


def stored_rulesets(reader: Reader) -> dict[str, Ruleset]:
    """Every ruleset that the store knows, by id; what this version cannot read is unknown."""
    rulesets = {}
    for row in rows(reader, "SELECT DISTINCT ruleset_id, content FROM audit.rulesets"):
        with contextlib.suppress(ValidationError):
            rulesets[row["ruleset_id"]] = Ruleset.model_validate_json(row["content"])
    return rulesets


def stored_answers(
    reader: Reader, lookups: Sequence[Asked], tenant: str
) -> dict[tuple[str, str], AnswerGiven]:
    """The newest outcome of each lookup that has one, by tenant and event id."""
    answers = {}
    for ids in _batches([lookup.event_id for lookup in lookups]):
        listed = json.dumps(ids, ensure_ascii=False)
        for row in rows(reader, _sql("answers.sql"), {"ids": listed, "tenant": tenant}):
            answers[row["tenant"], row["event_id"]] = AnswerGiven(
                bool(row["refused"]), row["claims"], row["supported_claims"]
            )
    return answers


def _batches(ids: Sequence[str]) -> Iterator[list[str]]:
    batch: list[str] = []
    size = 0
    for event_id in ids:
        batch.append(event_id)
        size += len(event_id.encode("utf-8", "surrogatepass")) + 4
        if size >= _ID_BYTES_AT_ONCE:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _sql(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text("utf-8")


def _asked(row: dict[str, Any], ruleset: Ruleset | None) -> Asked:
    kept, has_order = in_order([_candidate(*values) for values in row["kept"]])
    return Asked(
        event_id=row["event_id"],
        tenant=row["tenant"],
        service=row["service"],
        occurred_at=row["occurred_at"],
        mode=row["mode"],
        model_version=row["model_version"],
        query_text=row["query_text"],
        top_k=row["top_k"],
        ruleset=ruleset,
        candidate_count=row["candidate_count"],
        kept=kept,
        has_order=has_order,
        selected=None if row["no_selection"] else tuple(row["selected_chunk_ids"]),
    )


def _candidate(
    chunk: str,
    rank: int | None,
    distance: float | None,
    similarity: float | None,
    url: str,
    l0_hit: bool,
) -> Candidate:
    return Candidate(
        chunk_id=chunk or None,
        original_rank=rank,
        dense_distance=distance,
        similarity_score=similarity,
        source_url=url or None,
        hit_reasons=["l0:stored"] if l0_hit else None,
        kept=True,
    )
