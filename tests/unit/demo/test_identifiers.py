from __future__ import annotations

import random
import uuid
from datetime import timedelta

from lookup_audit.deploy.demo.identifiers import Identifiers
from tests.unit.demo.conftest import NOON, noon


def test_event_ids_are_uuids_of_version_seven_that_sort_by_time() -> None:
    early = Identifiers(noon, random.Random(1)).event_id()
    late = Identifiers(lambda: NOON + timedelta(milliseconds=1), random.Random(0)).event_id()
    assert uuid.UUID(early).version == 7
    assert uuid.UUID(early).variant == uuid.RFC_4122
    assert early < late


def test_trace_and_span_ids_have_their_length(ids: Identifiers) -> None:
    assert (len(ids.trace_id()), len(ids.span_id())) == (32, 16)
