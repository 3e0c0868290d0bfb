"""The board of one lookup: what an auditor would print."""

from dataclasses import replace

from lookup_audit.dashboards.boards.common import EVENT, STRATUM_VARIABLES
from lookup_audit.dashboards.filters import picked, typed
from lookup_audit.dashboards.model import Board, Column, Panel, Variable, number, text, time

_ID = typed("event_id")
_TENANT = picked("tenant", "tenant")
_NOT_FOUND = "no lookup has this id (and tenant)"
_IGNORED = ("service", "model_version", "mode")
_ONE_MODE = "one lookup has one mode, shown in its first panel."


def _of_lookup(prefix: str = "") -> str:
    return f"{prefix}event_id = {_ID} AND {picked('tenant', prefix + 'tenant')}"


_HEAD = Panel(
    id=1,
    title="Reported against recomputed",
    kind="record",
    shows="What the service reported of this lookup, and what its recorded numbers give under the "
    "ruleset in force.",
    misread="PRECISE is a label of the whole call: it says that the best candidate was near, and "
    "nothing about the answer.",
    do="On a mismatch follow the arithmetic beside this, then the candidates.",
    sql="SELECT l.event_id AS event_id, occurred_at, tenant, service, service_version,\n"
    "  model_version, mode, query_text, reported_level,\n"
    "  ifNull(recomputed_level, 'unverifiable') AS recomputed, level_check, level_mismatch,\n"
    "  reported_quality, quality_score, quality_basis, evidence_status,\n"
    "  arrayStringConcat(failed_checks, ', ') AS failed,\n"
    "  if(refused, 'yes', 'no') AS is_refused, truncated, unfiltered_retry, category_filter,\n"
    "  top_k, run_id\n"
    f"FROM audit.lookups AS l\nWHERE {_of_lookup('l.')}\nORDER BY tenant\nLIMIT 20",
    columns=(
        EVENT,
        time("occurred_at", "when"),
        text("tenant"),
        text("service"),
        text("service_version", "version"),
        text("model_version"),
        text("mode"),
        text("query_text", "query"),
        text("reported_level", "reported level"),
        text("recomputed", "recomputed level"),
        text("level_check", "level check"),
        text("level_mismatch", "mismatch"),
        number("reported_quality", "reported quality"),
        number("quality_score", "recomputed quality"),
        text("quality_basis", "basis"),
        text("evidence_status", "evidence"),
        text("failed", "failed checks"),
        text("is_refused", "refused"),
        text("truncated"),
        text("unfiltered_retry", "unfiltered retry"),
        text("category_filter", "category filter"),
        text("top_k", "top k"),
        text("run_id", "run"),
    ),
    no_value=_NOT_FOUND,
    height=17,
    ignores=_IGNORED,
)


def _rule(name: str, kind: str = "Float") -> str:
    return f"JSONExtract{kind}(r.content, '{name}')"


_SUM = Panel(
    id=2,
    title="The sum",
    kind="record",
    shows="The kept candidate with the best rank, its recorded number put into the ruleset's "
    "formula, and the thresholds it is held against.",
    misread="A basis of hybrid_rank means first of its round, not near.",
    do="Compute it by hand; the thresholds are those registered for the service and mode.",
    sql="SELECT l.tenant AS tenant, l.mode AS mode, c.chunk_id AS chunk,\n"
    "  multiIf(\n"
    "    c.chunk_id = '' AND c.original_rank IS NULL, 'no kept candidate, so there is no level',\n"
    "    l.quality_score IS NULL, 'the quality of the best candidate cannot be recomputed',\n"
    "    l.quality_basis = 'hybrid_rank',\n"
    f"    concat({_rule('rank_fallback', 'String')}, ' rank fallback of rank ',\n"
    "      toString(c.original_rank), ' = ', toString(round(l.quality_score, 6))),\n"
    "    concat('1 - ', multiIf(\n"
    f"      {_rule('distance_metric', 'String')} = 'l2_squared', 'sqrt(',\n"
    f"      {_rule('distance_metric', 'String')} = 'cosine_distance', 'sqrt(2 * ', '('),\n"
    "      toString(round(c.dense_distance, 6)), ') / ',\n"
    f"      toString({_rule('max_l2_distance')}), ' = ', toString(round(l.quality_score, 6)))\n"
    "  ) AS sum,\n"
    f"  concat('PRECISE from ', toString({_rule('highly_relevant_threshold')}),\n"
    f"    ', REFERENCE from ', toString({_rule('reference_threshold')})) AS thresholds,\n"
    f"  {_rule('rule', 'String')} AS rule, l.ruleset_id AS ruleset,\n"
    "  if(l.stated_ruleset_id = '', 'not stated', l.stated_ruleset_id) AS stated,\n"
    "  arrayStringConcat(l.failures, '\\n') AS failures,\n"
    "  arrayStringConcat(l.unverifiable, '\\n') AS unverifiable,\n"
    "  arrayStringConcat(l.degradations, ', ') AS odd\n"
    f"FROM (SELECT * FROM audit.lookups AS x WHERE {_of_lookup('x.')}) AS l\n"
    "LEFT JOIN (\n"
    "  SELECT tenant, event_id, chunk_id, original_rank, dense_distance\n"
    f"  FROM audit.candidates AS x WHERE kept AND {_of_lookup('x.')}\n"
    "  ORDER BY original_rank LIMIT 1 BY tenant, event_id\n"
    ") AS c ON c.tenant = l.tenant AND c.event_id = l.event_id\n"
    "LEFT JOIN (SELECT ruleset_id, any(content) AS content FROM audit.rulesets\n"
    "  GROUP BY ruleset_id) AS r ON r.ruleset_id = l.ruleset_id\n"
    "ORDER BY tenant\nLIMIT 20",
    columns=(
        text("tenant"),
        text("mode"),
        text("chunk", "best candidate"),
        text("sum"),
        text("thresholds"),
        text("rule"),
        text("ruleset", "ruleset in force"),
        text("stated", "ruleset stated"),
        text("failures"),
        text("unverifiable"),
        text("odd"),
    ),
    no_value=_NOT_FOUND,
    height=9,
    ignores=_IGNORED,
)

