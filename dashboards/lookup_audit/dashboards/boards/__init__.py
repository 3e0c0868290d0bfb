"""The boards, in the order they are shown."""

from collections.abc import Sequence
from typing import Final

from lookup_audit.dashboards.boards import (
    drift,
    lookup,
    overview,
    pipeline,
    recompute,
    refusals,
)
from lookup_audit.dashboards.model import Board

BOARDS: Final[Sequence[Board]] = (
    overview.BOARD,
    drift.BOARD,
    recompute.BOARD,
    refusals.BOARD,
    pipeline.BOARD,
    lookup.BOARD,
)
LOOKUP_UID: Final = lookup.BOARD.uid

__all__ = ["BOARDS", "LOOKUP_UID"]
