"""The board that answers: has a rate moved, since when, and why?"""

from lookup_audit.dashboards.boards.common import (
    ANNOTATIONS,
    EVENT,
    MODEL_AND_MODE,
    STRATUM_VARIABLES,
    rate_columns,
)
from lookup_audit.dashboards.filters import interval_columns, rate, stratum
from lookup_audit.dashboards.model import Board, Panel, number, share, text, time

_KEYS = (text("tenant"), text("service"), *MODEL_AND_MODE)
_NO_MODEL = ("model_version",)

_RATE = Panel(
    id=1,
    title="PRECISE rate against its reference",
    kind="timeseries",
    shows="Share of PRECISE among all lookups of each stratum, with the rate that the watcher "
    "expects of it and the band it ignores (reference +- ignored points or the reference's own "
    "95 % error, whichever is wider).",
    misread="The band is of the stratum's level and not of one bucket: single points of a quiet "
    "stratum leave it by chance. A stratum that is not watched yet has no band.",
    do="A line that stays outside raises an alarm: read its cause split below before anything.",
    sql="SELECT r.time AS time, r.tenant AS tenant, r.service AS service,\n"
    "  r.model_version AS model_version, r.mode AS mode, r.precise / r.n AS rate,\n"
    "  s.reference AS reference,\n"
    "  if(s.reference IS NULL, NULL, greatest(0., s.reference - s.band)) AS band_low,\n"
    "  if(s.reference IS NULL, NULL, least(1., s.reference + s.band)) AS band_high\n"
    "FROM (\n"
    "  SELECT $__timeInterval(minute) AS time, tenant, service, model_version, mode,\n"
    "    sum(p.precise) AS precise, sum(p.n) AS n\n"
    "  FROM audit.precise_rate AS p\n"
    f"  WHERE $__timeFilter(minute)\n    AND {stratum()}\n"
    "  GROUP BY time, tenant, service, model_version, mode\n) AS r\n"
    "LEFT JOIN (\n"
    "  SELECT tenant, service, model_version, mode, reference_rate AS reference,\n"
    "    greatest(ignore_points / 100, 1.96 * ifNull(reference_error, 0)) AS band\n"
    "  FROM audit.drift_strata\n"
    "  WHERE metric = 'precise_rate' AND quality_basis = '*' AND reference_rate IS NOT NULL\n"
    ") AS s ON s.tenant = r.tenant AND s.service = r.service\n"
    "  AND s.model_version = r.model_version AND s.mode = r.mode\n"
    "ORDER BY time, tenant, service, model_version, mode",
    columns=(
        time(),
        *_KEYS,
        share("rate"),
        share("reference"),
        share("band_low", "band from"),
        share("band_high", "band to"),
    ),
    unit="percentunit",
    minimum=0,
    maximum=1,
    width=24,
    height=9,
)

_ALARMS = Panel(
    id=2,
    title="Alarms",
    kind="table",
    shows="Every alarm whose change overlaps the range: what moved, from where to where, the "
    "change in points with its 95 % interval, and what became of it.",
    misread="Since is an estimate of when the change began; detected is when there was enough "
    "evidence. All rates of all strata share one budget of false alarms.",
    do="lookup-audit drift shows the cause split; lookup-audit drift accept says it was meant.",
    sql="SELECT started_at, detected_at, state, metric, tenant, service, model_version, mode,\n"
    "  quality_basis, reference_rate, observed_rate, change_points, change_low, change_high,\n"
    "  calls, accepted_by, summary\n"
    "FROM audit.drift_alarms\n"
    "WHERE started_at <= $__toTime AND (closed_at IS NULL OR closed_at >= $__fromTime)\n"
    f"  AND {stratum(rolled_up=True)}\n"
    "ORDER BY detected_at DESC, summary\nLIMIT 100",
    columns=(
        time("started_at", "since"),
        time("detected_at", "detected"),
        text("state"),
        text("metric"),
        *_KEYS,
        text("quality_basis", "basis"),
        share("reference_rate", "reference"),
        share("observed_rate", "observed"),
        number("change_points", "points"),
        number("change_low", "95 % from"),
        number("change_high", "95 % to"),
        number("calls"),
        text("accepted_by", "accepted by"),
        text("summary"),
    ),
    no_value="no alarm in this range",
    width=24,
)

