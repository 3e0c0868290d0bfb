"""The board that answers: is quality inside what we promised?"""

from lookup_audit.dashboards.boards.common import (
    ANNOTATIONS,
    BAD_COUNT,
    BAD_SHARE,
    EVENT,
    MODEL_AND_MODE,
    STRATUM_VARIABLES,
    rate_columns,
)
from lookup_audit.dashboards.boards.headline import HEADLINE_SQL
from lookup_audit.dashboards.filters import days, interval_columns, rate, stratum
from lookup_audit.dashboards.model import Board, Panel, number, share, text, time

_NO_SERVICE = ("service",)

_HEADLINE = Panel(
    id=1,
    title="High-score errors against low-score refusals",
    kind="table",
    shows="Per model version and mode over the days of the range: answers judged wrong although "
    "the lookup was PRECISE, and refusals of lookups with level NONE, each as a share of the "
    "sampled lookups, and the one for each of the other (ratio), with 95 % intervals.",
    misread="The ratio rises also when refusals fall. Read both shares and their counts; a ratio "
    "without refusals has no value. Modes are on different rulers and are never summed.",
    do="If errors rose, look at document age and filters before thresholds (runbook: high-score "
    "errors). If refusals rose, look at thresholds and missing links first.",
    sql=HEADLINE_SQL,
    columns=(
        *MODEL_AND_MODE,
        number("sampled"),
        number("with_outcome", "with an outcome"),
        number("high_score_errors", "high-score errors"),
        number("judged_high", "judged PRECISE"),
        number("low_score_refusals", "low-score refusals"),
        *rate_columns("error_share", "error share"),
        *rate_columns("refusal_share", "refusal share"),
        number("ratio"),
        number("ratio_low", "95 % from"),
        number("ratio_high", "95 % to"),
    ),
    width=24,
    height=7,
    ignores=_NO_SERVICE,
)

_RATIO = Panel(
    id=2,
    title="Ratio by day",
    kind="timeseries",
    shows="High-score errors for each low-score refusal, per day, tenant, model version and mode.",
    misread="A day with few judgements jumps: read its interval in the table above before its "
    "line. A gap is a day without low-score refusals.",
    do="Compare with the changes marked on the time axis; then open PRECISE drift.",
    sql="SELECT toDateTime(day, 'UTC') AS time, tenant, model_version, mode, ratio\n"
    "FROM audit.ratio_daily\n"
    f"WHERE {days()} AND ratio IS NOT NULL\n  AND {stratum(without=_NO_SERVICE)}\n"
    "ORDER BY time, tenant, model_version, mode",
    columns=(time(), text("tenant"), *MODEL_AND_MODE, number("ratio")),
    minimum=0,
    ignores=_NO_SERVICE,
)

_CELLS = Panel(
    id=3,
    title="The cells: level against what became of the answer",
    kind="table",
    shows="Lookups with an outcome by reported level: judged wrong, partly and right, and refused. "
    "PRECISE and wrong is a high-score error; NONE and refused a low-score refusal; PRECISE and "
    "refused an over-refusal; NONE and right a lucky answer.",
    misread="Counts are of the sample and not of the traffic; only the rates are re-weighted. "
    "REFERENCE has a row of its own and belongs to neither end.",
    do="Open the latest high-score errors below, one by one.",
    sql="SELECT model_version, mode, value AS level, sum(c.with_outcome) AS with_outcome,\n"
    "  sum(c.wrong) AS wrong, sum(c.partly) AS partly, sum(c.right) AS right,\n"
    "  sum(c.refused) AS refused,\n"
    f"  {rate('sum(c.error)', 'sum(c.judged_weight)')} AS error_rate,\n"
    f"  {rate('sum(c.refusal)', 'sum(c.any)')} AS refusal_rate\n"
    "FROM audit.cells_daily AS c\n"
    f"WHERE by = 'level' AND {days()}\n  AND {stratum(without=_NO_SERVICE)}\n"
    "GROUP BY model_version, mode, level\n"
    "ORDER BY model_version, mode, "
    "indexOf(['PRECISE', 'HIGHLY_RELEVANT', 'REFERENCE', 'NONE'], level)",
    columns=(
        *MODEL_AND_MODE,
        text("level"),
        number("with_outcome", "with an outcome"),
        number("wrong"),
        number("partly"),
        number("right"),
        number("refused"),
        share("error_rate", "wrong of judged"),
        share("refusal_rate", "refused of all"),
    ),
    ignores=_NO_SERVICE,
)

