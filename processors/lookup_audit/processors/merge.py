"""Several encoded batches as one, in the order they were read."""

from collections.abc import Sequence

import pyarrow as pa

from lookup_audit.processors.batch import KINDS, EncodedBatch


def merge(parts: Sequence[EncodedBatch]) -> EncodedBatch:
    """Join batches that follow each other.

    Args:
        parts: At least one batch.
    """
    if len(parts) == 1:
        return parts[0]
    merged = EncodedBatch(messages=sum(part.messages for part in parts))
    rulesets: dict[str, str] = {}
    for part in parts:
        merged.dead_letters.extend(part.dead_letters)
        rulesets |= part.rulesets
        merged.next_offsets |= part.next_offsets
        merged.first_offsets = part.first_offsets | merged.first_offsets
    merged.rulesets = rulesets
    for kind in KINDS:
        rows = [part.rows[kind.name] for part in parts if kind.name in part.rows]
        if rows:
            merged.rows[kind.name] = pa.concat_tables(rows)
    return merged
