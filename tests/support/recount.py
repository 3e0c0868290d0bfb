"""The headline worked out again from raw events alone: slow, plain, and by no code of the product.

An auditor who trusts neither views nor library could do this. Only the sample itself is taken as
given: which lookups were drawn, and with what probability.
"""

import hashlib
import json
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime

from tests.support.events import Event

Key = tuple[str, str]
Stratum = tuple[date, str, str, str]
_SOURCES = ["llm", "user_feedback", "human", "gold"]
_Z = 1.959963984540054
Test = Callable[["Cell"], bool]
_RIGHTS = {"correct": "right", "incorrect": "wrong", "partly": "partly"}


@dataclass
class Cell:
    """One sampled lookup: what became of it, and for how many it stands."""

    level: str
    weight: float
    answer_id: Key | None = None
    answer: str = ""


@dataclass
class Row:
    """One row of the headline."""

    sampled: int = 0
    with_outcome: int = 0
    high_score_errors: int = 0
    judged_high: int = 0
    low_score_refusals: int = 0
    low_with_outcome: int = 0
    figures: dict[str, tuple[float, float, float | None] | None] = field(default_factory=dict)


def headline(
    lookups: Iterable[str],
    outcomes: Iterable[str],
    judgements: Iterable[str],
    samples: Mapping[Key, float] | None = None,
    planned: Iterable[tuple[str, date]] = (),
) -> dict[Stratum, Row]:
    """Every row of ``audit.ratio_daily``, from the raw events that count.

    Args:
        lookups: Raw lookups, each id once.
        outcomes: Raw outcomes, each id once.
        judgements: Raw judgements, each id once.
        samples: Inclusion probability of each drawn lookup, by (tenant, event id).
        planned: (tenant, day) of every day that was sampled.
    """
    answers = _answers(outcomes)
    verdicts = _verdicts(judgements)
    days = set(planned)
    strata: dict[Stratum, list[Cell]] = defaultdict(list)
    for event in map(json.loads, lookups):
        key = (event.get("tenant") or "", event["event_id"])
        day = _instant(event["occurred_at"]).date()
        if (key[0], day) in days:
            if key not in (samples or {}):
                continue
            weight = 1 / (samples or {})[key]
        else:
            weight = 1.0
        cell = Cell(event.get("relevance_level") or "NONE", weight)
        if key in answers:
            outcome = answers[key]
            cell.answer_id = (key[0], outcome["outcome_id"])
            judged = _RIGHTS.get(verdicts.get(cell.answer_id, ""), "unjudged")
            cell.answer = "refused" if outcome["action"] == "refused" else judged
        strata[day, key[0], event["model_version"], event["mode"]].append(cell)
    return {stratum: _row(cells) for stratum, cells in strata.items()}


def _answers(outcomes: Iterable[str]) -> dict[Key, Event]:
    """The latest outcome of each lookup."""
    found: dict[Key, list[Event]] = defaultdict(list)
    for event in map(json.loads, outcomes):
        for event_id in event["lookup_event_ids"]:
            found[event.get("tenant") or "", event_id].append(event)
    return {key: max(events, key=_outcome_order) for key, events in found.items()}


def _outcome_order(event: Event) -> tuple[datetime, int]:
    digest = hashlib.sha256(event["outcome_id"].encode()).digest()
    return _instant(event["occurred_at"]), int.from_bytes(digest[:8], "little")


def _verdicts(judgements: Iterable[str]) -> dict[Key, str]:
    """The judgement of each answer that counts."""
    found: dict[Key, list[Event]] = defaultdict(list)
    for event in map(json.loads, judgements):
        found[event.get("tenant") or "", event["outcome_id"]].append(event)
    return {key: max(events, key=_judgement_order)["verdict"] for key, events in found.items()}


def _judgement_order(event: Event) -> tuple[int, datetime, int]:
    digest = hashlib.sha256(event["judgement_id"].encode()).digest()
    rank = _SOURCES.index(event["source"])
    return rank, _instant(event["occurred_at"]), int.from_bytes(digest[:4], "little")


def _instant(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


def _row(cells: list[Cell]) -> Row:
    def is_error(cell: Cell) -> bool:
        return cell.level == "PRECISE" and cell.answer == "wrong"

    def is_judged_high(cell: Cell) -> bool:
        return cell.level == "PRECISE" and cell.answer in ("wrong", "right", "partly")

    def is_refusal(cell: Cell) -> bool:
        return cell.level == "NONE" and cell.answer == "refused"

    def is_low(cell: Cell) -> bool:
        return cell.level == "NONE" and cell.answer_id is not None

    row = Row(
        sampled=len(cells),
        with_outcome=sum(cell.answer_id is not None for cell in cells),
        high_score_errors=sum(map(is_error, cells)),
        judged_high=sum(map(is_judged_high, cells)),
        low_score_refusals=sum(map(is_refusal, cells)),
        low_with_outcome=sum(map(is_low, cells)),
    )
    clusters: dict[object, list[Cell]] = defaultdict(list)
    for number, cell in enumerate(cells):
        clusters[cell.answer_id or number].append(cell)

    def rate(of: Test, among: Test) -> tuple[float, float, float] | None:
        pairs = [
            (sum(c.weight for c in group if of(c)), sum(c.weight for c in group if among(c)))
            for group in clusters.values()
        ]
        return interval([pair for pair in pairs if pair[1] > 0])

    row.figures = {
        "high_score_error_rate": rate(is_error, is_judged_high),
        "low_score_refusal_rate": rate(is_refusal, is_low),
        "high_score_error_share": rate(is_error, lambda c: True),
        "low_score_refusal_share": rate(is_refusal, lambda c: True),
    }
    part = rate(is_error, lambda c: is_error(c) or is_refusal(c))
    row.figures["ratio"] = None
    if part is not None and row.low_score_refusals:
        high = None if part[2] >= 1 else part[2] / (1 - part[2])
        row.figures["ratio"] = (part[0] / (1 - part[0]), part[1] / (1 - part[1]), high)
    return row


def interval(pairs: list[tuple[float, float]]) -> tuple[float, float, float] | None:
    """A rate with its interval, written out cluster by cluster."""
    whole = sum(b for _, b in pairs)
    if not whole:
        return None
    p = sum(a for a, _ in pairs) / whole
    variance = sum((a - p * b) ** 2 for a, b in pairs) / whole**2
    kish = sum(b * b for _, b in pairs) / whole**2
    information = len(pairs) * p * (1 - p)
    n = (information + 10) / (len(pairs) * variance + 10 * kish)
    centre = (p + _Z**2 / (2 * n)) / (1 + _Z**2 / n)
    half = _Z / (1 + _Z**2 / n) * math.sqrt(p * (1 - p) / n + _Z**2 / (4 * n * n))
    return p, max(0.0, centre - half), min(1.0, centre + half)
