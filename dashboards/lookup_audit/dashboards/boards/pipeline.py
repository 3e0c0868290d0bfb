"""The board that answers: is everything that was sent also here, and soon?"""

from lookup_audit.dashboards.boards.common import ANNOTATIONS, BAD_COUNT, STRATUM_VARIABLES
from lookup_audit.dashboards.filters import stratum
from lookup_audit.dashboards.model import STRATUM, Board, Panel, Step, number, share, text, time

_TRANSPORT = "it counts messages of the transport, whatever they hold."
_WHERE = f"WHERE $__timeFilter(occurred_at)\n  AND {stratum()}\n"
_OF_TENANT = stratum(without=("service", "model_version", "mode"))
_NOT_TENANT = ("service", "model_version", "mode")

_FRESHNESS = Panel(
    id=1,
    title="Age of the newest lookup",
    kind="table",
    shows="Seconds between the newest stored lookup and the end of the range, per service, model "
    "version and mode that sent anything in the range.",
    misread="A service that is silent by night is old every morning; one that never sent anything "
    "in the range is not listed at all.",
    do="One old service: runbook silent producer. All old: look at lag and readiness.",
    sql="SELECT tenant, service, model_version, mode, max(ingested_at) AS newest,\n"
    "  greatest(0, dateDiff('second', newest, toDateTime64($__toTime, 6, 'UTC'))) AS age\n"
    f"FROM audit.lookups\n{_WHERE}"
    "GROUP BY tenant, service, model_version, mode\n"
    "ORDER BY age DESC, tenant, service, model_version, mode\nLIMIT 100",
    columns=(
        text("tenant"),
        text("service"),
        text("model_version"),
        text("mode"),
        time("newest"),
        number("age", unit="s"),
    ),
    steps=(Step(None, "green"), Step(900, "yellow"), Step(3600, "red")),
)

_STORED = Panel(
    id=2,
    title="Lookups stored",
    kind="timeseries",
    shows="Unique lookups by the time they were stored, per model version and mode.",
    misread="After an outage a hill follows the gap: that is the catch-up.",
    do="A gap without a hill is a loss until the holes below say otherwise.",
    sql="SELECT $__timeInterval(ingested_at) AS time, model_version, mode, count() AS stored\n"
    f"FROM audit.lookups\nWHERE $__timeFilter(ingested_at)\n  AND {stratum()}\n"
    "GROUP BY time, model_version, mode\nORDER BY time, model_version, mode",
    columns=(time(), text("model_version"), text("mode"), number("stored")),
    stacked=True,
    minimum=0,
)

_DELAY = Panel(
    id=3,
    title="Delay from Kafka to the store",
    kind="timeseries",
    shows="Time between a message's arrival in Kafka and the insert that made it readable: median "
    "and 95 % point of lookups, per mode.",
    misread="Time before Kafka (spool, network, clock of the producer) is not in it.",
    do="Rising without end: runbook consumer lag. Steps: look at the store's insert times.",
    sql="SELECT $__timeInterval(ingested_at) AS time, mode,\n"
    "  quantile(0.5)(delay) AS median, quantile(0.95)(delay) AS p95\n"
    "FROM (\n"
    "  SELECT ingested_at, mode,\n"
    "    greatest(0, dateDiff('millisecond', kafka_timestamp, ingested_at)) / 1000 AS delay\n"
    f"  FROM audit.lookups\n  WHERE $__timeFilter(ingested_at)\n    AND {stratum()}\n)\n"
    "GROUP BY time, mode\nORDER BY time, mode",
    columns=(time(), text("mode"), number("median", unit="s"), number("p95", "95 %", "s")),
    unit="s",
    minimum=0,
)

_END_TO_END = Panel(
    id=4,
    title="Delay from the event to the store",
    kind="timeseries",
    shows="Time between the lookup itself, by its producer's clock, and its storing: 95 % point.",
    misread="A producer's clock that is wrong shows here as delay; one that is ahead as none.",
    do="High here and low in the panel before: the event was late before it reached Kafka.",
    sql="SELECT $__timeInterval(ingested_at) AS time, service, mode,\n"
    "  quantile(0.95)(greatest(0, dateDiff('millisecond', occurred_at, ingested_at)) / 1000)\n"
    "    AS p95\n"
    f"FROM audit.lookups\nWHERE $__timeFilter(ingested_at)\n  AND {stratum()}\n"
    "GROUP BY time, service, mode\nORDER BY time, service, mode",
    columns=(time(), text("service"), text("mode"), number("p95", "95 %", "s")),
    unit="s",
    minimum=0,
)

