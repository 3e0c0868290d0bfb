"""Reports as plain JSON values; a rate carries its n and interval wherever it stands."""

import dataclasses
from typing import Any

from lookup_audit.processors.calibration.comparison import Example
from lookup_audit.processors.calibration.fragility import Fragility
from lookup_audit.processors.calibration.matching import StratumTrials
from lookup_audit.processors.calibration.operating import Cut
from lookup_audit.processors.calibration.rate import Rate
from lookup_audit.schemas.ruleset import Ruleset

_CUT_RATES = ("precision", "recall", "error_rate", "refusal_rate", "refused_where_lacking")


def plain(value: object) -> Any:
    """A report, or any part of one, as JSON values."""
    if isinstance(value, Rate):
        return value.as_json()
    if isinstance(value, Ruleset):
        return {"ruleset_id": value.ruleset_id, **value.model_dump()}
    if isinstance(value, Cut):
        rates = {name: plain(getattr(value, name)) for name in _CUT_RATES}
        return {"threshold": value.threshold, "n": value.n, **rates}
    if isinstance(value, StratumTrials):
        return {"left_out": plain(value.left_out), "superseded": value.superseded}
    if isinstance(value, Example):
        return {**_members(value.pair), "differs_in": list(value.differs_in)}
    if isinstance(value, Fragility):
        return {**_members(value), "width": value.width}
    if dataclasses.is_dataclass(value):
        return _members(value)
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value


def _members(value: Any) -> dict[str, Any]:
    return {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
