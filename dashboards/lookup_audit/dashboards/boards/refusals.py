"""The board that answers: what was refused, why, and do answers stand on what was found?"""

from lookup_audit.dashboards.boards.common import (
    ANNOTATIONS,
    EVENT,
    MODEL_AND_MODE,
    STRATUM_VARIABLES,
    rate_columns,
)
from lookup_audit.dashboards.filters import days, interval_columns, stratum
from lookup_audit.dashboards.model import Board, Panel, number, share, text, time

_NO_SERVICE = ("service",)
_CELLS = f"$__timeFilter(occurred_at)\n  AND {stratum()}\n"
_JOINED = stratum(without=_NO_SERVICE, joined=True)

_OVER_TIME = Panel(
    id=1,
    title="Refused lookups by reason",
    kind="timeseries",
    shows="Lookups whose outcome was a refusal, by the reason the agent gave.",
    misread="Counts, not a rate: they follow the traffic. The rate is in the table beside it.",
    do="A surge of one reason: runbook refusal surge.",
    sql="SELECT $__timeInterval(occurred_at) AS time, model_version, mode,\n"
    "  if(refusal_reason = '', 'none given', refusal_reason) AS reason, count() AS refused\n"
    f"FROM audit.cells\nWHERE action = 'refused' AND {_CELLS}"
    "GROUP BY time, model_version, mode, reason\nORDER BY time, model_version, mode, reason",
    columns=(time(), *MODEL_AND_MODE, text("reason"), number("refused")),
    stacked=True,
    minimum=0,
)

_BY_LEVEL = Panel(
    id=2,
    title="Refusal rate by level",
    kind="table",
    shows="Lookups refused, of those with an outcome, per reported level, with Wilson's interval.",
    misread="Unweighted: of a sampled day the headline on Overview weighs as the traffic.",
    do="Refused on PRECISE is an over-refusal: look at thresholds, budget and links.",
    sql="SELECT model_version, mode, level, count() AS outcomes,\n"
    "  countIf(action = 'refused') AS refused,\n"
    f"  {interval_columns('refused', 'outcomes', 'rate')}\n"
    f"FROM audit.cells\nWHERE {_CELLS}"
    "GROUP BY model_version, mode, level\n"
    "ORDER BY model_version, mode, "
    "indexOf(['PRECISE', 'HIGHLY_RELEVANT', 'REFERENCE', 'NONE'], level)",
    columns=(
        *MODEL_AND_MODE,
        text("level"),
        number("outcomes"),
        number("refused"),
        *rate_columns("rate", "refused"),
    ),
)

_NEAR = Panel(
    id=3,
    title="Near misses of the reference threshold",
    kind="timeseries",
    shows="Lookups with level NONE whose quality was within 0.02 below the reference threshold of "
    "the ruleset in force, of all lookups of the model version and mode.",
    misread="Near the threshold is where a small shift of scores moves many levels. It is not a "
    "reason to lower the threshold.",
    do="Replay history under another threshold first: lookup-audit replay --ruleset FILE.",
    sql="SELECT $__timeInterval(l.occurred_at) AS time, l.model_version AS model_version,\n"
    "  l.mode AS mode,\n"
    "  countIf(l.reported_level = 'NONE' AND l.quality_score < r.reference\n"
    "    AND l.quality_score >= r.reference - 0.02) / count() AS near\n"
    "FROM audit.lookups AS l\n"
    "LEFT JOIN (\n"
    "  SELECT ruleset_id, any(JSONExtractFloat(content, 'reference_threshold')) AS reference\n"
    "  FROM audit.rulesets GROUP BY ruleset_id\n"
    ") AS r ON r.ruleset_id = l.ruleset_id\n"
    f"WHERE $__timeFilter(l.occurred_at)\n  AND {stratum(prefix='l.')}\n"
    "GROUP BY time, model_version, mode\nORDER BY time, model_version, mode",
    columns=(time(), *MODEL_AND_MODE, share("near")),
    unit="percentunit",
    minimum=0,
)