_WATCHED = Panel(
    id=3,
    title="Watched rates",
    kind="table",
    shows="State of every watched rate: whether it has a reference yet, the reference, the change "
    "that is ignored, and the evidence against it (an alarm is raised at 1).",
    misread="Not watching yet is no all-clear: the stratum has not had its reference calls.",
    do="A stratum that never leaves the warm-up has too few lookups; read its trend by week.",
    sql="SELECT metric, tenant, service, model_version, mode, quality_basis, status,\n"
    "  reference_calls, calls_needed, reference_rate, ignore_points, evidence, last_call\n"
    "FROM audit.drift_strata\n"
    f"WHERE {stratum(rolled_up=True)}\n"
    "ORDER BY evidence DESC, metric, tenant, service, model_version, mode, quality_basis\n"
    "LIMIT 200",
    columns=(
        text("metric"),
        *_KEYS,
        text("quality_basis", "basis"),
        text("status"),
        number("reference_calls", "reference calls"),
        number("calls_needed", "calls needed"),
        share("reference_rate", "reference"),
        number("ignore_points", "ignored points"),
        number("evidence"),
        time("last_call", "last call"),
    ),
    no_value="the watcher has seen nothing; does lookup-audit watch run?",
    width=24,
)

_STRATA = "model_version, quality_basis, ruleset_id, category_filter"
_SPLIT = Panel(
    id=4,
    title="Why the PRECISE rate moved: mix or within",
    kind="table",
    shows="The change of the PRECISE rate from the stretch of equal length before the range to the "
    "range, split exactly: mix is what the shares of strata (model version, basis, ruleset, "
    "category) explain, within is the change inside strata. before + mix + within = after.",
    misread="A stratum that is only in one stretch counts as mix. A split of a small change is "
    "noise: see the counts.",
    do="Mix: who sends other questions, or which rollout began? Within: look at documents and "
    "index. lookup-audit drift gives the split of an alarm into four parts with intervals.",
    sql="SELECT tenant, service, mode, n_before, n_after,\n"
    "  p_before / nullIf(n_before, 0) AS before, p_after / nullIf(n_after, 0) AS after,\n"
    "  after - before AS change, change - within AS mix,\n"
    "  if(n_before > 0 AND n_after > 0, inside, NULL) AS within\n"
    "FROM (\n"
    "  SELECT tenant, service, mode, sum(nb) AS n_before, sum(na) AS n_after,\n"
    "    sum(pb) AS p_before, sum(pa) AS p_after,\n"
    "    sum(if(nb > 0 AND na > 0, (pa / na - pb / nb) * (nb / tb + na / ta) / 2, 0)) AS inside\n"
    "  FROM (\n"
    "    SELECT *, sum(nb) OVER w AS tb, sum(na) OVER w AS ta\n"
    "    FROM (\n"
    f"      SELECT tenant, service, mode, {_STRATA},\n"
    "        countIf(occurred_at < $__fromTime) AS nb, countIf(occurred_at >= $__fromTime) AS na,\n"
    "        countIf(occurred_at < $__fromTime AND reported_level = 'PRECISE') AS pb,\n"
    "        countIf(occurred_at >= $__fromTime AND reported_level = 'PRECISE') AS pa\n"
    "      FROM audit.lookups\n"
    "      WHERE occurred_at >= $__fromTime - ($__toTime - $__fromTime)\n"
    "        AND occurred_at <= $__toTime\n"
    f"        AND {stratum()}\n"
    f"      GROUP BY tenant, service, mode, {_STRATA}\n"
    "    )\n"
    "    WINDOW w AS (PARTITION BY tenant, service, mode)\n"
    "  )\n  GROUP BY tenant, service, mode\n)\n"
    "ORDER BY tenant, service, mode",
    columns=(
        text("tenant"),
        text("service"),
        text("mode"),
        number("n_before", "lookups before"),
        number("n_after", "lookups after"),
        share("before"),
        share("after"),
        share("change"),
        share("mix"),
        share("within"),
    ),
    width=24,
    height=6,
)

