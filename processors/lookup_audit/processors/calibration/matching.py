"""Gold questions and the lookups that asked them, per model version and mode.

What is left out is named with the reason: questions that nobody asked, that several tenants or
services asked, and those of which the gold file does not know the model version's chunks.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from lookup_audit.processors.calibration.asked import Asked
from lookup_audit.processors.calibration.gold import GoldQuestion, normalise

Stratum = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Trial:
    """One gold question as one stratum answered it.

    Args:
        gold: The question.
        asked: The lookup that counts.
        supporting: Supporting chunks under the stratum's model version.
    """

    gold: GoldQuestion
    asked: Asked
    supporting: frozenset[str]

    @property
    def is_right(self) -> bool:
        """Whether the top kept candidate, which decides the level, is a supporting chunk."""
        return self.asked.top is not None and self.asked.top.chunk_id in self.supporting

    @property
    def first_hit(self) -> int | None:
        """Place of the first supporting chunk among the kept, from 1; none if there is none."""
        if not self.asked.has_order:
            return None
        for place, candidate in enumerate(self.asked.kept, start=1):
            if candidate.chunk_id in self.supporting:
                return place
        return None

    @property
    def selected_hit(self) -> bool:
        """Whether a supporting chunk was given to the caller."""
        return not self.supporting.isdisjoint(self.asked.given)


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A gold question without a lookup that counts in a stratum.

    Args:
        line: Of the gold file.
        question: As the file has it.
        reason: ``not_asked``, ``ambiguous`` or ``no_support_for_version``.
        detail: A sentence with the fix.
    """

    line: int
    question: str
    reason: str
    detail: str


@dataclass(slots=True)
class StratumTrials:
    """The trials of one model version and mode, and what was left out of them.

    Args:
        model_version: Of all its lookups.
        mode: Of all its lookups.
        trials: One a gold question, in the file's order.
        left_out: The other gold questions.
        superseded: Earlier lookups of a question that a later one replaces.
    """

    model_version: str
    mode: str
    trials: list[Trial] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)
    superseded: int = 0


def match(gold: Sequence[GoldQuestion], lookups: Iterable[Asked]) -> list[StratumTrials]:
    """Sort lookups to the questions they asked; the strata by name.

    A question asked several times in a stratum counts by its last lookup: what a retry replaced
    is not what the caller had in the end.
    """
    by_key = {normalise(question.question): question for question in gold}
    asked: dict[Stratum, dict[str, list[Asked]]] = defaultdict(lambda: defaultdict(list))
    for lookup in lookups:
        key = normalise(lookup.query_text)
        if key in by_key:
            asked[lookup.model_version, lookup.mode][key].append(lookup)
    strata = []
    for (model_version, mode), questions in sorted(asked.items()):
        stratum = StratumTrials(model_version, mode)
        for key, question in by_key.items():
            _place(stratum, question, questions.get(key, []))
        strata.append(stratum)
    return strata


def _place(stratum: StratumTrials, question: GoldQuestion, lookups: list[Asked]) -> None:
    def leave_out(reason: str, detail: str) -> None:
        stratum.left_out.append(LeftOut(question.line, question.question, reason, detail))

    if not lookups:
        leave_out("not_asked", "no lookup asked it; ask the service, or widen --days")
        return
    askers = sorted({(a.tenant, a.service) for a in lookups})
    if len(askers) > 1:
        names = ", ".join(f"{tenant or '-'}/{service or '-'}" for tenant, service in askers)
        leave_out("ambiguous", f"asked by several of tenant/service: {names}; name one by --tenant")
        return
    supporting = question.supporting_in(stratum.model_version)
    if supporting is None:
        fix = f"add supporting.{stratum.model_version} to the gold file"
        leave_out("no_support_for_version", fix)
        return
    last = max(lookups, key=lambda a: (a.occurred_at, a.event_id))
    stratum.superseded += len(lookups) - 1
    stratum.trials.append(Trial(question, last, supporting))


def never_asked(gold: Sequence[GoldQuestion], strata: Iterable[StratumTrials]) -> list[LeftOut]:
    """Questions that no stratum has any lookup of."""
    missing = [
        {item.line for item in stratum.left_out if item.reason == "not_asked"} for stratum in strata
    ]
    lines = set.intersection(*missing) if missing else {question.line for question in gold}
    return [
        LeftOut(q.line, q.question, "not_asked", "no lookup asked it; ask the service first")
        for q in gold
        if q.line in lines
    ]
