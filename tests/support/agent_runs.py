"""Random agent runs, good and bad, and a way to store them: input of the coverage tests."""

import random
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta

from lookup_audit.processors.store import Store
from lookup_audit.schemas.names import Topic
from tests.support.events import Event, encode, make_candidate, make_lookup, make_outcome
from tests.support.twins import make_encoder, make_message, make_sink

START = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days=2)

QUERIES = (
    "超时时间是多少？",
    " 超时时间是多少 ",
    "Default  timeout",
    "ＤＥＦＡＵＬＴ timeout?",
    "default retries",
    "ΑΣ",
    "ας",
    None,
)


def at(minute: float) -> str:
    """A time of the test day as producers write it."""
    return (START + timedelta(minutes=minute)).isoformat()


def candidate(number: int, **over: object) -> Event:
    """A chunk ``c<number>`` with the link ``https://kb/<number>`` unless told otherwise."""
    members: Event = {
        "chunk_id": f"c{number}",
        "document_id": f"d{number}",
        "source_url": f"https://kb/{number}",
        "original_rank": number,
    }
    return make_candidate(**(members | over))


def write(
    store: Store, lookups: Iterable[Event] = (), rest: Iterable[Event] = (), start: int = 0
) -> None:
    """Store lookups, and outcomes and judgements, as a processor does.

    Args:
        store: A migrated store.
        lookups: LookupResult events.
        rest: AnswerOutcome and Judgement events.
        start: Offset of the first message of each topic.
    """
    messages = [
        make_message(encode(event), offset, topic=topic)
        for topic, events in ((Topic.RESULTS, lookups), (Topic.OUTCOMES, rest))
        for offset, event in enumerate(events, start)
    ]
    make_sink(store).write(make_encoder().encode(messages))


def random_runs(seed: int, count: int = 120) -> tuple[list[Event], list[Event]]:
    """Lookups and outcomes of ``count`` runs with every fault an agent can have, and none."""
    chance = random.Random(seed)
    lookups: list[Event] = []
    outcomes: list[Event] = []
    for number in range(count):
        run_id = chance.choice(["", f"run-{number}", f"run-{number}", f"run-{number - 1}"])
        version = chance.choice(["m@1", "m@2"])
        mode = chance.choice(["dense", "hybrid"])
        tenant = chance.choice(["acme", "租户"])
        own = []
        for step in range(chance.randrange(1, 5)):
            if chance.random() < 0.1:
                mode = chance.choice(["dense", "hybrid"])
            minute = number % 50 + chance.choice([0, 1, 1, 2])
            event_id = f"e{seed}-{number}-{step}"
            event = _lookup(chance, run_id, mode, version, at(minute))
            own.append(event | {"event_id": event_id, "tenant": tenant})
        lookups += [event for event in own if chance.random() < 0.95]
        for answer in range(chance.choice([1, 1, 2])):
            ids = [e["event_id"] for e in chance.sample(own, chance.randrange(1, len(own) + 1))]
            if chance.random() < 0.1:
                ids.append(ids[0])
            outcome_id = f"o{seed}-{number}-{answer}"
            owner = tenant if chance.random() < 0.95 else "other"
            event = _outcome(chance, run_id, ids)
            outcomes.append(event | {"outcome_id": outcome_id, "tenant": owner})
    return lookups, outcomes


def _lookup(chance: random.Random, run_id: str, mode: str, version: str, time: str) -> Event:
    numbers = chance.sample(range(1, 9), chance.randrange(0, 5))
    found = [
        candidate(
            n,
            original_rank=rank,
            source_url=chance.choice([f"https://kb/{n}", f"https://kb/{n}", None]),
            kept=chance.random() < 0.7,
        )
        for rank, n in enumerate(numbers, 1)
    ]
    picked = [c["chunk_id"] for c in found if c["kept"] and chance.random() < 0.7]
    if chance.random() < 0.1:
        picked.append(f"c{chance.randrange(1, 9)}")
    text = chance.choice(QUERIES)
    return make_lookup(
        run_id=run_id,
        occurred_at=time,
        mode=mode,
        model_version=version,
        query=None if text is None else {"text": text, "language": None},
        candidates=found,
        selected_chunk_ids=list(dict.fromkeys(picked)),
        relevance_level=chance.choice(["PRECISE", "PRECISE", "REFERENCE", None, None]),
        evidence_status=chance.choice(["EVIDENCE_FOUND", "EVIDENCE_FOUND", "NO_EVIDENCE", None]),
        projection=None,
    )


def _outcome(chance: random.Random, run_id: str, lookup_ids: Sequence[str]) -> Event:
    answered = chance.random() < 0.8
    claims = [
        {
            "claim_id": chance.choice([None, f"k{i}"]),
            "text": "三十秒",
            "cited_chunk_ids": chance.choice([None, [], ["c1"], _some(chance), _some(chance)]),
            "cited_source_urls": chance.choice(
                [None, [], [f"https://kb/{chance.randrange(1, 9)}"]]
            ),
        }
        for i in range(chance.randrange(0, 4))
    ]
    return make_outcome(
        run_id=chance.choice([run_id, run_id, ""]),
        occurred_at=at(55),
        lookup_event_ids=list(lookup_ids),
        action="answered" if answered else "refused",
        stance=chance.choice(["firm", "hedged", None]) if answered else None,
        claims=claims if answered else [],
    )


def _some(chance: random.Random) -> list[str]:
    return [f"c{n}" for n in chance.sample(range(1, 10), chance.randrange(1, 4))]