_LEVELS = Panel(
    id=4,
    title="Levels over time",
    kind="timeseries",
    shows="Share of each reported level among all lookups of the model version and mode, those "
    "without evidence too.",
    misread="A share over a handful of lookups means nothing: see the number of lookups beside it.",
    do="A jump at a marked change is explained by it or not: open PRECISE drift.",
    sql="SELECT time, model_version, mode, level, n / total AS share\nFROM (\n"
    "  SELECT $__timeInterval(minute) AS time, model_version, mode,\n"
    "    sum(p.n) AS total,\n"
    "    arrayJoin([('PRECISE', sum(precise)), ('HIGHLY_RELEVANT', sum(highly_relevant)),\n"
    "      ('REFERENCE', sum(reference)), ('NONE', sum(none))]) AS pair,\n"
    "    pair.1 AS level, pair.2 AS n\n"
    "  FROM audit.precise_rate AS p\n"
    f"  WHERE $__timeFilter(minute)\n    AND {stratum()}\n"
    "  GROUP BY time, model_version, mode\n)\n"
    "WHERE NOT (level = 'HIGHLY_RELEVANT' AND n = 0)\n"
    "ORDER BY time, model_version, mode, level",
    columns=(time(), *MODEL_AND_MODE, text("level"), share("share")),
    unit="percentunit",
    minimum=0,
    maximum=1,
)

_VOLUME = Panel(
    id=5,
    title="Lookups",
    kind="timeseries",
    shows="Number of lookups per model version and mode: the denominator of every rate here.",
    misread="The last interval is not over yet and always looks low.",
    do="If it fell to nothing, open Pipeline: a producer may be silent.",
    sql="SELECT $__timeInterval(minute) AS time, model_version, mode, sum(p.n) AS lookups\n"
    "FROM audit.precise_rate AS p\n"
    f"WHERE $__timeFilter(minute)\n  AND {stratum()}\n"
    "GROUP BY time, model_version, mode\nORDER BY time, model_version, mode",
    columns=(time(), *MODEL_AND_MODE, number("lookups")),
    minimum=0,
    stacked=True,
)

_VERDICTS = Panel(
    id=6,
    title="Reported level against the recomputed one",
    kind="table",
    shows="How many lookups' level could be recomputed and agreed, failed, or could not be "
    "verified; the failing share is of those that could be, with Wilson's 95 % interval.",
    misread="A low failing share with many unverifiable lookups is no good news.",
    do="Any failure: open Recompute, then one of its lookups.",
    sql="SELECT model_version, mode, count() AS lookups, countIf(level_check = 'pass') AS passed,\n"
    "  countIf(level_check = 'fail') AS failed,\n"
    "  countIf(level_check = 'unverifiable') AS unverifiable,\n"
    f"  {interval_columns('failed', '(passed + failed)', 'failing')}\n"
    "FROM audit.lookups\n"
    f"WHERE $__timeFilter(occurred_at)\n  AND {stratum()}\n"
    "GROUP BY model_version, mode\nORDER BY model_version, mode",
    columns=(
        *MODEL_AND_MODE,
        number("lookups"),
        number("passed"),
        number("failed"),
        number("unverifiable"),
        *rate_columns("failing", "failing"),
    ),
    steps=BAD_SHARE,
)

_COVERAGE = Panel(
    id=7,
    title="Citation coverage",
    kind="timeseries",
    shows="Claims supported by a selected chunk with a link, of all claims that can be verified, "
    "per day. Answers over lookups of several modes are a line of their own, such as dense+hybrid.",
    misread="Covered means cited, and not that the source says what the claim says.",
    do="Open Refusals and citations for why claims are not covered.",
    sql="SELECT toDateTime(day, 'UTC') AS time, tenant, model_version, mode, coverage\n"
    "FROM audit.coverage_daily\n"
    f"WHERE {days()} AND coverage IS NOT NULL\n"
    f"  AND {stratum(without=_NO_SERVICE, joined=True)}\n"
    "ORDER BY time, tenant, model_version, mode",
    columns=(time(), text("tenant"), *MODEL_AND_MODE, share("coverage")),
    unit="percentunit",
    minimum=0,
    maximum=1,
    ignores=_NO_SERVICE,
)

