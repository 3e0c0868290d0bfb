"""A verdict as the Judgement event that the collector takes, and what a judge recorded before."""

import hashlib
import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from lookup_audit.processors.reading import Reader, rows
from lookup_audit.schemas.fields import format_instant
from lookup_audit.schemas.names import JudgementSource, JudgementVerdict


@dataclass(frozen=True, slots=True)
class JudgeName:
    """Who judges.

    Args:
        source: What kind of judge.
        id: Its name.
        version: Of its prompt, model or guide; a change of these is another judge.
    """

    source: JudgementSource
    id: str
    version: str | None = None


def make_judgement(
    judge: JudgeName,
    *,
    tenant: str,
    outcome_id: str,
    verdict: JudgementVerdict,
    comment: str,
    judged_at: datetime,
) -> dict[str, Any]:
    """The event. Its id follows from its content, so that sending it twice is a duplicate.

    A later verdict of the same judge has another time and so another id: both are kept, and the
    newer counts.
    """
    event: dict[str, Any] = {
        "schema_version": "1.0",
        "occurred_at": format_instant(judged_at),
        "tenant": tenant or None,
        "outcome_id": outcome_id,
        "verdict": verdict,
        "source": judge.source,
        "judge": {"id": judge.id, "version": judge.version},
        "comment": comment or None,
    }
    content = json.dumps(event, ensure_ascii=False, sort_keys=True)
    digest = hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()
    return {"judgement_id": f"jdg-{digest[:32]}", **event}


def recorded_verdicts(reader: Reader, judge: JudgeName) -> dict[tuple[str, str], tuple[str, str]]:
    """Newest verdict and comment of a judge, by tenant and outcome id.

    Args:
        reader: Of the store.
        judge: Source, id and version must be the same.
    """
    found = rows(
        reader,
        "SELECT tenant, outcome_id, argMax(verdict, (occurred_at, judgement_id)) AS verdict_, "
        "argMax(comment, (occurred_at, judgement_id)) AS comment_ FROM audit.judgements "
        "WHERE source = {source:String} AND judge_id = {id:String} "
        "AND judge_version = {version:String} GROUP BY tenant, outcome_id",
        {"source": judge.source, "id": judge.id, "version": judge.version or ""},
    )
    return {(row["tenant"], row["outcome_id"]): (row["verdict_"], row["comment_"]) for row in found}
