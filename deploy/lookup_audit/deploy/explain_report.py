"""The causes of a change, as one document and in words."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from lookup_audit.deploy.cli.options import print_table, printable
from lookup_audit.processors.drift_causes.reading import Stratum
from lookup_audit.processors.drift_causes.split import Part, Split
from lookup_audit.processors.drift_causes.words import Cause, sentence
from lookup_audit.processors.statistics.proportions import wilson
from lookup_audit.schemas.fields import format_instant


def explain_document(
    before: Stratum,
    after: Stratum,
    found: Split,
    told: Sequence[Cause],
    alarm_id: str | None = None,
) -> dict[str, Any]:
    """Everything about one change, as plain JSON; rates in shares of 1, parts in points."""
    named = [cause for cause in told if cause.kind != "rest"]
    return {
        "alarm_id": alarm_id,
        "sentence": sentence(found, told),
        "main_cause": named[0].kind if named and named[0].part.change else None,
        "mode": after.mode,
        "tenant": after.scope.tenant or None,
        "before": _period(before, found.before, found.n_before),
        "after": _period(after, found.after, found.n_after),
        "change": _points(found.change),
        "causes": [_cause(cause) for cause in told],
    }


def _period(stratum: Stratum, rate: float, n: int) -> dict[str, Any]:
    interval = wilson(rate * n, n)
    return {
        "from": format_instant(stratum.scope.since),
        "to": format_instant(stratum.scope.until),
        "service": stratum.service or None,
        "model_version": stratum.model_version or None,
        "lookups": n,
        "precise_rate": rate,
        "low": interval[0] if interval else None,
        "high": interval[1] if interval else None,
    }


def _points(part: Part) -> dict[str, float | None]:
    def end(value: float) -> float | None:
        return 100 * value if math.isfinite(value) else None

    return {"points": 100 * part.change, "low": end(part.low), "high": end(part.high)}


def _cause(cause: Cause) -> dict[str, Any]:
    made: dict[str, Any] = {
        "kind": cause.kind,
        "cause": cause.name,
        "detail": cause.detail,
        **_points(cause.part),
    }
    if cause.members:
        made["members"] = [_cause(member) for member in cause.members]
    return made


def print_explanation(document: Mapping[str, Any]) -> None:
    """The sentence, the two rates, and the parts with their intervals."""
    print(printable(document["sentence"]) + "\n")
    print(f"PRECISE rate, mode {document['mode']}")
    for name in ("before", "after"):
        period = document[name]
        print(
            printable(
                f"  {name:6}  {100 * period['precise_rate']:5.1f} % "
                f"({100 * period['low']:.1f}-{100 * period['high']:.1f}) of "
                f"{period['lookups']:,} lookups, {period['from'][:16]} to {period['to'][:16]} UTC"
                + (f", model {period['model_version']}" if period["model_version"] else "")
            )
        )
    print("\nParts of the change, in points\n")
    lines: list[list[object]] = []
    for cause in document["causes"]:
        lines.append(_line(cause, ""))
        lines += [_line(member, "  of it ") for member in cause.get("members", ())]
    lines.append(["sum", *_figures(document["change"]), ""])
    print_table(("cause", "points", "95 %", "what moved"), lines)


def _line(cause: Mapping[str, Any], indent: str) -> list[object]:
    return [indent + cause["cause"], *_figures(cause), cause["detail"]]


def _figures(part: Mapping[str, Any]) -> list[object]:
    low, high = part["low"], part["high"]
    between = "no interval" if low is None or high is None else f"{low:+.1f} to {high:+.1f}"
    return [round(part["points"], 1) + 0.0, between]
