"""The draw of one lookup: a pure function of seed, day, tenant and event id, here and in SQL.

The first 53 bits of a SHA-256 over the four texts, as a number in [0, 1). Each text is preceded by
its length in bytes, so that no two different quadruples give the same bytes.
"""

import hashlib
from datetime import date
from typing import Final

_BITS: Final = 53

# Takes {seed:String}, {day:String}, {tenant:String} and the column event_id.
DRAW_SQL: Final = (
    "bitShiftRight(reinterpretAsUInt64(reverse(substring(SHA256(concat("
    "toString(length({seed:String})), ':', {seed:String}, "
    "toString(length({day:String})), ':', {day:String}, "
    "toString(length({tenant:String})), ':', {tenant:String}, "
    "toString(length(event_id)), ':', event_id"
    f")), 1, 8))), {64 - _BITS}) / {2**_BITS}"
)


def draw(seed: str, day: date, tenant: str, event_id: str) -> float:
    """The number u in [0, 1); the lookup is in the sample if u is below its probability.

    >>> round(draw("s", date(2026, 11, 30), "acme", "evt-1"), 6)
    0.937767
    """
    parts = (text.encode() for text in (seed, day.isoformat(), tenant, event_id))
    digest = hashlib.sha256(b"".join(b"%d:%b" % (len(part), part) for part in parts)).digest()
    number: int = int.from_bytes(digest[:8], "big") >> (64 - _BITS)
    return number / float(1 << _BITS)