_RECENT = Panel(
    id=4,
    title="Latest refusals",
    kind="table",
    shows="The newest refused lookups, with level and reason.",
    misread="One answer can rest on several lookups: each has a row.",
    do="Open one whose level is PRECISE first.",
    sql="SELECT occurred_at, event_id, tenant, service, model_version, mode, level,\n"
    "  if(refusal_reason = '', 'none given', refusal_reason) AS reason\n"
    f"FROM audit.cells\nWHERE action = 'refused' AND {_CELLS}"
    "ORDER BY occurred_at DESC, event_id\nLIMIT 100",
    columns=(
        time("occurred_at", "when"),
        EVENT,
        text("tenant"),
        text("service"),
        *MODEL_AND_MODE,
        text("level"),
        text("reason"),
    ),
    no_value="no refusal in this range",
)

_COVERAGE = Panel(
    id=5,
    title="Citation coverage by day",
    kind="table",
    shows="Answers, their claims, and how many are supported by a selected chunk with a link. "
    "Claims of answers whose lookups are not stored yet cannot be verified and are left out.",
    misread="Covered means cited, and not that the source says what the claim says.",
    do="See why claims are not covered, beside this.",
    sql="SELECT day, tenant, model_version, mode, answers, claims, supported, unverifiable,\n"
    f"  coverage\nFROM audit.coverage_daily\nWHERE {days()}\n  AND {_JOINED}\n"
    "ORDER BY day DESC, tenant, model_version, mode\nLIMIT 200",
    columns=(
        text("day"),
        text("tenant"),
        *MODEL_AND_MODE,
        number("answers"),
        number("claims"),
        number("supported"),
        number("unverifiable"),
        share("coverage"),
    ),
    ignores=_NO_SERVICE,
)

_REASONS = Panel(
    id=6,
    title="Why claims are not supported",
    kind="table",
    shows="Claims that are not supported by what is stored, by their nearest miss.",
    misread="lookup_missing is held against nobody: its lookup has not been stored.",
    do="no_link: the document lacks its source_url. unknown_chunk: the agent cites what it was "
    "never given.",
    sql="SELECT model_version, mode, reason, count() AS claims\n"
    f"FROM audit.claims\nWHERE NOT supported AND $__timeFilter(occurred_at)\n  AND {_JOINED}\n"
    "GROUP BY model_version, mode, reason\nORDER BY claims DESC, model_version, mode, reason",
    columns=(*MODEL_AND_MODE, text("reason"), number("claims")),
    no_value="every claim is supported",
    ignores=_NO_SERVICE,
)

_CONDUCT = Panel(
    id=7,
    title="Conduct of agents",
    kind="table",
    shows="How often an agent misread a level: repeated a lookup after PRECISE (wasted), concluded "
    "firmly on NONE (over-confident), cited what was never returned (fabricated), rested a claim "
    "on an unlinked chunk alone (unsupported). Each as found / occasions.",
    misread="Rates are of occasions and not of answers. No occasion, no value.",
    do="Open the latest findings below; fabricated citations first.",
    sql="SELECT model_version, mode, wasted, lookups_in_runs, confident, outcomes_on_none,\n"
    "  fabricated, unsupported, citing_claims,\n"
    "  wasted / nullIf(lookups_in_runs, 0) AS wasted_rate,\n"
    "  confident / nullIf(outcomes_on_none, 0) AS confident_rate,\n"
    "  fabricated / nullIf(citing_claims, 0) AS fabricated_rate,\n"
    "  unsupported / nullIf(citing_claims, 0) AS unsupported_rate\n"
    "FROM (\n"
    "  SELECT model_version, mode, sum(c.wasted_lookups) AS wasted,\n"
    "    sum(c.lookups_in_runs) AS lookups_in_runs, sum(c.over_confident) AS confident,\n"
    "    sum(c.outcomes_on_none) AS outcomes_on_none,\n"
    "    sum(c.fabricated_citations) AS fabricated,\n"
    "    sum(c.unsupported_claims) AS unsupported, sum(c.citing_claims) AS citing_claims\n"
    f"  FROM audit.conduct_daily AS c\n  WHERE {days()}\n    AND {_JOINED}\n"
    "  GROUP BY model_version, mode\n)\nORDER BY model_version, mode",
    columns=(
        *MODEL_AND_MODE,
        number("wasted"),
        number("lookups_in_runs", "lookups in runs"),
        number("confident", "over-confident"),
        number("outcomes_on_none", "outcomes on NONE"),
        number("fabricated"),
        number("unsupported"),
        number("citing_claims", "citing claims"),
        share("wasted_rate", "wasted"),
        share("confident_rate", "over-confident"),
        share("fabricated_rate", "fabricated"),
        share("unsupported_rate", "unsupported"),
    ),
    width=24,
    height=6,
    ignores=_NO_SERVICE,
)