_CHANGES = Panel(
    id=5,
    title="Before and after each change",
    kind="table",
    shows="PRECISE rate in the 24 hours before and after something else began to serve a stratum: "
    "a ruleset, or a version of the model, index, reranker or chunker.",
    misread="After a change of the model version the levels of the two versions are on rulers of "
    "their own; a higher rate is no better model. The interval is of the rate after.",
    do="Compare judged answers of both (lookup-audit compare), not their PRECISE rates.",
    sql="SELECT at, tenant, service, mode, what, before, after, event_id, n_before,\n"
    f"  {rate('precise_before', 'n_before')} AS rate_before, n_after,\n"
    f"  {interval_columns('precise_after', 'n_after', 'rate_after')}\n"
    "FROM (\n"
    "  SELECT c.at AS at, c.tenant AS tenant, c.service AS service, c.mode AS mode,\n"
    "    c.what AS what, c.before AS before, c.after AS after, c.event_id AS event_id,\n"
    "    sumIf(p.n, p.minute < c.at) AS n_before,\n"
    "    sumIf(p.precise, p.minute < c.at) AS precise_before,\n"
    "    sumIf(p.n, p.minute >= c.at) AS n_after,\n"
    "    sumIf(p.precise, p.minute >= c.at) AS precise_after\n"
    "  FROM (\n"
    "    SELECT * FROM audit.change_points\n"
    "    WHERE $__timeFilter(at)\n"
    f"      AND {stratum(without=_NO_MODEL)}\n"
    "  ) AS c\n"
    "  INNER JOIN (\n"
    "    SELECT tenant, service, mode, minute, sum(s.n) AS n, sum(s.precise) AS precise\n"
    "    FROM audit.precise_rate AS s\n"
    "    WHERE minute >= $__fromTime - toIntervalDay(1)\n"
    "      AND minute <= $__toTime + toIntervalDay(1)\n"
    "    GROUP BY tenant, service, mode, minute\n"
    "  ) AS p ON p.tenant = c.tenant AND p.service = c.service AND p.mode = c.mode\n"
    "  WHERE p.minute BETWEEN c.at - toIntervalDay(1) AND c.at + toIntervalDay(1)\n"
    "  GROUP BY at, tenant, service, mode, what, before, after, event_id\n"
    ")\nORDER BY at DESC, tenant, service, mode, what\nLIMIT 100",
    columns=(
        time("at", "when"),
        text("tenant"),
        text("service"),
        text("mode"),
        text("what"),
        text("before", "from"),
        text("after", "to"),
        EVENT,
        number("n_before", "lookups before"),
        share("rate_before", "PRECISE before"),
        number("n_after", "lookups after"),
        *rate_columns("rate_after", "PRECISE after"),
    ),
    no_value="no change in this range",
    width=24,
    ignores=_NO_MODEL,
)

_FALLBACK = Panel(
    id=6,
    title="Rank-fallback share",
    kind="timeseries",
    shows="Hybrid lookups whose quality is taken from the rank, for want of a dense neighbour, of "
    "all lookups of the model version and mode.",
    misread="Rank 1 gives quality 1.0 whatever the passage says: a rising share lifts the PRECISE "
    "rate with no gain in quality.",
    do="Look for a dense route with fewer hits or with timeouts.",
    sql="SELECT $__timeInterval(minute) AS time, model_version, mode,\n"
    "  sum(rank_fallback) / sum(p.n) AS share\n"
    "FROM audit.precise_rate AS p\n"
    f"WHERE $__timeFilter(minute) AND mode = 'hybrid'\n  AND {stratum()}\n"
    "GROUP BY time, model_version, mode\nORDER BY time, model_version, mode",
    columns=(time(), *MODEL_AND_MODE, share("share")),
    unit="percentunit",
    minimum=0,
    maximum=1,
)

