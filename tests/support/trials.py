"""Gold trials made to measure: a question, what was kept, and which chunk supports the answer."""

from collections.abc import Sequence

from lookup_audit.processors.calibration.asked import AnswerGiven, Asked
from lookup_audit.processors.calibration.gold import GoldQuestion
from lookup_audit.processors.calibration.matching import StratumTrials, Trial
from lookup_audit.processors.calibration.operating import Scored
from lookup_audit.schemas.records import Candidate
from lookup_audit.schemas.ruleset import DEFAULT_RULESET, Ruleset


def make_asked(
    question: str = "q",
    qualities: Sequence[float | None] = (0.8,),
    *,
    chunks: Sequence[str] | None = None,
    event_id: str = "e",
    tenant: str = "acme",
    service: str = "kb",
    occurred_at: str = "2026-11-30T12:00:00Z",
    mode: str = "dense",
    model_version: str = "m@1",
    ruleset: Ruleset | None = DEFAULT_RULESET,
    selected: tuple[str, ...] | None = None,
    answer: AnswerGiven | None = None,
    linked: bool = True,
) -> Asked:
    """A lookup that kept one chunk a quality (``None``: without a distance), ``c1`` first."""
    names = chunks or [f"c{rank}" for rank in range(1, len(qualities) + 1)]
    kept = tuple(
        Candidate(
            chunk_id=name,
            original_rank=rank,
            dense_distance=None if quality is None else 2.0 * (1.0 - quality),
            similarity_score=quality,
            source_url=f"https://kb.example/{name}" if linked else None,
            kept=True,
        )
        for rank, (name, quality) in enumerate(zip(names, qualities, strict=True), start=1)
    )
    return Asked(
        event_id=event_id,
        tenant=tenant,
        service=service,
        occurred_at=occurred_at,
        mode=mode,
        model_version=model_version,
        query_text=question,
        top_k=4,
        ruleset=ruleset,
        candidate_count=len(kept),
        kept=kept,
        has_order=True,
        selected=selected,
        answer=answer,
    )


def make_gold(question: str = "q", *supporting: str, line: int = 1) -> GoldQuestion:
    """A gold question; without supporting chunks it is unanswerable."""
    return GoldQuestion(line, question, frozenset(supporting), bool(supporting))


def make_trial(asked: Asked, *supporting: str, line: int = 1) -> Trial:
    return Trial(make_gold(asked.query_text, *supporting, line=line), asked, frozenset(supporting))


def make_stratum(
    trials: Sequence[Trial], mode: str = "dense", model_version: str = "m@1"
) -> StratumTrials:
    return StratumTrials(model_version, mode, list(trials))


def right(quality: float | None) -> Scored:
    """A lookup whose top chunk supports the answer."""
    return Scored(quality, right=True, answerable=True, found=True)


def wrong(quality: float | None, *, answerable: bool = False) -> Scored:
    """A lookup whose top chunk does not."""
    return Scored(quality, right=False, answerable=answerable, found=False)