_CANDIDATES = Panel(
    id=3,
    title="Candidates in order",
    kind="table",
    shows="Every candidate with all its scores, and why it was dropped.",
    misread="Distance is better when smaller; RRF scores are never compared with a threshold. Only "
    "the best kept one decides the level.",
    do="wrong_top: look which candidate the reported quality belongs to.",
    sql="SELECT tenant, original_rank, chunk_id, document_id, document_version,\n"
    "  document_updated_at, dense_distance, rrf_score, rerank_score, similarity_score,\n"
    "  reported_quality, quality_score, layer, kept, selected, drop_reason, source_url, tokens,\n"
    f"  mode\nFROM audit.candidates AS c\nWHERE {_of_lookup('c.')}\n"
    "ORDER BY tenant, original_rank, chunk_id\nLIMIT 500",
    columns=(
        text("tenant"),
        number("original_rank", "rank"),
        text("chunk_id", "chunk"),
        text("document_id", "document"),
        text("document_version", "version"),
        time("document_updated_at", "updated"),
        number("dense_distance", "distance"),
        number("rrf_score", "RRF"),
        number("rerank_score", "rerank"),
        number("similarity_score", "similarity"),
        number("reported_quality", "reported quality"),
        number("quality_score", "quality"),
        text("layer"),
        text("kept"),
        text("selected"),
        text("drop_reason", "dropped for"),
        text("source_url", "source"),
        number("tokens"),
        text("mode"),
    ),
    no_value="no candidate",
    width=24,
    ignores=_IGNORED,
)

_ANSWER = Panel(
    id=4,
    title="What became of it",
    kind="table",
    shows="Every outcome that refers to this lookup: answer or refusal, stance, claims.",
    misread="Of several outcomes the latest counts in the figures.",
    do="Compare the claims with the candidates they cite.",
    sql="SELECT occurred_at, tenant, outcome_id, action, stance, refusal_reason, refusal_text,\n"
    "  arrayStringConcat(claim_texts, '\\n') AS claims, answer_model\n"
    f"FROM audit.outcomes\nWHERE has(lookup_event_ids, {_ID}) AND {_TENANT}\n"
    "ORDER BY occurred_at, outcome_id\nLIMIT 100",
    columns=(
        time("occurred_at", "when"),
        text("tenant"),
        text("outcome_id", "outcome"),
        text("action"),
        text("stance"),
        text("refusal_reason", "reason"),
        text("refusal_text", "said"),
        text("claims"),
        text("answer_model", "answer model"),
    ),
    no_value="no outcome (yet)",
    width=24,
    height=6,
    modeless=_ONE_MODE,
    ignores=_IGNORED,
)

_CLAIMS = Panel(
    id=5,
    title="Claims and what they stand on",
    kind="table",
    shows="Each claim of the answers: whether what it cites was selected and has a link, else why "
    "not.",
    misread="Supported means cited, and not that the source says so.",
    do="Read the cited chunk in the raw event.",
    sql="SELECT tenant, outcome_id, claim_number, text AS claim, supported, reason,\n"
    "  arrayStringConcat(cited_chunk_ids, ', ') AS cites,\n"
    "  arrayStringConcat(never_returned, ', ') AS never_returned, mode\n"
    f"FROM audit.claims\nWHERE has(lookup_event_ids, {_ID}) AND {_TENANT}\n"
    "ORDER BY outcome_id, claim_number\nLIMIT 200",
    columns=(
        text("tenant"),
        text("outcome_id", "outcome"),
        number("claim_number", "no."),
        text("claim"),
        text("supported"),
        text("reason", "why not"),
        text("cites"),
        text("never_returned", "cited and never returned"),
        text("mode"),
    ),
    no_value="no claim",
    ignores=_IGNORED,
)