_QUALITY = Panel(
    id=7,
    title="Quality of the best candidate",
    kind="timeseries",
    shows="Median, 10 % and 90 % points of the recomputed quality behind the level, by mode, model "
    "version and basis. Rank fallback is left out: its quality is a rank.",
    misread="Two model versions' qualities are not comparable: each has a ruler of its own.",
    do="A shift of all three points at a model or index change is the change; a falling 10 % "
    "point alone is a part of the questions that lost its documents.",
    sql="SELECT $__timeInterval(occurred_at) AS time, model_version, mode, quality_basis,\n"
    "  quantile(0.1)(quality_score) AS p10, quantile(0.5)(quality_score) AS median,\n"
    "  quantile(0.9)(quality_score) AS p90\n"
    "FROM audit.lookups\n"
    "WHERE $__timeFilter(occurred_at) AND quality_basis NOT IN ('', 'hybrid_rank')\n"
    f"  AND quality_score IS NOT NULL\n  AND {stratum()}\n"
    "GROUP BY time, model_version, mode, quality_basis\n"
    "ORDER BY time, model_version, mode, quality_basis",
    columns=(
        time(),
        *MODEL_AND_MODE,
        text("quality_basis"),
        number("p10", "10 %"),
        number("median"),
        number("p90", "90 %"),
    ),
    minimum=0,
    maximum=1,
)

_MIX = Panel(
    id=8,
    title="What lookups are made of",
    kind="table",
    shows="Lookups of the range by basis and category filter, each as a share of its mode and "
    "model version, with the PRECISE rate of the part.",
    misread="Parts with few lookups have rates that mean little; see the interval.",
    do="Compare with an earlier range: a part that grew is the mix in the split above.",
    sql="SELECT model_version, mode, quality_basis,\n"
    "  if(category_filter = '', 'no filter', category_filter) AS category, count() AS lookups,\n"
    "  countIf(reported_level = 'PRECISE') AS precise,\n"
    "  count() / sum(count()) OVER (PARTITION BY model_version, mode) AS share,\n"
    f"  {interval_columns('precise', 'lookups', 'rate')}\n"
    "FROM audit.lookups\n"
    f"WHERE $__timeFilter(occurred_at)\n  AND {stratum()}\n"
    "GROUP BY model_version, mode, quality_basis, category\n"
    "ORDER BY model_version, mode, lookups DESC, quality_basis, category\nLIMIT 200",
    columns=(
        *MODEL_AND_MODE,
        text("quality_basis", "basis"),
        text("category"),
        number("lookups"),
        number("precise", "PRECISE"),
        share("share"),
        *rate_columns("rate", "PRECISE rate"),
    ),
)

_LATE = Panel(
    id=9,
    title="Late lookups",
    kind="timeseries",
    shows="Lookups that came more than 24 hours after they happened, by when they happened. They "
    "are stored, counted everywhere else, and kept out of closed drift windows.",
    misread="A rate here and in the watcher can differ by just these.",
    do="Find their source in the runbook for late events.",
    sql="SELECT $__timeInterval(occurred_at) AS time, model_version, mode, countIf(late) AS late\n"
    "FROM audit.lookups\n"
    f"WHERE $__timeFilter(occurred_at)\n  AND {stratum()}\n"
    "GROUP BY time, model_version, mode\nORDER BY time, model_version, mode",
    columns=(time(), *MODEL_AND_MODE, number("late")),
    minimum=0,
)

BOARD = Board(
    uid="la-drift",
    title="PRECISE drift",
    about="PRECISE rate against its reference, alarms, and what the change is made of.",
    panels=(_RATE, _ALARMS, _WATCHED, _SPLIT, _CHANGES, _FALLBACK, _QUALITY, _MIX, _LATE),
    variables=STRATUM_VARIABLES,
    annotations=ANNOTATIONS,
)