_DEAD = Panel(
    id=5,
    title="Dead letters",
    kind="timeseries",
    shows="Messages that could not become a row, by reason and topic.",
    misread="Events refused at the HTTP door are not here: the caller was told (metrics).",
    do="Runbook dead letters; lookup-audit dlq list.",
    sql="SELECT $__timeInterval(dead_lettered_at) AS time, reason, kafka_topic,\n"
    "  count() AS dead_letters\nFROM audit.dead_letters\n"
    "WHERE $__timeFilter(dead_lettered_at)\n"
    "GROUP BY time, reason, kafka_topic\nORDER BY time, reason, kafka_topic",
    columns=(time(), text("reason"), text("kafka_topic"), number("dead_letters")),
    no_value="no dead letter in this range",
    stacked=True,
    minimum=0,
    modeless="a message that could not be read has no mode.",
    ignores=STRATUM,
)

_DEAD_TABLE = Panel(
    id=6,
    title="Dead letters by reason and field",
    kind="table",
    shows="What is wrong, where in the event, since when, and the place of one to look at.",
    misread="One reason from one topic is one producer; many reasons are a change on our side.",
    do="lookup-audit dlq show PLACE, fix the cause, lookup-audit dlq replay.",
    sql="SELECT reason, field, kafka_topic AS topic, count() AS dead_letters,\n"
    "  min(dead_lettered_at) AS first, max(dead_lettered_at) AS last,\n"
    "  argMax(concat(kafka_topic, '/', toString(kafka_partition), '/', toString(kafka_offset)),\n"
    "    dead_lettered_at) AS place\n"
    "FROM audit.dead_letters\nWHERE $__timeFilter(dead_lettered_at)\n"
    "GROUP BY reason, field, topic\nORDER BY dead_letters DESC, reason, field, topic\nLIMIT 100",
    columns=(
        text("reason"),
        text("field"),
        text("topic"),
        number("dead_letters", "dead letters"),
        time("first"),
        time("last"),
        text("place", "newest"),
    ),
    no_value="no dead letter in this range",
    steps=BAD_COUNT,
    modeless="a message that could not be read has no mode.",
    ignores=STRATUM,
)

_REPEATS = Panel(
    id=7,
    title="Duplicates and id conflicts",
    kind="table",
    shows="Messages with an id that is stored already: the same content (duplicate, counted once "
    "everywhere) or another (conflict: both kept, the first counts).",
    misread="Duplicates are normal after a retry or a replay; conflicts never are.",
    do="Runbook id conflicts: two producers use one id.",
    sql="SELECT what, kind, tenant, count() AS messages, max(seen) AS last\nFROM (\n"
    "  SELECT 'duplicate' AS what, kind, tenant, seen_at AS seen FROM audit.duplicates\n"
    f"  WHERE $__timeFilter(seen_at)\n    AND {_OF_TENANT}\n"
    "  UNION ALL\n"
    "  SELECT 'conflict', kind, tenant, seen_at FROM audit.id_conflicts\n"
    f"  WHERE $__timeFilter(seen_at)\n    AND {_OF_TENANT}\n)\n"
    "GROUP BY what, kind, tenant\nORDER BY what, messages DESC, kind, tenant",
    columns=(text("what"), text("kind"), text("tenant"), number("messages"), time("last")),
    no_value="none in this range",
    modeless=_TRANSPORT,
    ignores=_NOT_TENANT,
)

_HOLES = Panel(
    id=8,
    title="Holes in producers' own counts",
    kind="table",
    shows="Per service instance: the numbers it gave its lookups, and how many between the first "
    "and the last in the range are missing.",
    misread="Numbers at the two ends of the range cannot be missed: widen the range. An instance "
    "that started again has a new name. Dead letters are holes too until they are replayed.",
    do="Runbook completeness gap; lookup-audit verify names the holes.",
    sql="SELECT tenant, service, service_instance AS instance, min(service_sequence) AS first,\n"
    "  max(service_sequence) AS last, uniqExact(service_sequence) AS stored,\n"
    "  last - first + 1 - stored AS missing\n"
    "FROM audit.lookups\n"
    "WHERE $__timeFilter(occurred_at) AND service_sequence IS NOT NULL\n"
    f"  AND {stratum(without=('model_version', 'mode'))}\n"
    "GROUP BY tenant, service, instance\n"
    "ORDER BY missing DESC, tenant, service, instance\nLIMIT 100",
    columns=(
        text("tenant"),
        text("service"),
        text("instance"),
        number("first"),
        number("last"),
        number("stored"),
        number("missing"),
    ),
    no_value="no producer numbers its lookups",
    steps=BAD_COUNT,
    modeless="an instance numbers all its lookups in one count, whatever their mode.",
    ignores=("model_version", "mode"),
)