_JUDGEMENTS = Panel(
    id=6,
    title="Judgements",
    kind="table",
    shows="Every judgement of those answers; the best source counts, then the newest.",
    misread="Only one of them counts in the figures.",
    do="Two judges that disagree: see lookup-audit judge agreement.",
    sql="SELECT occurred_at, tenant, verdict, source, judge_id, judge_version,\n"
    "  if(counts, 'yes', 'no') AS is_counted, comment\n"
    "FROM audit.judgements\n"
    "WHERE (tenant, outcome_id) IN (\n"
    f"  SELECT tenant, outcome_id FROM audit.outcomes\n"
    f"  WHERE has(lookup_event_ids, {_ID}) AND {_TENANT}\n)\n"
    "ORDER BY occurred_at, judgement_id\nLIMIT 100",
    columns=(
        time("occurred_at", "when"),
        text("tenant"),
        text("verdict"),
        text("source"),
        text("judge_id", "judge"),
        text("judge_version", "version"),
        text("is_counted", "counts"),
        text("comment"),
    ),
    no_value="not judged",
    modeless=_ONE_MODE,
    ignores=_IGNORED,
)

_RUN = Panel(
    id=7,
    title="Other lookups of the run",
    kind="table",
    shows="All lookups with the same run id, in order.",
    misread="A run without an id shows nothing here.",
    do="A repeat after PRECISE was wasted; a different mode is another ruler.",
    sql="SELECT occurred_at, event_id, tenant, mode, model_version, reported_level, query_text\n"
    "FROM audit.lookups\n"
    "WHERE run_id != '' AND (tenant, run_id) IN (\n"
    f"  SELECT tenant, run_id FROM audit.lookups AS x WHERE {_of_lookup('x.')}\n)\n"
    "ORDER BY occurred_at, event_id\nLIMIT 100",
    columns=(
        time("occurred_at", "when"),
        EVENT,
        text("tenant"),
        text("mode"),
        text("model_version"),
        text("reported_level", "level"),
        text("query_text", "query"),
    ),
    no_value="no run id",
    ignores=_IGNORED,
)

_ORIGIN = Panel(
    id=8,
    title="Where the event came from",
    kind="table",
    shows="Place in Kafka, times, trace, SHA-256 of the stored bytes; below it every duplicate and "
    "conflict of the id.",
    misread="A duplicate has the same content; a conflict has another and does not count.",
    do="The hash is of the raw JSON in the last panel: recompute it to be sure.",
    sql="SELECT what, tenant, topic, partition, offset, received, stored, trace_id, sha256, mode\n"
    "FROM (\n"
    "  SELECT 'counts' AS what, tenant, kafka_topic AS topic, kafka_partition AS partition,\n"
    "    kafka_offset AS offset, kafka_timestamp AS received, ingested_at AS stored, trace_id,\n"
    "    payload_sha256 AS sha256, mode\n"
    f"  FROM audit.lookups AS x\n  WHERE {_of_lookup('x.')}\n"
    "  UNION ALL\n"
    "  SELECT 'duplicate', tenant, kafka_topic, kafka_partition, kafka_offset,\n"
    "    kafka_timestamp, seen_at, '', '', ''\n"
    f"  FROM audit.duplicates AS x\n  WHERE kind = 'lookup' AND {_of_lookup('x.')}\n"
    "  UNION ALL\n"
    "  SELECT 'conflict', tenant, kafka_topic, kafka_partition, kafka_offset,\n"
    "    kafka_timestamp, seen_at, '', lower(hex(SHA256(raw))), ''\n"
    f"  FROM audit.id_conflicts AS x\n  WHERE kind = 'lookup' AND {_of_lookup('x.')}\n)\n"
    "ORDER BY stored, topic, partition, offset\nLIMIT 100",
    columns=(
        text("what"),
        text("tenant"),
        text("topic"),
        number("partition"),
        number("offset"),
        time("received"),
        time("stored"),
        text("trace_id", "trace"),
        text("sha256", "SHA-256"),
        text("mode"),
    ),
    no_value=_NOT_FOUND,
    width=24,
    height=5,
    ignores=_IGNORED,
)

_RAW = Panel(
    id=9,
    title="The event as it was sent",
    kind="table",
    shows="The stored bytes, unchanged.",
    misread="Fields that the schema does not know are here too.",
    do="lookup-audit lookup EVENT_ID --raw writes it to a file.",
    sql=f"SELECT tenant, mode, raw\nFROM audit.lookups AS x\nWHERE {_of_lookup('x.')}\n"
    "ORDER BY tenant\nLIMIT 20",
    columns=(text("tenant"), text("mode"), Column("raw", "event", "json")),
    no_value=_NOT_FOUND,
    width=24,
    ignores=_IGNORED,
)

BOARD = Board(
    uid="la-lookup",
    title="One lookup",
    about="Everything about one lookup: type its id, or come from any table.",
    panels=(
        _HEAD,
        _SUM,
        _RUN,
        _CANDIDATES,
        _ANSWER,
        _CLAIMS,
        _JUDGEMENTS,
        _ORIGIN,
        _RAW,
    ),
    variables=(
        Variable("event_id", "Lookup id"),
        *(replace(one, hidden=one.name != "tenant") for one in STRATUM_VARIABLES),
    ),
)