_REFUSALS = Panel(
    id=8,
    title="Why answers were refused",
    kind="table",
    shows="Refused lookups by the reason the agent gave, per model version, mode and level.",
    misread="On PRECISE a refusal is an over-refusal; on NONE it is what should happen.",
    do="Many of insufficient_sources: look at missing source links. Open Refusals and citations.",
    sql="SELECT model_version, mode, level,\n"
    "  if(refusal_reason = '', 'none given', refusal_reason) AS reason, count() AS refused\n"
    "FROM audit.cells\n"
    f"WHERE action = 'refused' AND $__timeFilter(occurred_at)\n  AND {stratum()}\n"
    "GROUP BY model_version, mode, level, reason\n"
    "ORDER BY refused DESC, model_version, mode, level, reason\nLIMIT 100",
    columns=(*MODEL_AND_MODE, text("level"), text("reason"), number("refused")),
)

_ALARMS = Panel(
    id=9,
    title="Open drift alarms",
    kind="table",
    shows="Rates that moved away from their reference and have neither come back nor been "
    "accepted, newest first.",
    misread="No alarm does not mean that answers are right: a level can stay while documents age.",
    do="Run lookup-audit drift for the alarm's cause split; accept it if the change was meant.",
    sql="SELECT detected_at, metric, tenant, service, model_version, mode, reference_rate,\n"
    "  observed_rate, summary\n"
    "FROM audit.drift_alarms\n"
    f"WHERE state = 'open' AND detected_at <= $__toTime\n  AND {stratum(rolled_up=True)}\n"
    "ORDER BY detected_at DESC, summary\nLIMIT 50",
    columns=(
        time("detected_at", "detected"),
        text("metric"),
        text("tenant"),
        text("service"),
        *MODEL_AND_MODE,
        share("reference_rate", "reference"),
        share("observed_rate", "observed"),
        text("summary"),
    ),
    no_value="no open alarm",
    steps=BAD_COUNT,
)

_ERRORS = Panel(
    id=10,
    title="Latest high-score errors",
    kind="table",
    shows="The newest lookups that reported PRECISE and whose answer was judged wrong.",
    misread="These are those that somebody judged. They are not all there are.",
    do="Open one: compare its evidence with the answer, and look at the age of its documents.",
    sql="SELECT occurred_at, event_id, tenant, service, model_version, mode, quality_basis,\n"
    "  judged_by\nFROM audit.cells\n"
    f"WHERE cell = 'high_score_error' AND $__timeFilter(occurred_at)\n  AND {stratum()}\n"
    "ORDER BY occurred_at DESC, event_id\nLIMIT 50",
    columns=(
        time("occurred_at", "when"),
        EVENT,
        text("tenant"),
        text("service"),
        *MODEL_AND_MODE,
        text("quality_basis", "basis"),
        text("judged_by", "judged by"),
    ),
    no_value="none judged wrong in this range",
)

_HOW = Panel(
    id=11,
    title="How to read this",
    kind="text",
    shows="**PRECISE is a label of a call and no promise.** It says that the best candidate was "
    "near; people or judges say whether the answer was right. The two meet in the cells.",
    misread="Nothing on these boards adds dense and hybrid lookups: their levels are on different "
    "rulers. Where there is nothing to divide by there is *no value*, and not zero.",
    do="Start with the table on top. From any lookup id, open *One lookup*: what was reported, "
    "what the recorded numbers give, and by which sum.",
    width=12,
)

BOARD = Board(
    uid="la-overview",
    title="Overview",
    about="High-score errors against low-score refusals, levels, coverage and refusals.",
    panels=(
        _HEADLINE,
        _RATIO,
        _CELLS,
        _LEVELS,
        _VOLUME,
        _VERDICTS,
        _COVERAGE,
        _REFUSALS,
        _ALARMS,
        _ERRORS,
        _HOW,
    ),
    variables=STRATUM_VARIABLES,
    annotations=ANNOTATIONS,
)
