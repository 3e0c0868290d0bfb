"""The board that answers: does what the service reports follow from what it recorded?"""

from lookup_audit.dashboards.boards.common import (
    ANNOTATIONS,
    BAD_SHARE,
    EVENT,
    MODEL_AND_MODE,
    STRATUM_VARIABLES,
    rate_columns,
)
from lookup_audit.dashboards.filters import interval_columns, rate, stratum
from lookup_audit.dashboards.model import Board, Panel, number, share, text, time

_WHERE = f"WHERE $__timeFilter(occurred_at)\n  AND {stratum()}\n"

_RATE = Panel(
    id=1,
    title="Level mismatch rate",
    kind="timeseries",
    shows="Lookups whose reported level differs from the recomputed one, of those that could be "
    "recomputed, per model version and mode.",
    misread="Without the verifiable share beside it this rate can look good for want of data.",
    do="Find the class below; stale_threshold and rule have different owners.",
    sql="SELECT $__timeInterval(occurred_at) AS time, model_version, mode,\n"
    "  countIf(level_check = 'fail') / countIf(level_check != 'unverifiable') AS mismatches\n"
    f"FROM audit.lookups\n{_WHERE}"
    "GROUP BY time, model_version, mode\nHAVING countIf(level_check != 'unverifiable') > 0\n"
    "ORDER BY time, model_version, mode",
    columns=(time(), *MODEL_AND_MODE, share("mismatches")),
    unit="percentunit",
    steps=BAD_SHARE,
    minimum=0,
)

_VERIFIABLE = Panel(
    id=2,
    title="Verifiable share",
    kind="timeseries",
    shows="Lookups whose level could be recomputed, of all.",
    misread="100 % does not mean that levels are right, only that they can be checked.",
    do="A fall means that a producer stopped sending scores, ranks or thresholds: see the reasons.",
    sql="SELECT $__timeInterval(occurred_at) AS time, model_version, mode,\n"
    "  countIf(level_check != 'unverifiable') / count() AS verifiable\n"
    f"FROM audit.lookups\n{_WHERE}"
    "GROUP BY time, model_version, mode\nORDER BY time, model_version, mode",
    columns=(time(), *MODEL_AND_MODE, share("verifiable")),
    unit="percentunit",
    minimum=0,
    maximum=1,
)

_CLASSES = Panel(
    id=3,
    title="Classes of level mismatch",
    kind="table",
    shows="Failed levels by class: rounding (within 1e-6 of the threshold), stale_threshold (fits "
    "another known ruleset), wrong_top (fits another candidate than the best rank), legacy_rule, "
    "level_without_evidence, rule (none of these); as a share of the verifiable.",
    misread="One lookup has one class: the first that explains it.",
    do="stale_threshold: a part of the service runs old numbers. wrong_top: ordering after "
    "deduplication. rule: read a lookup's arithmetic.",
    sql="SELECT model_version, mode, level_mismatch AS class, count() AS mismatches,\n"
    f"  {rate('mismatches', 'any(verifiable)')} AS share\n"
    "FROM (\n"
    "  SELECT model_version, mode, level_mismatch, level_check,\n"
    "    countIf(level_check != 'unverifiable') OVER (PARTITION BY model_version, mode)\n"
    "      AS verifiable\n"
    f"  FROM audit.lookups\n  {_WHERE})\n"
    "WHERE level_check = 'fail'\n"
    "GROUP BY model_version, mode, class\nORDER BY mismatches DESC, model_version, mode, class",
    columns=(*MODEL_AND_MODE, text("class"), number("mismatches"), share("share")),
    no_value="no mismatch in this range",
)

_REASONS = Panel(
    id=4,
    title="Why lookups are unverifiable",
    kind="table",
    shows="What is missing for a check, per mode and service; a lookup can have several reasons.",
    misread="These sum to more than the unverifiable lookups.",
    do="Ask the service's owners to send the named field.",
    sql="SELECT service, model_version, mode,\n"
    "  arrayJoin(arrayDistinct(arrayMap(r -> splitByChar('@', r)[1], unverifiable))) AS reason,\n"
    f"  count() AS lookups\nFROM audit.lookups\n{_WHERE}"
    "GROUP BY service, model_version, mode, reason\n"
    "ORDER BY lookups DESC, service, model_version, mode, reason\nLIMIT 100",
    columns=(text("service"), *MODEL_AND_MODE, text("reason"), number("lookups")),
    no_value="everything could be verified",
)

_CHECKS = Panel(
    id=5,
    title="Failed checks",
    kind="table",
    shows="Lookups that fail each of the eight checks, as a share of all lookups of the model "
    "version and mode.",
    misread="A lookup can fail several. Checks that could not be made are not failures.",
    do="ruleset: compare thresholds with the registry. projection: what the agent saw disagrees "
    "with the event; treat a leak of internals as an incident.",
    sql="SELECT model_version, mode, check, count() AS failed, failed / any(total) AS share\n"
    "FROM (\n"
    "  SELECT model_version, mode, failed_checks,\n"
    "    count() OVER (PARTITION BY model_version, mode) AS total\n"
    f"  FROM audit.lookups\n  {_WHERE})\n"
    "ARRAY JOIN failed_checks AS check\n"
    "GROUP BY model_version, mode, check\nORDER BY failed DESC, model_version, mode, check",
    columns=(*MODEL_AND_MODE, text("check"), number("failed"), share("share")),
    no_value="no failed check in this range",
)