_OFFSETS = Panel(
    id=9,
    title="Account of every Kafka offset",
    kind="table",
    shows="Per partition: first and last offset in the range, how many of them became a row, a "
    "duplicate, a conflict or a dead letter, and how many are unaccounted for.",
    misread="Markers of Kafka transactions take offsets too; a few at the last seconds of the "
    "range may still be on their way.",
    do="Unaccounted offsets that stay are a loss: runbook completeness gap.",
    sql="SELECT kafka_topic AS topic, kafka_partition AS partition,\n"
    "  any(kafka_cluster) AS cluster, min(kafka_offset) AS first, max(kafka_offset) AS last,\n"
    "  countIf(what = 'row') AS rows, countIf(what = 'repeat') AS repeats,\n"
    "  countIf(what = 'dead') AS dead_letters,\n"
    "  last - first + 1 - uniqExact(kafka_offset) AS unaccounted\n"
    "FROM (\n"
    + "\n  UNION ALL\n".join(
        f"  SELECT '{what}' AS what, kafka_cluster, kafka_topic, kafka_partition, kafka_offset\n"
        f"  FROM audit.{view} WHERE $__timeFilter(kafka_timestamp)"
        for what, view in (
            ("row", "lookups"),
            ("row", "outcomes"),
            ("row", "judgements"),
            ("repeat", "duplicates"),
            ("repeat", "id_conflicts"),
            ("dead", "dead_letters"),
        )
    )
    + "\n)\nGROUP BY kafka_cluster, topic, partition\n"
    "ORDER BY unaccounted DESC, topic, partition, cluster\nLIMIT 200",
    columns=(
        text("topic"),
        number("partition"),
        text("cluster"),
        number("first"),
        number("last"),
        number("rows"),
        number("repeats"),
        number("dead_letters", "dead letters"),
        number("unaccounted"),
    ),
    steps=BAD_COUNT,
    modeless=_TRANSPORT,
    ignores=STRATUM,
)

_SOURCES = Panel(
    id=10,
    title="Where lookups come from",
    kind="table",
    shows="Lookups by service, version, source format and mode, with the share that came late.",
    misread="unknown mode is what an OTLP source could not say; its level is unverifiable.",
    do="A service that appears twice with two versions is in the middle of a rollout.",
    sql="SELECT tenant, service, service_version, source_format, mode, count() AS lookups,\n"
    "  countIf(late) / count() AS late, min(occurred_at) AS first, max(occurred_at) AS last\n"
    f"FROM audit.lookups\n{_WHERE}"
    "GROUP BY tenant, service, service_version, source_format, mode\n"
    "ORDER BY lookups DESC, tenant, service, service_version, source_format, mode\nLIMIT 100",
    columns=(
        text("tenant"),
        text("service"),
        text("service_version", "version"),
        text("source_format", "format"),
        text("mode"),
        number("lookups"),
        share("late"),
        time("first"),
        time("last"),
    ),
)

_SIZE = Panel(
    id=11,
    title="Size of the store",
    kind="table",
    shows="Rows, bytes on disk, active parts and last change of each table, now.",
    misread="Not of the range: it is what the store holds at this moment.",
    do="Many parts (over 300) of one table: inserts are too small or merges are behind.",
    sql="SELECT table, sum(p.rows) AS rows, sum(p.bytes_on_disk) AS bytes, count() AS parts,\n"
    "  max(modification_time) AS changed\n"
    "FROM system.parts AS p\nWHERE active AND database = 'audit_store'\n"
    "GROUP BY table\nORDER BY bytes DESC, table",
    columns=(
        text("table"),
        number("rows"),
        number("bytes", "on disk", "bytes"),
        number("parts"),
        time("changed", "last change"),
    ),
    modeless="a table holds all modes.",
    ignores=STRATUM,
)

BOARD = Board(
    uid="la-pipeline",
    title="Pipeline",
    about="Freshness, delay, dead letters, duplicates, completeness and size.",
    panels=(
        _FRESHNESS,
        _STORED,
        _DELAY,
        _END_TO_END,
        _DEAD,
        _DEAD_TABLE,
        _REPEATS,
        _HOLES,
        _OFFSETS,
        _SOURCES,
        _SIZE,
    ),
    variables=STRATUM_VARIABLES,
    annotations=ANNOTATIONS[:1],
    since="now-24h",
)
