"""Alert rules, written down once: Grafana's file, its API and the runbooks follow from it.

A rule's statement answers exactly one number and labels that are text: Grafana then has one alert
a row, and the labels name it. No variable and no macro of the front end is in it, since the server
evaluates it. Rates have a minimum count in ``HAVING``: a rate over a handful never fires.
"""

from dataclasses import dataclass
from typing import Final, Literal

NoData = Literal["OK", "NoData", "Alerting", "KeepLast"]
Severity = Literal["page", "ticket"]

_HOUR: Final = 3600
_DAY: Final = 86400


@dataclass(frozen=True, slots=True)
class Rule:
    """One alert rule.

    Args:
        uid: Stable; its runbook has the same name.
        title: What is wrong when it fires.
        sql: Answers labels (text) and one number, in this order.
        range_seconds: How far back the statement looks.
        above: It fires where the number is greater.
        for_: How long before it fires, as Grafana writes it.
        severity: ``page`` wakes somebody; ``ticket`` waits for the morning.
        summary: One sentence with the labels in it.
        board: Uid of the board with its panel.
        panel: Id of the panel.
        no_data: What no row at all means, and why is said by ``no_data_because``.
        no_data_because: The reason of ``no_data``.
        labels: Columns that are labels.
    """

    uid: str
    title: str
    sql: str
    range_seconds: int
    above: float
    for_: str
    severity: Severity
    summary: str
    board: str
    panel: int
    no_data: NoData
    no_data_because: str
    labels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Group:
    """Rules that are evaluated together, every ``interval_seconds``."""

    name: str
    interval_seconds: int
    rules: tuple[Rule, ...]


_STRATUM = ("model_version", "mode")
_SILENCE_IS_ANOTHERS = "no lookup, no rate; silence has a rule of its own"

_DRIFT = Rule(
    uid="la-drift-alarm",
    title="The drift watcher has an open alarm",
    sql="SELECT metric, tenant, service, model_version, mode, toFloat64(count()) AS open\n"
    "FROM audit.drift_alarms\nWHERE state = 'open'\n"
    "GROUP BY metric, tenant, service, model_version, mode\n"
    "ORDER BY metric, tenant, service, model_version, mode",
    range_seconds=_HOUR,
    above=0,
    for_="0s",
    severity="ticket",
    summary="{{ $labels.metric }} of {{ $labels.service }} {{ $labels.model_version }} "
    "({{ $labels.mode }}) has moved away from its reference.",
    board="la-drift",
    panel=2,
    no_data="OK",
    no_data_because="no row is no open alarm",
    labels=("metric", "tenant", "service", *_STRATUM),
)

_PRECISE = Rule(
    uid="la-precise-rate",
    title="PRECISE rate is 10 points from the week before",
    sql="SELECT tenant, service, model_version, mode,\n"
    "  abs(p / n - p_before / n_before) AS change\n"
    "FROM (\n"
    "  SELECT tenant, service, model_version, mode,\n"
    "    sumIf(r.n, minute >= $__fromTime) AS n, sumIf(r.precise, minute >= $__fromTime) AS p,\n"
    "    sumIf(r.n, minute < $__fromTime) AS n_before,\n"
    "    sumIf(r.precise, minute < $__fromTime) AS p_before\n"
    "  FROM audit.precise_rate AS r\n"
    "  WHERE minute >= $__fromTime - toIntervalDay(7) AND minute <= $__toTime\n"
    "  GROUP BY tenant, service, model_version, mode\n"
    "  HAVING n >= 200 AND n_before >= 1000\n)\n"
    "ORDER BY tenant, service, model_version, mode",
    range_seconds=_HOUR,
    above=0.1,
    for_="15m",
    severity="ticket",
    summary="PRECISE rate of {{ $labels.service }} {{ $labels.model_version }} "
    "({{ $labels.mode }}) differs by more than 10 points from the week before.",
    board="la-drift",
    panel=1,
    no_data="OK",
    no_data_because=_SILENCE_IS_ANOTHERS,
    labels=("tenant", "service", *_STRATUM),
)

_MISMATCH = Rule(
    uid="la-level-mismatch",
    title="More than 1 % of levels do not follow from what was recorded",
    sql="SELECT tenant, service, model_version, mode,\n"
    "  countIf(level_check = 'fail') / countIf(level_check != 'unverifiable') AS mismatches\n"
    "FROM audit.lookups\nWHERE $__timeFilter(occurred_at)\n"
    "GROUP BY tenant, service, model_version, mode\n"
    "HAVING countIf(level_check != 'unverifiable') >= 50\n"
    "ORDER BY tenant, service, model_version, mode",
    range_seconds=_HOUR,
    above=0.01,
    for_="5m",
    severity="page",
    summary="{{ $labels.service }} {{ $labels.model_version }} ({{ $labels.mode }}) reports "
    "levels that its own numbers do not give.",
    board="la-recompute",
    panel=1,
    no_data="OK",
    no_data_because=_SILENCE_IS_ANOTHERS,
    labels=("tenant", "service", *_STRATUM),
)

_ERRORS = Rule(
    uid="la-high-score-errors",
    title="High-score errors are more than 5 % of sampled lookups",
    sql="SELECT tenant, model_version, mode, sum(s.error) / sum(s.any) AS error_share\n"
    "FROM audit.ratio_sums AS s\n"
    "WHERE day BETWEEN toDate($__fromTime, 'UTC') AND toDate($__toTime, 'UTC')\n"
    "GROUP BY tenant, model_version, mode\n"
    "HAVING sum(s.judged_high) >= 30 AND sum(s.any) > 0\n"
    "ORDER BY tenant, model_version, mode",
    range_seconds=7 * _DAY,
    above=0.05,
    for_="1h",
    severity="ticket",
    summary="More than 5 % of sampled lookups of {{ $labels.model_version }} "
    "({{ $labels.mode }}) were PRECISE and answered wrongly.",
    board="la-overview",
    panel=1,
    no_data="OK",
    no_data_because="without judged answers there is no share; the sample's board shows it",
    labels=("tenant", *_STRATUM),
)

