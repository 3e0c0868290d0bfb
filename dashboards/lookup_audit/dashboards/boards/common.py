"""What all boards share: variables, annotations, colours."""

from lookup_audit.dashboards.filters import option, picked, stratum, typed
from lookup_audit.dashboards.model import Annotation, Column, Step, Variable, number, share, text

MODEL_AND_MODE = (text("model_version"), text("mode"))
EVENT = text("event_id", "lookup", links=True)

_LABELS = {
    "tenant": "Tenant",
    "service": "Service",
    "model_version": "Model version",
    "mode": "Mode",
}


def _options(name: str) -> str:
    return (
        f"SELECT {option(name)} AS value, if({name} = '', '{'(none)'}', {name}) AS text\n"
        f"FROM audit.lookups\nWHERE $__timeFilter(occurred_at)\n"
        f"GROUP BY {name}\nORDER BY {name}\nLIMIT 500"
    )


STRATUM_VARIABLES = tuple(Variable(name, label, _options(name)) for name, label in _LABELS.items())

CHANGES = Annotation(
    "Changes of model, index, ruleset",
    "SELECT at AS time, concat(what, ' ', before, ' -> ', after, ' (', mode, ')') AS text,\n"
    "  what AS tags\n"
    "FROM audit.change_points\n"
    "WHERE $__timeFilter(at)\n"
    f"  AND {stratum(without=('model_version',))}\n"
    "ORDER BY time, text\nLIMIT 200",
    "blue",
)
ALARMS = Annotation(
    "Drift alarms",
    "SELECT started_at AS time, concat(summary, ' [', state, ']') AS text, metric AS tags\n"
    "FROM audit.drift_alarms\n"
    "WHERE $__timeFilter(started_at)\n"
    f"  AND {stratum(rolled_up=True)}\n"
    "ORDER BY time, text\nLIMIT 200",
    "red",
)
ANNOTATIONS = (CHANGES, ALARMS)

NEUTRAL = (Step(None, "text"),)
BAD_SHARE = (Step(None, "green"), Step(0.01, "yellow"), Step(0.05, "red"))
BAD_COUNT = (Step(None, "green"), Step(1, "red"))


def rate_columns(name: str, title: str) -> tuple[Column, ...]:
    """A rate and the ends of its interval."""
    return (
        share(name, title),
        share(f"{name}_low", "95 % from"),
        share(f"{name}_high", "95 % to"),
    )


__all__ = [
    "ALARMS",
    "ANNOTATIONS",
    "BAD_COUNT",
    "BAD_SHARE",
    "CHANGES",
    "EVENT",
    "MODEL_AND_MODE",
    "NEUTRAL",
    "STRATUM_VARIABLES",
    "number",
    "picked",
    "rate_columns",
    "typed",
]