_FINDINGS = Panel(
    id=8,
    title="Latest conduct findings",
    kind="table",
    shows="Each finding with the lookup and run to look at.",
    misread="A finding says what the records show, not what the agent intended.",
    do="Open the lookup; the run's other lookups are listed there.",
    sql="SELECT occurred_at, finding, event_id, tenant, run_id, model_version, mode, evidence\n"
    f"FROM audit.conduct_findings\nWHERE $__timeFilter(occurred_at)\n  AND {_JOINED}\n"
    "ORDER BY occurred_at DESC, finding, event_id, claim_number\nLIMIT 100",
    columns=(
        time("occurred_at", "when"),
        text("finding"),
        EVENT,
        text("tenant"),
        text("run_id", "run"),
        *MODEL_AND_MODE,
        text("evidence"),
    ),
    no_value="nothing found in this range",
    width=24,
    ignores=_NO_SERVICE,
)

_SELECTIONS = Panel(
    id=9,
    title="What was wrong with selected chunks",
    kind="table",
    shows="Selected chunks that are unknown, dropped, of layer low or unknown, or say the same as "
    "another one.",
    misread="A chunk can have several findings.",
    do="dropped_chunk and unknown_chunk are faults of the service; low_layer is one of selection.",
    sql="SELECT service, model_version, mode, arrayJoin(findings) AS finding, count() AS chunks\n"
    f"FROM audit.selections\nWHERE $__timeFilter(occurred_at)\n  AND {stratum()}\n"
    "GROUP BY service, model_version, mode, finding\n"
    "ORDER BY chunks DESC, service, model_version, mode, finding\nLIMIT 100",
    columns=(text("service"), *MODEL_AND_MODE, text("finding"), number("chunks")),
    no_value="nothing wrong with what was selected",
)

_AGE = Panel(
    id=10,
    title="What high-score errors stand on",
    kind="table",
    shows="High-score errors against sound answers: median age of the selected documents in days, "
    "and the shares of lookups with a category filter and with an unfiltered retry.",
    misread="Documents without a date are left out of the age.",
    do="Errors on older documents: fix freshness before touching a threshold.",
    sql="SELECT c.model_version AS model_version, c.mode AS mode, c.cell AS answers,\n"
    "  count() AS lookups, quantile(0.5)(d.age) AS age_days,\n"
    "  countIf(l.category_filter != '') / count() AS filtered,\n"
    "  countIf(l.unfiltered_retry) / count() AS retried\n"
    f"FROM (\n  SELECT * FROM audit.cells\n  WHERE {_CELLS}"
    "    AND cell IN ('high_score_error', 'sound')\n) AS c\n"
    "INNER JOIN (\n"
    "  SELECT tenant, event_id, category_filter, ifNull(unfiltered_retry, false)\n"
    "    AS unfiltered_retry\n"
    f"  FROM audit.lookups\n  WHERE {_CELLS}) AS l\n"
    "  ON l.tenant = c.tenant AND l.event_id = c.event_id\n"
    "LEFT JOIN (\n"
    "  SELECT tenant, event_id,\n"
    "    avg(dateDiff('second', document_updated_at, occurred_at) / 86400.) AS age\n"
    f"  FROM audit.candidates\n  WHERE selected AND {_CELLS}"
    "  GROUP BY tenant, event_id\n) AS d ON d.tenant = c.tenant AND d.event_id = c.event_id\n"
    "GROUP BY model_version, mode, answers\nORDER BY model_version, mode, answers",
    columns=(
        *MODEL_AND_MODE,
        text("answers"),
        number("lookups"),
        number("age_days", "median age, days"),
        share("filtered", "with a filter"),
        share("retried", "unfiltered retry"),
    ),
)

BOARD = Board(
    uid="la-refusals",
    title="Refusals and citations",
    about="What was refused and why, what answers stand on, and how agents read levels.",
    panels=(
        _OVER_TIME,
        _BY_LEVEL,
        _NEAR,
        _RECENT,
        _COVERAGE,
        _REASONS,
        _CONDUCT,
        _FINDINGS,
        _SELECTIONS,
        _AGE,
    ),
    variables=STRATUM_VARIABLES,
    annotations=ANNOTATIONS,
)