_SERVICES = Panel(
    id=6,
    title="Worst services",
    kind="table",
    shows="Services by their level mismatches: the rate with Wilson's 95 % interval.",
    misread="A service with three lookups can be on top: the order is by the interval's lower end.",
    do="Start with the first; its latest mismatches are below.",
    sql="SELECT tenant, service, service_version, model_version, mode,\n"
    "  countIf(level_check != 'unverifiable') AS verifiable,\n"
    "  countIf(level_check = 'fail') AS mismatches,\n"
    f"  {interval_columns('mismatches', 'verifiable', 'rate')}\n"
    f"FROM audit.lookups\n{_WHERE}"
    "GROUP BY tenant, service, service_version, model_version, mode\nHAVING mismatches > 0\n"
    "ORDER BY rate_low DESC, tenant, service, service_version, model_version, mode\nLIMIT 50",
    columns=(
        text("tenant"),
        text("service"),
        text("service_version", "version"),
        *MODEL_AND_MODE,
        number("verifiable"),
        number("mismatches"),
        *rate_columns("rate", "mismatch rate"),
    ),
    no_value="no service with a mismatch",
    width=24,
    height=7,
)

_LATEST = Panel(
    id=7,
    title="Latest mismatches",
    kind="table",
    shows="The newest lookups with a failed check: reported and recomputed level and quality.",
    misread="Level NONE is a value: the service said that nothing is near enough.",
    do="Open one: its arithmetic is written out.",
    sql="SELECT occurred_at, event_id, tenant, service, model_version, mode, reported_level,\n"
    "  ifNull(recomputed_level, 'unverifiable') AS recomputed, level_mismatch,\n"
    "  reported_quality, quality_score, arrayStringConcat(failed_checks, ', ') AS checks\n"
    f"FROM audit.lookups\n{_WHERE}  AND notEmpty(failed_checks)\n"
    "ORDER BY occurred_at DESC, event_id\nLIMIT 100",
    columns=(
        time("occurred_at", "when"),
        EVENT,
        text("tenant"),
        text("service"),
        *MODEL_AND_MODE,
        text("reported_level", "reported"),
        text("recomputed"),
        text("level_mismatch", "class"),
        number("reported_quality", "reported quality"),
        number("quality_score", "recomputed quality"),
        text("checks", "failed checks"),
    ),
    no_value="no failed check in this range",
    width=24,
)

_DISTANCE = Panel(
    id=8,
    title="Quality: reported against recomputed",
    kind="table",
    shows="How far the reported quality of the best candidate is from the recomputed one, in "
    "classes of ten.",
    misread="Up to 1e-6 is arithmetic, not a fault.",
    do="A constant difference is a formula or a metric (squared L2, cosine); a scattered one is "
    "quality taken from another candidate.",
    sql="SELECT model_version, mode,\n"
    "  multiIf(d <= 1e-6, 'equal (1e-6)', d <= 1e-3, 'up to 0.001', d <= 1e-2, 'up to 0.01',\n"
    "    d <= 1e-1, 'up to 0.1', 'more than 0.1') AS difference,\n"
    "  count() AS lookups, max(d) AS largest\n"
    "FROM (\n"
    "  SELECT model_version, mode, abs(reported_quality - quality_score) AS d\n"
    f"  FROM audit.lookups\n  {_WHERE}"
    "    AND reported_quality IS NOT NULL AND quality_score IS NOT NULL\n)\n"
    "GROUP BY model_version, mode, difference\nORDER BY model_version, mode, largest",
    columns=(*MODEL_AND_MODE, text("difference"), number("lookups"), number("largest")),
)

_RULESETS = Panel(
    id=9,
    title="Rulesets in force and as stated",
    kind="table",
    shows="The ruleset that the registry says is in force, and the one the service states of "
    "itself, with their thresholds' number of lookups.",
    misread="A service that states none is judged by the registry's alone.",
    do="Two different ids: the service runs with numbers that nobody registered.",
    sql="SELECT service, model_version, mode, ruleset_id AS in_force,\n"
    "  if(stated_ruleset_id = '', 'not stated', stated_ruleset_id) AS stated,\n"
    "  count() AS lookups, countIf(has(failed_checks, 'ruleset')) AS failed\n"
    f"FROM audit.lookups\n{_WHERE}"
    "GROUP BY service, model_version, mode, in_force, stated\n"
    "ORDER BY lookups DESC, service, model_version, mode, in_force, stated\nLIMIT 100",
    columns=(
        text("service"),
        *MODEL_AND_MODE,
        text("in_force", "in force"),
        text("stated"),
        number("lookups"),
        number("failed", "ruleset check failed"),
    ),
)

_ODD = Panel(
    id=10,
    title="Odd but usable",
    kind="table",
    shows="Events that are odd without being unusable, by what is odd.",
    misread="None of these was repaired in silence: the raw event is kept.",
    do="distance_looks_squared and impossible_distance: ask for the distance metric in use.",
    sql="SELECT service, model_version, mode, arrayJoin(degradations) AS oddity,\n"
    f"  count() AS lookups\nFROM audit.lookups\n{_WHERE}"
    "GROUP BY service, model_version, mode, oddity\n"
    "ORDER BY lookups DESC, service, model_version, mode, oddity\nLIMIT 100",
    columns=(text("service"), *MODEL_AND_MODE, text("oddity"), number("lookups")),
    no_value="nothing odd in this range",
)

BOARD = Board(
    uid="la-recompute",
    title="Recompute",
    about="Levels, quality and checks recomputed from what was recorded.",
    panels=(
        _RATE,
        _VERIFIABLE,
        _CLASSES,
        _REASONS,
        _CHECKS,
        _SERVICES,
        _LATEST,
        _DISTANCE,
        _RULESETS,
        _ODD,
    ),
    variables=STRATUM_VARIABLES,
    annotations=ANNOTATIONS,
)
