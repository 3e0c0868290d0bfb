"""The demo from start to end: index the handbook, serve it, ask the gold set, judge, deliver.

Each question is asked of both bundles in both modes. Needs a collector and nothing else; opens
no connection but to it and to the service on loopback.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass

from lookup_audit.deploy.demo.agent import Agent, sentence_support
from lookup_audit.deploy.demo.corpus import Chunk, load_pages, section_chunks, window_chunks
from lookup_audit.deploy.demo.delivery import Delivery, JsonPoster, Refusal
from lookup_audit.deploy.demo.embedding import MiniLm
from lookup_audit.deploy.demo.events import Json
from lookup_audit.deploy.demo.gold import GoldQuestion, check_gold, gold_file, load_gold
from lookup_audit.deploy.demo.identifiers import Clock, Identifiers, utc_now
from lookup_audit.deploy.demo.judge import judgement
from lookup_audit.deploy.demo.knowledge_service import (
    EVENT_ID_HEADER,
    MODES,
    KnowledgeService,
    served,
)
from lookup_audit.deploy.demo.lookup import BASELINE, CANDIDATE, KnowledgeBase

TOP_K = 4
TENANT = "demo"


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a stage of the demo is: ``loading``, ``indexing``, ``asking`` or ``delivering``."""

    stage: str
    done: int
    total: int


@dataclass(frozen=True, slots=True)
class DemoSummary:
    """What the demo sent, and what became of it; ``gold`` is its gold set as a file's text."""

    questions: int
    chunks: Mapping[str, int]
    lookups: int
    outcomes: int
    judgements: int
    refused: tuple[Refusal, ...]
    seconds: float
    gold: str = ""


OnProgress = Callable[[Progress], None]


def run_demo(
    collector_url: str,
    *,
    on_progress: OnProgress = lambda progress: None,
    token: str | None = None,
    tenant: str = TENANT,
    questions: Sequence[GoldQuestion] | None = None,
    model: MiniLm | None = None,
    bases: Sequence[KnowledgeBase] | None = None,
    ids: Identifiers | None = None,
    clock: Clock = utc_now,
    delivery_timeout_seconds: float = 60.0,
) -> DemoSummary:
    """Run the whole demo against a collector; returns when every event has its answer.

    Args:
        collector_url: Base URL of the collector.
        on_progress: Told about every step.
        token: Bearer token, where the collector wants one.
        tenant: Tenant that the events belong to.
        questions: Instead of the shipped gold set.
        model: Instead of the installed model.
        bases: Instead of both bundles over the whole handbook.
        ids: Instead of random ids.
        clock: Where the events' times come from.
        delivery_timeout_seconds: How long the collector may take to answer at the end.

    Raises:
        UndeliveredError: The collector did not answer for some events in time.
    """
    start = time.perf_counter()
    gold = load_gold() if questions is None else list(questions)
    if model is None:
        on_progress(Progress("loading", 0, 1))
        model = MiniLm.installed(threads=min(2, os.cpu_count() or 1))
        on_progress(Progress("loading", 1, 1))
    if bases is None:
        bases = build_bases(model, gold, on_progress)
    ids = Identifiers(clock) if ids is None else ids
    with deliveries(collector_url, token, delivery_timeout_seconds) as (
        lookups,
        outcomes,
        verdicts,
    ):
        service = KnowledgeService(bases, lookups, tenant=tenant, ids=ids, clock=clock)
        with served(service.app()) as base_url, closing(JsonPoster(base_url)) as poster:
            asker = _Asker(poster, model, tenant, ids, clock)
            total = len(gold) * len(bases) * len(MODES)
            for done, (question, base, mode) in enumerate(
                ((q, b, m) for q in gold for b in bases for m in MODES), start=1
            ):
                outcome, verdict = asker.run(question, base, mode)
                outcomes.send(outcome)
                if verdict is not None:
                    verdicts.send(verdict)
                on_progress(Progress("asking", done, total))
        for number, delivery in enumerate((lookups, outcomes, verdicts), start=1):
            delivery.flush(delivery_timeout_seconds)
            on_progress(Progress("delivering", number, 3))
    states = (lookups.state, outcomes.state, verdicts.state)
    return DemoSummary(
        questions=len(gold),
        chunks={base.bundle.model_version: len(base.chunks) for base in bases},
        lookups=lookups.state.accepted,
        outcomes=outcomes.state.accepted,
        judgements=verdicts.state.accepted,
        refused=tuple(refusal for state in states for refusal in state.refused),
        seconds=time.perf_counter() - start,
        gold=gold_file(gold, {base.bundle.model_version: base.chunks for base in bases}),
    )


