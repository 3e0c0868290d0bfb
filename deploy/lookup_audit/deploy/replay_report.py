"""A replay's figures, as one document and in words."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from lookup_audit.deploy.cli.options import print_table
from lookup_audit.deploy.figures import number, with_interval
from lookup_audit.processors.replay.cells import CellCount, CellRates, cell_rates
from lookup_audit.processors.replay.levels import Example, LevelCounts, Move, level_counts
from lookup_audit.processors.replay.sweep import GridPoint
from lookup_audit.processors.statistics.proportions import wilson
from lookup_audit.schemas.ruleset import Ruleset


def rate(successes: int, n: int) -> dict[str, Any]:
    """A rate with its n and 95 % interval; no value over zero events."""
    interval = wilson(successes, n)
    return {
        "count": successes,
        "n": n,
        "rate": successes / n if n else None,
        "low": interval[0] if interval else None,
        "high": interval[1] if interval else None,
    }


def replay_document(
    ruleset: Ruleset,
    moves: Sequence[Move],
    examples: Mapping[int, Example],
    cells: Sequence[CellCount],
    points: Sequence[GridPoint],
) -> dict[str, Any]:
    """Everything a replay found, as plain JSON: what ``--json`` prints and the tables show."""
    return {
        "ruleset_id": ruleset.ruleset_id,
        "ruleset": ruleset.model_dump(),
        "lookups": sum(move.lookups for move in moves),
        "flips": sum(move.lookups for move in moves if move.is_flip),
        "strata": [_stratum(counts, cells) for counts in level_counts(moves)],
        "moves": [
            {
                "model_version": move.model_version,
                "mode": move.mode,
                "was": move.was,
                "becomes": move.becomes,
                "lookups": move.lookups,
                "examples": [asdict(examples[h]) for h in move.hashes if h in examples],
            }
            for move in moves
            if move.is_flip
        ],
        "cells": [asdict(cell) for cell in cells],
        "sweep": [_point(point) for point in points],
    }


def _stratum(counts: LevelCounts, cells: Sequence[CellCount]) -> dict[str, Any]:
    own = [c for c in cells if (c.model_version, c.mode) == (counts.model_version, counts.mode)]
    return {
        "model_version": counts.model_version,
        "mode": counts.mode,
        "lookups": counts.lookups,
        "flips": counts.flips,
        "was": {
            "unverifiable": counts.lookups - counts.known_was,
            "precise": rate(counts.precise_was, counts.known_was),
            **_headline(cell_rates(own, becomes=False)),
        },
        "becomes": {
            "unverifiable": counts.lookups - counts.known_becomes,
            "precise": rate(counts.precise_becomes, counts.known_becomes),
            **_headline(cell_rates(own, becomes=True)),
        },
    }


def _headline(rates: CellRates) -> dict[str, Any]:
    return {
        "outcomes": rates.outcomes,
        "high_score_error_rate": rate(rates.high_score_errors, rates.judged_high),
        "low_score_refusal_rate": rate(rates.low_score_refusals, rates.low_with_outcome),
        "ratio": rates.ratio,
    }


def _point(point: GridPoint) -> dict[str, Any]:
    return {
        "model_version": point.model_version,
        "mode": point.mode,
        "highly_relevant_threshold": point.threshold,
        "precise": rate(point.precise, point.lookups),
        "high_score_error_rate": rate(point.high_score_errors, point.judged_high),
    }


def print_replay(document: Mapping[str, Any]) -> None:
    """The document as tables."""
    print(f"{document['lookups']:,} lookups under {document['ruleset_id']}: ", end="")
    print(f"{document['flips']:,} would have another level\n")
    if not document["lookups"]:
        return
    print_table(
        ("model version", "mode", "lookups", "unverifiable", "PRECISE rate then, 95 %", "under it",
         "flips"),
        [_level_row(stratum) for stratum in document["strata"]],
    )  # fmt: skip
    if document["moves"]:
        print("\nLevels that flip\n")
        print_table(
            ("model version", "mode", "from", "to", "lookups", "for example"),
            [_move_row(move) for move in document["moves"]],
        )
    _print_cells(document)
    if document["sweep"]:
        print("\nThe threshold for PRECISE\n")
        print_table(
            ("model version", "mode", "threshold", "PRECISE rate, 95 %", "wrong/judged PRECISE",
             "high-score-error rate, 95 %"),
            [_sweep_row(point) for point in document["sweep"]],
        )  # fmt: skip


def _level_row(stratum: Mapping[str, Any]) -> list[object]:
    was, becomes = stratum["was"], stratum["becomes"]
    return [
        stratum["model_version"],
        stratum["mode"],
        stratum["lookups"],
        becomes["unverifiable"],
        in_words(was["precise"]),
        in_words(becomes["precise"]),
        stratum["flips"],
    ]


def _move_row(move: Mapping[str, Any]) -> list[object]:
    first = move["examples"][0] if move["examples"] else None
    return [
        move["model_version"],
        move["mode"],
        move["was"],
        move["becomes"],
        move["lookups"],
        first["event_id"] if first else None,
    ]


_SHOWN_LEVELS = ("PRECISE", "HIGHLY_RELEVANT", "REFERENCE", "NONE", "unverifiable")
_ANSWERS = ("wrong", "partly", "right", "refused", "unjudged")


def _print_cells(document: Mapping[str, Any]) -> None:
    if not document["cells"]:
        return
    print("\nThe cells: levels against answers as they were, then -> under it\n")
    counted = {
        (c["model_version"], c["mode"], c["level"], c["answer"]): f"{c['was']} -> {c['becomes']}"
        for c in document["cells"]
    }
    lines: list[list[object]] = []
    for stratum in document["strata"]:
        key = stratum["model_version"], stratum["mode"]
        for level in _SHOWN_LEVELS:
            values = [counted.get((*key, level, answer)) for answer in _ANSWERS]
            if any(values):
                lines.append([*key, level, *values])
    print_table(("model version", "mode", "level", *_ANSWERS), lines)
    print()
    print_table(
        ("model version", "mode", "", "high-score-error rate, 95 %", "low-score-refusal rate, 95 %",
         "errors / refusals"),
        [
            _headline_row(stratum, side, name)
            for stratum in document["strata"]
            for side, name in (("was", "then"), ("becomes", "under it"))
        ],
    )  # fmt: skip


def _headline_row(stratum: Mapping[str, Any], side: str, name: str) -> list[object]:
    figures = stratum[side]
    ratio = figures["ratio"]
    return [
        stratum["model_version"],
        stratum["mode"],
        name,
        in_words(figures["high_score_error_rate"], counts=True),
        in_words(figures["low_score_refusal_rate"], counts=True),
        number(ratio, ".2f"),
    ]


def _sweep_row(point: Mapping[str, Any]) -> list[object]:
    errors = point["high_score_error_rate"]
    return [
        point["model_version"],
        point["mode"],
        point["highly_relevant_threshold"],
        in_words(point["precise"]),
        f"{errors['count']}/{errors['n']}",
        in_words(errors),
    ]


def in_words(figure: Mapping[str, Any], *, counts: bool = False) -> str:
    """A rate with its interval.

    >>> in_words(rate(8, 10))
    '0.80 (0.49-0.94)'
    >>> in_words(rate(0, 0), counts=True)
    'no value (0/0)'
    """
    value = with_interval(figure["rate"], (figure["low"], figure["high"]))
    return f"{value} ({figure['count']}/{figure['n']})" if counts else value
