"""Alerting rules for those who alert from ``/metrics`` and not from Grafana.

Only what the processes themselves count is here; levels, cells and drift live in the store. Names
are those that Prometheus sees; a test compares them with what the code registers.
"""

from dataclasses import dataclass
from typing import Any, Final

from lookup_audit.dashboards.alert_files import DEFAULT_RUNBOOKS


@dataclass(frozen=True, slots=True)
class MetricRule:
    """One rule.

    Args:
        name: Of the alert.
        expression: PromQL.
        for_: How long before it fires.
        severity: ``page`` or ``ticket``.
        summary: One sentence.
        runbook: Name of the page.
    """

    name: str
    expression: str
    for_: str
    severity: str
    summary: str
    runbook: str


METRIC_RULES: Final[tuple[MetricRule, ...]] = (
    MetricRule(
        "LookupAuditDeadLetters",
        "sum by (error_type) (increase(lookup_audit_dlq_messages_total[15m])) > 0",
        "5m",
        "ticket",
        "Messages became dead letters for {{ $labels.error_type }}.",
        "la-dead-letters",
    ),
    MetricRule(
        "LookupAuditRejected",
        "sum by (error_type)"
        ' (rate(lookup_audit_ingest_events_total{ingest_result="rejected"}[15m]))'
        " / ignoring (error_type) group_left"
        " sum (rate(lookup_audit_ingest_events_total[15m])) > 0.01",
        "15m",
        "ticket",
        "More than 1 % of what is sent is refused at the door for {{ $labels.error_type }}.",
        "la-dead-letters",
    ),
    MetricRule(
        "LookupAuditConsumerLag",
        "sum by (group, topic) (kafka_consumer_group_lag) > 10000",
        "10m",
        "page",
        "{{ $labels.topic }} is {{ $value }} messages behind.",
        "la-lag",
    ),
    MetricRule(
        "LookupAuditStoreFails",
        "sum (increase(lookup_audit_sink_failures_total[10m])) > 0",
        "10m",
        "page",
        "Batches cannot be stored; nothing is lost while Kafka keeps it.",
        "la-lag",
    ),
    MetricRule(
        "LookupAuditStoresNothing",
        "sum (rate(messaging_client_consumed_messages_total[15m])) > 0"
        " unless sum (rate(lookup_audit_events_stored_total[15m])) > 0",
        "15m",
        "page",
        "Messages are read and none is stored.",
        "la-lag",
    ),
    MetricRule(
        "LookupAuditSilent",
        'sum (increase(lookup_audit_ingest_events_total{ingest_result="accepted"}[30m])) == 0'
        " or absent(lookup_audit_ingest_events_total)",
        "10m",
        "page",
        "No event was accepted for half an hour, or the collector is not scraped.",
        "la-silent-producer",
    ),
    MetricRule(
        "LookupAuditCollectorFull",
        "lookup_audit_ingest_queue_size / lookup_audit_ingest_queue_capacity > 0.8",
        "5m",
        "page",
        "The collector's queue is nearly full; it will answer 429 soon.",
        "la-lag",
    ),
    MetricRule(
        "LookupAuditDriftAlarm",
        "max (lookup_audit_drift_open_alarms) > 0",
        "0m",
        "ticket",
        "{{ $value }} watched rates have moved away from their reference.",
        "la-drift-alarm",
    ),
    MetricRule(
        "LookupAuditWatcherBehind",
        "max (lookup_audit_drift_behind_seconds) > 1800",
        "10m",
        "page",
        "The drift watcher has closed no minute of the last half hour.",
        "la-drift-alarm",
    ),
)


def metric_rules_file(runbooks: str = DEFAULT_RUNBOOKS) -> dict[str, Any]:
    """The file for ``rule_files``."""
    return {
        "groups": [
            {
                "name": "lookup-audit",
                "interval": "1m",
                "rules": [
                    {
                        "alert": rule.name,
                        "expr": rule.expression,
                        "for": rule.for_,
                        "labels": {"severity": rule.severity, "team": "lookup-audit"},
                        "annotations": {
                            "summary": rule.summary,
                            "runbook_url": f"{runbooks.rstrip('/')}/{rule.runbook}",
                        },
                    }
                    for rule in METRIC_RULES
                ],
            }
        ]
    }
