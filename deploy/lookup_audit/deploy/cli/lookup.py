"""``lookup-audit lookup``: everything about one lookup, with the arithmetic written out."""

import argparse
from typing import Any

from lookup_audit.deploy.cli.options import (
    add_source,
    make_parser,
    one_line,
    print_json,
    print_table,
    printable,
    reader_for,
)
from lookup_audit.deploy.explain import explain_lookup
from lookup_audit.processors.reading import Reader, rows

# Few columns find the row through the index on ids; its time then leaves one part to be opened for
# all columns, which is where a wide table takes its time.
_BY_ID = (
    "WHERE event_id = {id:String} AND (tenant, occurred_at) IN "
    "(SELECT tenant, occurred_at FROM audit.lookups WHERE event_id = {id:String}) ORDER BY tenant"
)
LOOKUP_SQL = f"SELECT * FROM audit.lookups {_BY_ID}"


def parser() -> argparse.ArgumentParser:
    """Options of the verb."""
    made = make_parser(
        "lookup",
        "Show one lookup: reported and recomputed, why, candidates, outcome, judgements, origin.",
        "lookup-audit lookup 0192f1c0-7a31-7c3e-9d55-5b1f0c7a2f11",
    )
    made.add_argument("event_id", metavar="EVENT_ID")
    made.add_argument("--raw", action="store_true", help="print the event's bytes and nothing else")
    made.add_argument("--json", action="store_true", help="machine-readable answer")
    add_source(made)
    return made


def run(args: argparse.Namespace) -> int:
    """Print every stored lookup of the id; exit code 1 if there is none."""
    reader = reader_for(args)
    try:
        found = collect(reader, args.event_id)
    finally:
        reader.close()
    if args.json:
        print_json(found)
    elif not found:
        print(f"no lookup has the id {printable(args.event_id)}")
    for one in found if not args.json else ():
        if args.raw:
            print(one["lookup"]["raw"])
        else:
            show(one)
    return 0 if found else 1


def collect(reader: Reader, event_id: str) -> list[dict[str, Any]]:
    """All that is stored of an id, one entry a tenant that uses it."""
    by_id = {"id": event_id}
    lookups = rows(reader, LOOKUP_SQL, by_id)
    candidates = rows(reader, f"SELECT * FROM audit.candidates {_BY_ID}, original_rank", by_id)
    outcomes = rows(
        reader,
        "SELECT * EXCEPT raw FROM audit.outcomes WHERE has(lookup_event_ids, {id:String}) "
        "ORDER BY occurred_at",
        by_id,
    )
    judgements = rows(
        reader,
        "SELECT * EXCEPT raw FROM audit.judgements WHERE outcome_id IN (SELECT outcome_id FROM "
        "audit.outcomes WHERE has(lookup_event_ids, {id:String})) ORDER BY occurred_at",
        by_id,
    )
    repeats = rows(
        reader,
        "SELECT 'duplicate' AS what, tenant, kafka_topic, kafka_partition, kafka_offset "
        "FROM audit.duplicates WHERE event_id = {id:String} AND kind = 'lookup' UNION ALL "
        "SELECT 'conflict', tenant, kafka_topic, kafka_partition, kafka_offset "
        "FROM audit.id_conflicts WHERE event_id = {id:String} AND kind = 'lookup'",
        by_id,
    )
    rulesets = rows(
        reader,
        "SELECT DISTINCT ruleset_id, content FROM audit.rulesets WHERE ruleset_id IN "
        "(SELECT ruleset_id FROM audit.lookups WHERE event_id = {id:String})",
        by_id,
    )
    contents = {row["ruleset_id"]: row["content"] for row in rulesets}

    def of_tenant(found: list[dict[str, Any]], tenant: str) -> list[dict[str, Any]]:
        return [row for row in found if row["tenant"] == tenant]

    return [
        {
            "lookup": lookup,
            "ruleset": contents.get(lookup["ruleset_id"]),
            "candidates": of_tenant(candidates, lookup["tenant"]),
            "outcomes": of_tenant(outcomes, lookup["tenant"]),
            "judgements": of_tenant(judgements, lookup["tenant"]),
            "repeats": of_tenant(repeats, lookup["tenant"]),
        }
        for lookup in lookups
    ]


_CANDIDATE_COLUMNS = (
    "original_rank",
    "chunk_id",
    "dense_distance",
    "rrf_score",
    "quality_score",
    "reported_quality",
    "layer",
    "kept",
    "selected",
    "drop_reason",
)


def show(found: dict[str, Any]) -> None:
    """Print one lookup for a person."""
    lookup = found["lookup"]
    for line in explain_lookup(lookup, found["ruleset"], found["candidates"]):
        print(one_line(line))
    print()
    shown = [[_short(row[name]) for name in _CANDIDATE_COLUMNS] for row in found["candidates"]]
    print_table(_CANDIDATE_COLUMNS, shown)
    for outcome in found["outcomes"]:
        text = outcome["action"]
        if outcome["action"] == "refused":
            text += f" ({outcome['refusal_reason'] or 'no reason given'})"
        print("\n" + one_line(f"outcome    {text}, {outcome['outcome_id']}"))
        for claim in outcome["claim_texts"]:
            print(one_line(f"  claim    {claim}"))
        if outcome["refusal_text"]:
            print(one_line(f"  said     {outcome['refusal_text']}"))
    for judgement in found["judgements"]:
        counts = "counts" if judgement["counts"] else "outranked"
        print(
            one_line(
                f"judgement  {judgement['verdict']} by {judgement['source']} "
                f"{judgement['judge_id']} ({counts}) {judgement['comment']}".rstrip()
            )
        )
    for repeat in found["repeats"]:
        print(
            f"{repeat['what']:10} at {repeat['kafka_topic']}/{repeat['kafka_partition']} "
            f"offset {repeat['kafka_offset']}"
        )


def _short(value: object) -> object:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return round(value, 6) if isinstance(value, float) else value
