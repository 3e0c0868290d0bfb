"""One lookup in words: what was reported, what the recorded numbers give, and by which sum."""

import json
from collections.abc import Mapping, Sequence
from typing import Any


def explain_lookup(
    lookup: Mapping[str, Any], ruleset_json: str | None, candidates: Sequence[Mapping[str, Any]]
) -> list[str]:
    """Lines for a person who wants to follow the level by hand.

    Args:
        lookup: Row of ``audit.lookups``.
        ruleset_json: Content of the ruleset recomputed by.
        candidates: Rows of ``audit.candidates`` of the lookup.
    """
    recomputed = lookup["recomputed_level"] or "unverifiable"
    lines = [
        f"lookup     {lookup['event_id']}",
        f"when       {lookup['occurred_at']} UTC",
        f"query      {lookup['query_text']}",
        f"from       {lookup['service'] or '?'}, model {lookup['model_version']}, "
        f"mode {lookup['mode']}",
        f"level      reported {lookup['reported_level']}, recomputed {recomputed}: "
        f"{lookup['level_check']}"
        + (f" ({lookup['level_mismatch']})" if lookup["level_mismatch"] else ""),
    ]
    if ruleset_json:
        lines += [f"           {line}" for line in _arithmetic(lookup, ruleset_json, candidates)]
    lines += [f"failed     {failure}" for failure in lookup["failures"]]
    lines += [f"unverified {reason}" for reason in lookup["unverifiable"]]
    lines += [f"odd        {name}" for name in lookup["degradations"]]
    lines.append(
        f"origin     {lookup['kafka_topic']}/{lookup['kafka_partition']} offset "
        f"{lookup['kafka_offset']}, trace {lookup['trace_id'] or '-'}, "
        f"sha256 {lookup['payload_sha256']}"
    )
    return lines


def _arithmetic(
    lookup: Mapping[str, Any], ruleset_json: str, candidates: Sequence[Mapping[str, Any]]
) -> list[str]:
    rules = json.loads(ruleset_json)
    quality = lookup["quality_score"]
    best = min(
        (c for c in candidates if c["kept"]),
        key=lambda c: c["original_rank"] or 0,
        default=None,
    )
    if best is None:
        return ["no kept candidate, so there is no level"]
    if quality is None:
        return ["the best candidate's quality cannot be recomputed"]
    high, low = rules["highly_relevant_threshold"], rules["reference_threshold"]
    if lookup["quality_basis"] == "hybrid_rank":
        total = len(candidates)
        rank = best["original_rank"]
        reckoned = (
            f"1 / rank {rank}"
            if rules["rank_fallback"] == "reciprocal"
            else f"1 - (rank {rank} - 1) / {total} candidates"
        )
        reckoned += ", no dense neighbour: the rank stands in"
    else:
        distance = {
            "l2": f"{best['dense_distance']:.6g}",
            "l2_squared": f"sqrt({best['dense_distance']:.6g})",
            "cosine_distance": f"sqrt(2 * {best['dense_distance']:.6g})",
        }[rules["distance_metric"]]
        reckoned = f"1 - {distance} / {rules['max_l2_distance']:g}"
    step = (
        f"{quality:.6f} >= {high:g}"
        if quality >= high
        else f"{low:g} <= {quality:.6f} < {high:g}"
        if quality >= low
        else f"{quality:.6f} < {low:g}"
    )
    return [
        f"quality of {best['chunk_id'] or 'the best candidate'} = {reckoned} = {quality:.6f}",
        f"{step}, rule {rules['rule']}, ruleset {lookup['ruleset_id']}",
    ]
