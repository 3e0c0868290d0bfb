"""Coverage and conduct once more, slowly and in plain Python, from the raw events alone.

Shares nothing with the views: it is what a reader would write down from the law with pencil and
paper, and the tests hold the SQL to it. Events are in canonical spelling.
"""

import re
import unicodedata
from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

from tests.support.events import Event


class ClaimRow(NamedTuple):
    """One claim as ``audit.claims`` should show it."""

    tenant: str
    outcome_id: str
    claim_number: int
    mode: str
    model_version: str
    supported: bool
    reason: str
    never_returned: tuple[str, ...]


class FindingRow(NamedTuple):
    """One finding as ``audit.conduct_findings`` should show it."""

    finding: str
    tenant: str
    run_id: str
    event_id: str
    outcome_id: str
    claim_number: int


def normalised(query: str) -> str:
    """A query without the differences of form, width, case, white space and closing marks."""
    text = " ".join(unicodedata.normalize("NFKC", query).lower().split())
    return re.sub(r"^[ ¿¡]+|[ .,;:!?؟。、]+\Z", "", text)


class Stored:
    """All events of a store.

    Args:
        lookups: LookupResult events.
        outcomes: AnswerOutcome events.
    """

    def __init__(self, lookups: Iterable[Event], outcomes: Iterable[Event]):
        self.lookups = {(e["tenant"], e["event_id"]): e for e in lookups}
        self.outcomes = list(outcomes)

    def referred(self, outcome: Event) -> list[Event]:
        keys = [(outcome["tenant"], i) for i in dict.fromkeys(outcome["lookup_event_ids"])]
        return [self.lookups[key] for key in keys if key in self.lookups]

    def is_complete(self, outcome: Event) -> bool:
        return len(self.referred(outcome)) == len(set(outcome["lookup_event_ids"]))

    def run_of(self, outcome: Event) -> list[Event]:
        mates = [
            lookup
            for lookup in self.lookups.values()
            if outcome["run_id"]
            and lookup["run_id"] == outcome["run_id"]
            and lookup["tenant"] == outcome["tenant"]
            and lookup["event_id"] not in outcome["lookup_event_ids"]
        ]
        return self.referred(outcome) + mates

    def stratum(self, outcome: Event) -> tuple[str, str]:
        found = self.referred(outcome)
        modes = sorted({e["mode"] for e in found})
        versions = sorted({e["model_version"] for e in found})
        return "+".join(modes), "+".join(versions)

    def claims(self) -> list[ClaimRow]:
        rows = []
        for outcome in self.outcomes:
            if outcome["action"] != "answered":
                continue
            for number, claim in enumerate(outcome["claims"] or (), 1):
                reason = self._reason(outcome, claim)
                rows.append(
                    ClaimRow(
                        outcome["tenant"],
                        outcome["outcome_id"],
                        number,
                        *self.stratum(outcome),
                        reason == "",
                        reason,
                        tuple(sorted(self._never_returned(outcome, claim))),
                    )
                )
        return rows

    def _reason(self, outcome: Event, claim: Event) -> str:
        chunks, urls = claim["cited_chunk_ids"] or (), claim["cited_source_urls"] or ()
        if not chunks and not urls:
            return "no_citation"
        cited = [
            (candidate, lookup)
            for lookup in self.run_of(outcome)
            for candidate in lookup["candidates"]
            if candidate["chunk_id"] in chunks
            or (candidate["source_url"] and candidate["source_url"] in urls)
        ]
        own = self.referred(outcome)
        selected = [
            candidate
            for candidate, lookup in cited
            if lookup in own and candidate["chunk_id"] in lookup["selected_chunk_ids"]
        ]
        if any(candidate["source_url"] for candidate in selected):
            return ""
        if not self.is_complete(outcome):
            return "lookup_missing"
        if selected or any(c in e["selected_chunk_ids"] for c in chunks for e in own):
            return "no_link"
        run_selected = [c for e in self.run_of(outcome) for c in e["selected_chunk_ids"]]
        if any(c["kept"] or c["chunk_id"] in e["selected_chunk_ids"] for c, e in cited) or any(
            c in run_selected for c in chunks
        ):
            return "unselected_chunk"
        return "dropped_chunk" if cited else "unknown_chunk"

    def _never_returned(self, outcome: Event, claim: Event) -> set[str]:
        chunks, urls = set(), set()
        for lookup in self.run_of(outcome):
            if lookup["evidence_status"] == "NO_EVIDENCE":
                continue
            chunks.update(lookup["selected_chunk_ids"])
            for candidate in lookup["candidates"]:
                if candidate["kept"] or candidate["chunk_id"] in lookup["selected_chunk_ids"]:
                    chunks.add(candidate["chunk_id"])
                    urls.add(candidate["source_url"])
        if claim["cited_chunk_ids"]:
            return set(claim["cited_chunk_ids"]) - chunks
        return set(claim["cited_source_urls"] or ()) - urls

    def findings(self) -> set[FindingRow]:
        return self._wasted() | self._over_confident() | self._claims_found()

    def _wasted(self) -> set[FindingRow]:
        runs: dict[tuple[str, str, str], list[Event]] = {}
        for lookup in self.lookups.values():
            if lookup["run_id"]:
                runs.setdefault((lookup["tenant"], lookup["run_id"], ""), []).append(lookup)
        for outcome in self.outcomes:
            owner = "" if outcome["run_id"] else outcome["outcome_id"]
            members = runs.setdefault((outcome["tenant"], outcome["run_id"] or "", owner), [])
            members += [e for e in self.referred(outcome) if e not in members]
        found: dict[tuple[str, str], tuple[bool, str, str]] = {}
        for (tenant, run_id, owner), members in runs.items():
            for later in members:
                if any(_repeats(later, earlier) for earlier in members):
                    key = (tenant, later["event_id"])
                    mine = (not run_id, run_id, owner)
                    found[key] = min(found.get(key, mine), mine)
        return {
            FindingRow("wasted_lookup", tenant, run_id, event_id, owner, 0)
            for (tenant, event_id), (_, run_id, owner) in found.items()
        }

    def _over_confident(self) -> set[FindingRow]:
        found: set[FindingRow] = set()
        for outcome in self.outcomes:
            if not self.is_complete(outcome) or outcome["stance"] != "firm":
                continue
            last = max(self.run_of(outcome), key=lambda e: (_time(e), e["event_id"]))
            levels = [e["relevance_level"] for e in [*self.referred(outcome), last]]
            if outcome["action"] == "answered" and not any(levels):
                found.add(
                    FindingRow(
                        "over_confident",
                        outcome["tenant"],
                        outcome["run_id"] or "",
                        last["event_id"],
                        outcome["outcome_id"],
                        0,
                    )
                )
        return found

    def _claims_found(self) -> set[FindingRow]:
        found: set[FindingRow] = set()
        by_id = {(o["tenant"], o["outcome_id"]): o for o in self.outcomes}
        for row in self.claims():
            outcome = by_id[row.tenant, row.outcome_id]
            if not self.is_complete(outcome):
                continue
            names = ["fabricated_citation"] if row.never_returned else []
            names += ["unsupported_claim"] if row.reason == "no_link" else []
            found.update(
                FindingRow(
                    name,
                    row.tenant,
                    outcome["run_id"] or "",
                    outcome["lookup_event_ids"][-1],
                    row.outcome_id,
                    row.claim_number,
                )
                for name in names
            )
        return found


def _time(event: Event) -> datetime:
    return datetime.fromisoformat(event["occurred_at"])


def _repeats(later: Event, earlier: Event) -> bool:
    asked = [normalised((e["query"] or {}).get("text") or "") for e in (later, earlier)]
    return (
        asked[0] == asked[1] != ""
        and later["mode"] == earlier["mode"]
        and earlier["relevance_level"] == "PRECISE"
        and _time(earlier) < _time(later)
    )