_REFUSALS = Rule(
    uid="la-refusal-surge",
    title="Refusals are 15 points above the week before",
    sql="SELECT tenant, service, model_version, mode,\n"
    "  refused / n - refused_before / n_before AS rise\n"
    "FROM (\n"
    "  SELECT tenant, service, model_version, mode,\n"
    "    countIf(occurred_at >= $__fromTime) AS n,\n"
    "    countIf(occurred_at >= $__fromTime AND action = 'refused') AS refused,\n"
    "    countIf(occurred_at < $__fromTime) AS n_before,\n"
    "    countIf(occurred_at < $__fromTime AND action = 'refused') AS refused_before\n"
    "  FROM audit.cells\n"
    "  WHERE occurred_at >= $__fromTime - toIntervalDay(7) AND occurred_at <= $__toTime\n"
    "  GROUP BY tenant, service, model_version, mode\n"
    "  HAVING n >= 50 AND n_before >= 200\n)\n"
    "ORDER BY tenant, service, model_version, mode",
    range_seconds=_HOUR,
    above=0.15,
    for_="15m",
    severity="page",
    summary="Answers over {{ $labels.service }} {{ $labels.model_version }} "
    "({{ $labels.mode }}) are refused 15 points more often than in the week before.",
    board="la-refusals",
    panel=1,
    no_data="OK",
    no_data_because="no outcome, no rate; silence has a rule of its own",
    labels=("tenant", "service", *_STRATUM),
)

_DEAD = Rule(
    uid="la-dead-letters",
    title="Messages became dead letters",
    sql="SELECT toFloat64(count()) AS dead_letters\n"
    "FROM audit.dead_letters\nWHERE $__timeFilter(dead_lettered_at)",
    range_seconds=900,
    above=0,
    for_="5m",
    severity="ticket",
    summary="Messages of the last 15 minutes could not be stored; run lookup-audit dlq list.",
    board="la-pipeline",
    panel=5,
    no_data="Alerting",
    no_data_because="a count always answers a row, so none means that nothing is counted",
)

_GAP = Rule(
    uid="la-completeness-gap",
    title="Numbered lookups of a producer are missing",
    sql="SELECT tenant, service, service_instance AS instance,\n"
    "  toFloat64(max(service_sequence) - min(service_sequence) + 1\n"
    "    - uniqExact(service_sequence)) AS missing\n"
    "FROM audit.lookups\n"
    "WHERE $__timeFilter(occurred_at) AND service_sequence IS NOT NULL\n"
    "GROUP BY tenant, service, instance\nORDER BY tenant, service, instance",
    range_seconds=6 * _HOUR,
    above=0,
    for_="15m",
    severity="page",
    summary="{{ $labels.service }} numbered lookups that never arrived from "
    "{{ $labels.instance }}.",
    board="la-pipeline",
    panel=8,
    no_data="OK",
    no_data_because="a producer need not number its lookups",
    labels=("tenant", "service", "instance"),
)

_LAG = Rule(
    uid="la-lag",
    title="Events wait more than two minutes to be stored",
    sql="SELECT kafka_topic AS topic,\n"
    "  quantile(0.95)(greatest(0, dateDiff('millisecond', kafka_timestamp, ingested_at)) / 1000)\n"
    "    AS delay\n"
    "FROM audit.lookups\nWHERE $__timeFilter(ingested_at)\n"
    "GROUP BY topic\nORDER BY topic",
    range_seconds=600,
    above=120,
    for_="10m",
    severity="page",
    summary="Events of {{ $labels.topic }} are stored more than two minutes after their arrival.",
    board="la-pipeline",
    panel=3,
    no_data="OK",
    no_data_because="nothing stored has no delay; silence has a rule of its own",
    labels=("topic",),
)

_SILENT = Rule(
    uid="la-silent-producer",
    title="A producer has fallen silent",
    sql="SELECT tenant, service,\n"
    "  toFloat64(greatest(0, dateDiff('second', max(ingested_at),\n"
    "    toDateTime64($__toTime, 6, 'UTC')))) AS silent\n"
    "FROM audit.lookups\nWHERE $__timeFilter(ingested_at)\n"
    "GROUP BY tenant, service\nHAVING count() >= 100\nORDER BY tenant, service",
    range_seconds=_DAY,
    above=1800,
    for_="10m",
    severity="page",
    summary="{{ $labels.service }} ({{ $labels.tenant }}) sent at least 100 lookups in a day and "
    "none for half an hour.",
    board="la-pipeline",
    panel=1,
    no_data="Alerting",
    no_data_because="no service at all in a day is the silence of everything",
    labels=("tenant", "service"),
)

RULE_GROUPS: Final[tuple[Group, ...]] = (
    Group("lookup-audit-quality", 60, (_DRIFT, _PRECISE, _MISMATCH, _ERRORS, _REFUSALS)),
    Group("lookup-audit-pipeline", 60, (_DEAD, _GAP, _LAG, _SILENT)),
)
# Of levels and outcomes, so that the mode must be among the labels.
OF_LEVELS: Final = frozenset(rule.uid for rule in RULE_GROUPS[0].rules)


def all_rules() -> tuple[Rule, ...]:
    """The rules of every group."""
    return tuple(rule for group in RULE_GROUPS for rule in group.rules)