def build_bases(
    model: MiniLm, gold: Sequence[GoldQuestion] = (), on_progress: OnProgress = lambda p: None
) -> list[KnowledgeBase]:
    """Cut and index the handbook for both bundles.

    Raises:
        GoldError: The gold set does not fit the handbook.
    """
    pages = load_pages()
    check_gold(gold, pages)
    count = model.tokenizer.count
    cuts = {
        CANDIDATE: section_chunks(pages, count),
        BASELINE: window_chunks(pages, count),
    }
    texts = [chunk.indexed_text for chunks in cuts.values() for chunk in chunks]
    with ThreadPoolExecutor(min(4, os.cpu_count() or 1)) as pool:
        for done, _ in enumerate(pool.map(model.embed_once, texts), 1):
            on_progress(Progress("indexing", done, len(texts)))
    return [KnowledgeBase(bundle, chunks, model) for bundle, chunks in cuts.items()]


@contextmanager
def deliveries(
    collector_url: str, token: str | None, timeout_seconds: float
) -> Iterator[tuple[Delivery, Delivery, Delivery]]:
    """One delivery each for lookups, outcomes and judgements, closed at the end."""
    with ExitStack() as stack:
        made: list[Delivery] = []
        for path in ("/v1/lookups", "/v1/outcomes", "/v1/judgements"):
            poster = JsonPoster(collector_url, token=token)
            stack.callback(poster.close)
            delivery = Delivery(poster, path)
            stack.callback(delivery.close, timeout_seconds)
            made.append(delivery)
        yield made[0], made[1], made[2]


class _Asker:
    """Puts one question to one bundle in one mode, over HTTP, and judges the answer."""

    def __init__(
        self, poster: JsonPoster, model: MiniLm, tenant: str, ids: Identifiers, clock: Clock
    ) -> None:
        self._poster = poster
        self._tenant = tenant
        self._ids = ids
        self._clock = clock
        self._support = sentence_support(
            lambda question, sentence: float(
                model.embed_once(question) @ model.embed_once(sentence)
            )
        )
        self._by_id: dict[str, dict[str, Chunk]] = {}

    def run(
        self, question: GoldQuestion, base: KnowledgeBase, mode: str
    ) -> tuple[Json, Json | None]:
        """The outcome of one agent run, and its judgement where it answered."""
        version = base.bundle.model_version
        traceparent = f"00-{self._ids.trace_id()}-{self._ids.span_id()}-01"

        def ask(
            text: str, category: str | None, run_id: str, tool_call_id: str
        ) -> tuple[Json, str]:
            request = {
                "query": text,
                "mode": mode,
                "model_version": version,
                "top_k": TOP_K,
                "category": category,
                "run_id": run_id,
                "tool_call_id": tool_call_id,
            }
            answer = self._poster("/lookup_knowledge", request, {"traceparent": traceparent})
            if answer.status != 200:
                raise RuntimeError(f"the retrieval service said {answer.status}: {answer.body}")
            return answer.body, self._poster.last_headers[EVENT_ID_HEADER]

        agent = Agent(ask, self._support, tenant=self._tenant, ids=self._ids, clock=self._clock)
        outcome, decision = agent.run(question.question, question.category)
        if decision.quote is None:
            return outcome, None
        chunks = self._by_id.setdefault(version, {c.chunk_id: c for c in base.chunks})
        return outcome, judgement(
            question, decision.quote, outcome, chunks, ids=self._ids, clock=self._clock
        )
