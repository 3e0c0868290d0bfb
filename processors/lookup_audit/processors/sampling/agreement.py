"""How far two judges agree beyond chance: Cohen's kappa.

J. Cohen (1960), Educational and Psychological Measurement 20:37. The large-sample variance is that
of Fleiss, Cohen and Everitt (1969), Psychological Bulletin 72:323, eq. 13.
"""

import math
from collections import Counter
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from datetime import datetime

from lookup_audit.processors.reading import Reader, rows
from lookup_audit.processors.statistics.proportions import Z_95


@dataclass(frozen=True, slots=True)
class Agreement:
    """How two judges agree on the answers that both judged.

    Args:
        n: Answers both judged.
        agreed: Of these, with the same verdict.
        kappa: ``None`` where it is undefined: no answers, or both always gave one verdict.
        low: Lower end of the 95 % interval, ``None`` where the formula gives none: kappa is
            undefined, or its estimated variance is zero, as with full agreement.
        high: Upper end.
    """

    n: int
    agreed: int
    kappa: float | None
    low: float | None
    high: float | None


def cohen_kappa(cells: Mapping[tuple[Hashable, Hashable], int]) -> Agreement:
    """Cohen's kappa of paired verdicts with its asymptotic 95 % interval.

    ``cannot_tell`` is a verdict like the others here: two judges who cannot tell agree.

    Args:
        cells: How often each pair of verdicts was given.

    >>> cohen_kappa({("a", "a"): 20, ("a", "b"): 5, ("b", "a"): 10, ("b", "b"): 15}).kappa
    0.4
    """
    n = sum(cells.values())
    agreed = sum(count for (one, other), count in cells.items() if one == other)
    first: Counter[Hashable] = Counter()
    second: Counter[Hashable] = Counter()
    for (one, other), count in cells.items():
        first[one] += count
        second[other] += count
    chance = sum(first[verdict] * second[verdict] for verdict in first)
    if chance == n * n:
        return Agreement(n, agreed, None, None, None)
    expected = chance / (n * n)
    # (observed - expected) / (1 - expected), in whole numbers as long as it goes.
    kappa = (agreed * n - chance) / (n * n - chance)
    variance = -((kappa - expected * (1 - kappa)) ** 2)
    for (one, other), count in cells.items():
        if one == other:
            term = 1 - (first[one] + second[one]) / n * (1 - kappa)
        else:
            term = (second[one] + first[other]) / n * (1 - kappa)
        variance += count / n * term**2
    variance /= n * (1 - expected) ** 2
    if variance <= 1e-15:
        return Agreement(n, agreed, kappa, None, None)
    half = Z_95 * math.sqrt(variance)
    return Agreement(n, agreed, kappa, max(-1.0, kappa - half), min(1.0, kappa + half))


@dataclass(frozen=True, slots=True)
class JudgePair:
    """Two judges and how they agree on the answers of one mode.

    Args:
        one: ``source:id`` or ``source:id@version``.
        other: The same, after ``one`` in the alphabet.
        mode: Of the answers' lookups; ``several`` where an answer used more than one, ``""``
            where its lookups are not stored.
        agreement: On the answers that both judged.
    """

    one: str
    other: str
    mode: str
    agreement: Agreement


# Of several judgements of one answer by one judge the newest is that judge's.
_PAIRS = """
WITH
    judged AS (
        SELECT
            tenant, outcome_id,
            concat(source, ':', judge_id, if(judge_version = '', '', '@'), judge_version) AS judge,
            argMax(verdict, (occurred_at, judgement_id)) AS verdict
        FROM audit.judgements
        WHERE occurred_at >= toDateTime64({since:String}, 6, 'UTC')
        GROUP BY tenant, outcome_id, judge
    ),
    twice AS (SELECT outcome_id FROM judged GROUP BY tenant, outcome_id HAVING count() > 1),
    outcome AS (
        SELECT tenant, outcome_id, arrayJoin(lookup_event_ids) AS event_id
        FROM audit.outcomes
        WHERE outcome_id IN twice
    ),
    answer AS (
        SELECT
            o.tenant AS tenant, o.outcome_id AS outcome_id,
            if(uniqExact(l.mode) = 1, any(l.mode), 'several') AS mode
        FROM outcome AS o
        INNER JOIN (
            SELECT tenant, event_id, toString(mode) AS mode
            FROM audit.lookups
            WHERE event_id IN (SELECT event_id FROM outcome)
        ) AS l ON l.tenant = o.tenant AND l.event_id = o.event_id
        GROUP BY tenant, outcome_id
    )
SELECT
    a.judge AS one, b.judge AS other, m.mode AS mode, a.verdict AS first, b.verdict AS second,
    count() AS n
FROM judged AS a
INNER JOIN judged AS b ON b.tenant = a.tenant AND b.outcome_id = a.outcome_id
LEFT JOIN answer AS m ON m.tenant = a.tenant AND m.outcome_id = a.outcome_id
WHERE a.judge < b.judge
GROUP BY one, other, mode, first, second
ORDER BY one, other, mode
"""


def judge_pairs(reader: Reader, *, since: datetime) -> list[JudgePair]:
    """Each pair of judges that judged the same answers, by mode.

    Args:
        reader: Of the store.
        since: Older judgements are left out.
    """
    cells: dict[tuple[str, str, str], dict[tuple[Hashable, Hashable], int]] = {}
    text = f"{since:%Y-%m-%d %H:%M:%S}"
    for row in rows(reader, _PAIRS, {"since": text}):
        pair = cells.setdefault((row["one"], row["other"], row["mode"]), {})
        pair[row["first"], row["second"]] = row["n"]
    return [JudgePair(*key, cohen_kappa(found)) for key, found in cells.items()]
