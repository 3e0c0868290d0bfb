"""A store with something for every panel: two modes, two tenants, faults of every kind, alarms."""

import itertools
from datetime import datetime, timedelta

from lookup_audit.processors.store import ClickHouseStore
from tests.support.events import (
    Event,
    make_candidate,
    make_judgement,
    make_lookup,
    make_outcome,
)
from tests.support.stored import store_answers, store_lookups
from tests.support.twins import make_encoder, make_message, make_sink

# What could leave a literal, an attribute or a page.
NASTY_MODEL = "m</script><script>alert(1)</script>'\\@2"
NASTY_QUERY = "为什么 <img src=x onerror=alert(1)> ' OR 1=1 --"
_DISTANCES = {"PRECISE": 0.3, "REFERENCE": 0.8, "NONE": 1.4}


def fill(store: ClickHouseStore, now: datetime) -> list[str]:
    """Fill an empty store; returns the lookups' ids.

    Args:
        store: Migrated.
        now: End of the history, which is six hours long.
    """
    lookups, answers = _history(now)
    store_lookups(store, *lookups)
    store_answers(store, *answers)
    # A duplicate, a conflict of ids, and a message that is no event.
    store_lookups(store, lookups[0], lookups[1] | {"latency_ms": 1.0})
    make_sink(store).write(make_encoder().encode([make_message(b"{", 900_001)]))
    _add_drift(store, now)
    return [str(event["event_id"]) for event in lookups]


def _history(now: datetime) -> tuple[list[Event], list[Event]]:
    lookups: list[Event] = []
    answers: list[Event] = []
    strata = itertools.product(
        ("dense", "hybrid"), ("acme", "东方, {'}"), ("mini@1", NASTY_MODEL), _DISTANCES, range(2)
    )
    for number, (mode, tenant, model, level, repeat) in enumerate(strata):
        # Strata are mixed in time, so that any stretch of it has some of each.
        place = number * 29 % 48
        at = now - timedelta(minutes=7 * place + 5)
        lookup = _lookup(number, mode, level)
        lookup |= {
            "tenant": tenant,
            "model_version": model,
            "occurred_at": at.isoformat(),
            "run_id": f"run-{number // 2}",
            "versions": {"index": f"kb-{place // 24}", "reranker": None, "chunker": None},
        }
        if number % 7 == 0:
            lookup["relevance_level"] = "REFERENCE" if level != "REFERENCE" else None
        if number % 9 == 4:
            lookup["surprise"] = 1
        lookups.append(lookup)
        outcome = make_outcome(
            tenant=tenant,
            run_id=lookup["run_id"],
            lookup_event_ids=[lookup["event_id"]],
            occurred_at=(at + timedelta(seconds=5)).isoformat(),
            action="refused" if level == "NONE" or number % 5 == 4 else "answered",
        )
        if number % 4 == 1 and outcome["claims"]:
            outcome["claims"][0] |= {"cited_chunk_ids": ["nowhere"], "cited_source_urls": []}
        answers.append(outcome)
        if outcome["action"] == "answered":
            answers.append(
                make_judgement(
                    tenant=tenant,
                    outcome_id=outcome["outcome_id"],
                    occurred_at=(at + timedelta(minutes=1)).isoformat(),
                    verdict="incorrect" if repeat else "correct",
                )
            )
    # An answer that rests on lookups of both modes.
    both = [lookups[0]["event_id"], lookups[24]["event_id"]]
    answers.append(make_outcome(lookup_event_ids=both, tenant="acme", occurred_at=_text(now)))
    return lookups, answers


def _lookup(number: int, mode: str, level: str) -> Event:
    distance = _DISTANCES[level]
    candidates = [
        make_candidate(dense_distance=distance),
        make_candidate(original_rank=2, dense_distance=distance + 0.1, kept=False,
                       drop_reason="top_k", source_url=None),
    ]  # fmt: skip
    if mode == "hybrid" and level == "PRECISE" and number % 2:
        candidates = [make_candidate(dense_distance=None)]
    over = {"service": {"name": f"kb-{number % 2}", "version": "1", "instance_id": f"pod-{mode}",
                        "sequence": number}}  # fmt: skip
    return make_lookup(
        candidates=candidates, mode=mode, query={"text": NASTY_QUERY, "language": "zh"}, **over
    )


def _text(at: datetime) -> str:
    return at.isoformat()


def _add_drift(store: ClickHouseStore, now: datetime) -> None:
    at = now.strftime("%Y-%m-%d %H:%M:%S")
    earlier = (now - timedelta(hours=2)).strftime("%Y-%m-%d %H:%M:%S")
    store.command(
        "INSERT INTO audit_store.drift_steps (step, epoch, closed_to) VALUES (1, 1, {at:String})",
        {"at": at},
    )
    for mode in ("dense", "hybrid"):
        key = {"mode": mode, "at": at, "earlier": earlier}
        store.command(
            "INSERT INTO audit_store.drift_strata (metric, tenant, service, mode, model_version,"
            " quality_basis, step, epoch, phase, first_call, last_call, reference_calls,"
            " calls_needed, reference_rate, reference_error, ignore_points, evidence, alarm_id)"
            " VALUES ('precise_rate', 'acme', 'kb-0', {mode:String}, 'mini@1', '*', 1, 1,"
            " 'watching', {earlier:String}, {at:String}, 400, 200, 0.4, 0.01, 2, 1.5, 'a-1')",
            key,
        )
        store.command(
            "INSERT INTO audit_store.drift_alarms (alarm_id, revision, step, epoch, state, metric,"
            " tenant, service, mode, model_version, quality_basis, direction, started_at,"
            " detected_at, reference_rate, observed_rate, change_points, change_low, change_high,"
            " calls, summary) VALUES (concat('a-', {mode:String}), 1, 1, 1, 'open',"
            " 'precise_rate', '*', '*', {mode:String}, '*', '*', 'up', {earlier:String},"
            " {at:String}, 0.4, 0.6, 20, 10, 30, 120, 'PRECISE of <b>all</b> rose')",
            key,
        )
