"""What a judge sees of one answer: question, evidence, claims. Never level, score or threshold.

The fields are chosen one by one and not left out one by one, so that a new column of the audit
cannot reach a judge who should be blind.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from typing import Any

from lookup_audit.processors.reading import Reader, rows
from lookup_audit.schemas.decode import CODECS, Decoded
from lookup_audit.schemas.names import EventType

# Outcomes a query: their ids travel in its URL.
_OUTCOMES = 40


@dataclass(frozen=True, slots=True)
class Evidence:
    """A passage that the agent had; texts are empty where the event does not hold them."""

    chunk_id: str
    title: str
    excerpt: str
    source_url: str
    document_id: str
    document_version: str
    document_updated_at: str


@dataclass(frozen=True, slots=True)
class Claim:
    """One statement of the answer and what it cites."""

    text: str
    cited_chunk_ids: tuple[str, ...]
    cited_source_urls: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Answer:
    """One outcome as a judge sees it.

    Args:
        tenant: ``""`` where events name none.
        outcome_id: What a judgement names.
        queries: The questions looked up, each once.
        evidence: What was selected or cited; all kept candidates where no selection is reported.
        action: ``answered`` or ``refused``.
        claims: The answer.
        refusal: What the user was told instead.
    """

    tenant: str
    outcome_id: str
    queries: tuple[str, ...]
    evidence: tuple[Evidence, ...]
    action: str
    claims: tuple[Claim, ...]
    refusal: str = ""

    def as_json(self) -> dict[str, Any]:
        """The fields as JSON values."""
        return asdict(self)


# An outcome comes at the place of its first lookup in the order u / p: every beginning of that
# order is a random sample too (sequential Poisson sampling; Ohlsson 1998, J. Official Statistics
# 14:149). Of several outcomes of one lookup the latest is its answer.
_ORDER = """
SELECT tenant, outcome_id
FROM (
    SELECT
        o.tenant AS tenant, o.event_id AS event_id, any(s.place) AS place,
        argMax(o.outcome_id, (o.occurred_at, o.outcome_id)) AS outcome_id,
        argMax(o.action, (o.occurred_at, o.outcome_id)) AS action
    FROM (
        SELECT tenant, arrayJoin(lookup_event_ids) AS event_id, outcome_id, action, occurred_at
        FROM audit.outcomes
    ) AS o
    INNER JOIN (
        SELECT tenant, event_id, draw / inclusion_probability AS place
        FROM audit.samples
        WHERE day = {day:String} AND ({all:Bool} OR tenant = {tenant:String})
    ) AS s ON s.tenant = o.tenant AND s.event_id = o.event_id
    GROUP BY tenant, event_id
)
WHERE action = 'answered' OR {refused:Bool}
GROUP BY tenant, outcome_id
ORDER BY min(place), tenant, outcome_id
"""
_IDS = "(SELECT arrayJoin(JSONExtract({ids:String}, 'Array(String)')))"
_OUTCOME = f"""
SELECT
    tenant, outcome_id, lookup_event_ids, action, refusal_text, claim_texts, cited_chunk_ids,
    cited_source_urls
FROM audit.outcomes
WHERE outcome_id IN {_IDS}
"""
_LOOKUP = f"""
SELECT tenant, event_id, query_text, selected_chunk_ids, raw
FROM audit.lookups
WHERE event_id IN {_IDS}
"""
_CANDIDATE = f"""
SELECT
    tenant, event_id, chunk_id, document_id, document_version, source_url,
    ifNull(toString(document_updated_at), '') AS document_updated_at
FROM audit.candidates
WHERE event_id IN {_IDS} AND (kept OR selected)
ORDER BY tenant, event_id, original_rank NULLS LAST, chunk_id
"""


def sampled_ids(
    reader: Reader, day: date, tenant: str | None, *, refused: bool = False
) -> list[tuple[str, str]]:
    """Tenant and outcome of the sampled lookups of a day, in the order to judge them.

    Args:
        reader: Of the store.
        day: That was drawn.
        tenant: Only this one, or all.
        refused: Whether refusals are listed too; they need no judgement.
    """
    parameters = {
        "day": day.isoformat(),
        "all": int(tenant is None),
        "tenant": tenant or "",
        "refused": int(refused),
    }
    return [(row["tenant"], row["outcome_id"]) for row in rows(reader, _ORDER, parameters)]


def sampled_answers(
    reader: Reader, day: date, tenant: str | None, *, refused: bool = False
) -> Iterator[Answer]:
    """The answers of a day's sample, in the order to judge them; see :func:`sampled_ids`."""
    yield from answers(reader, sampled_ids(reader, day, tenant, refused=refused))


