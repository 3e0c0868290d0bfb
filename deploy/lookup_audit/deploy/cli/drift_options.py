"""Options of whatever runs a drift watcher, in an SRE's words."""

import argparse
import os
from typing import Any

from lookup_audit.processors.drift.config import DriftConfig, drift_config

_OPTIONS = (
    ("--false-alarm-days", "false_alarm_days", "one false alarm per stratum in this many days"),
    ("--fleet-false-alarm-days", "fleet_false_alarm_days", "… and one over all strata"),
    ("--ignore-points", "ignore_points", "ignore changes below this many percentage points"),
    ("--reference-days", "reference_days", "learn what is normal for this long, then pin it"),
)


def add_drift(parser: argparse.ArgumentParser) -> None:
    """The watcher's settings and where its alarms go."""
    group = parser.add_argument_group("drift alarms")
    fields = DriftConfig.model_fields
    for option, name, text in _OPTIONS:
        group.add_argument(
            option,
            dest=name,
            type=float,
            default=fields[name].default,
            metavar="N",
            help=f"{text} (default: %(default)g)",
        )
    group.add_argument(
        "--minimum-calls",
        type=int,
        default=fields["minimum_calls"].default,
        metavar="N",
        help="watch a stratum after this many calls (default: %(default)s)",
    )
    group.add_argument(
        "--webhook",
        default=os.environ.get("LOOKUP_AUDIT_WEBHOOK"),
        metavar="URL",
        help="post alarms here, http://alertmanager:9093/api/v2/alerts; also LOOKUP_AUDIT_WEBHOOK",
    )
    group.add_argument(
        "--board",
        default=os.environ.get("LOOKUP_AUDIT_BOARD"),
        metavar="URL",
        help="page that alarms link to; the stratum is added as var-tenant=… and so on",
    )


def drift_settings(args: argparse.Namespace) -> DriftConfig:
    """The settings that were given.

    Raises:
        ConfigError: One makes no sense; the message says what would.
    """
    names = [name for _, name, _ in _OPTIONS] + ["minimum_calls"]
    values: dict[str, Any] = {name: getattr(args, name) for name in names}
    return drift_config(**values)