def answers(reader: Reader, ids: Sequence[tuple[str, str]]) -> Iterator[Answer]:
    """What judges see of some outcomes, in the order given.

    Args:
        reader: Of the store.
        ids: Tenant and outcome id of each.
    """
    for start in range(0, len(ids), _OUTCOMES):
        some = ids[start : start + _OUTCOMES]
        outcomes = _by_id(rows(reader, _OUTCOME, _bind(o for _, o in some)), "outcome_id")
        chosen = [outcomes[key][0] for key in some if key in outcomes]
        events = sorted({e for outcome in chosen for e in outcome["lookup_event_ids"]})
        lookups: dict[tuple[str, str], list[dict[str, Any]]] = {}
        candidates: dict[tuple[str, str], list[dict[str, Any]]] = {}
        for first in range(0, len(events), _OUTCOMES):
            where = _bind(events[first : first + _OUTCOMES])
            lookups |= _by_id(rows(reader, _LOOKUP, where), "event_id")
            candidates |= _by_id(rows(reader, _CANDIDATE, where), "event_id")
        for outcome in chosen:
            keys = [(outcome["tenant"], event_id) for event_id in outcome["lookup_event_ids"]]
            yield _answer(
                outcome,
                [lookup for key in keys for lookup in lookups.get(key, ())],
                [candidate for key in keys for candidate in candidates.get(key, ())],
            )


def _bind(ids: Any) -> dict[str, str]:
    return {"ids": json.dumps(list(ids), ensure_ascii=False)}


def _by_id(found: list[dict[str, Any]], id_field: str) -> dict[tuple[str, str], list[Any]]:
    grouped: dict[tuple[str, str], list[Any]] = {}
    for row in found:
        grouped.setdefault((row["tenant"], row[id_field]), []).append(row)
    return grouped


def _answer(
    outcome: Mapping[str, Any],
    lookups: Sequence[Mapping[str, Any]],
    candidates: Sequence[Mapping[str, Any]],
) -> Answer:
    claims = tuple(
        Claim(text, tuple(chunks), tuple(urls))
        for text, chunks, urls in zip(
            outcome["claim_texts"],
            outcome["cited_chunk_ids"],
            outcome["cited_source_urls"],
            strict=True,
        )
    )
    selected = {chunk for lookup in lookups for chunk in lookup["selected_chunk_ids"]}
    wanted = selected | {chunk for claim in claims for chunk in claim.cited_chunk_ids}
    texts = {chunk: pair for lookup in lookups for chunk, pair in _texts(lookup["raw"]).items()}
    evidence: dict[str, Evidence] = {}
    for row in candidates:
        chunk_id = row["chunk_id"]
        if chunk_id not in evidence and (not selected or chunk_id in wanted):
            title, excerpt = texts.get(chunk_id, ("", ""))
            evidence[chunk_id] = Evidence(
                chunk_id=chunk_id,
                title=title,
                excerpt=excerpt,
                source_url=row["source_url"],
                document_id=row["document_id"],
                document_version=row["document_version"],
                document_updated_at=row["document_updated_at"],
            )
    return Answer(
        tenant=outcome["tenant"],
        outcome_id=outcome["outcome_id"],
        queries=tuple(dict.fromkeys(row["query_text"] for row in lookups if row["query_text"])),
        evidence=tuple(evidence.values()),
        action=outcome["action"],
        claims=claims,
        refusal=outcome["refusal_text"] if outcome["action"] == "refused" else "",
    )


def _texts(raw: str) -> dict[str, tuple[str, str]]:
    """Title and excerpt of each chunk, where the event is a native one and holds them."""
    decoded = CODECS[EventType.LOOKUP].decode(raw.encode())
    if not isinstance(decoded, Decoded):
        return {}
    return {
        candidate.chunk_id: (candidate.title or "", candidate.excerpt or "")
        for candidate in decoded.record.candidates
        if candidate.chunk_id is not None
    }
