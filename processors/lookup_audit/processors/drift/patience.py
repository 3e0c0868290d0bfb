"""How long a change of some size would go unseen: what a stratum's traffic allows.

The delay of the best test there is, a CUSUM that knows both rates (Moustakides 1986), for the
promised time between false alarms, times what the detector needs above it in the bench.
"""

import math
from typing import Final

# Mean delay over the optimum at -10 and -20 points in tests/bench, rounded up.
_OVER_OPTIMUM: Final = 1.7


def calls_to_see(
    rate: float, change: float, *, calls_between_alarms: float, dispersion: float = 1.0
) -> float:
    """Mean number of calls until a change of a rate is alarmed.

    >>> round(calls_to_see(0.6, -0.1, calls_between_alarms=50_000))
    494

    Args:
        rate: Before the change.
        change: Of the rate, a share; the new rate is kept within 0 and 1.
        calls_between_alarms: Calls in which one false alarm is allowed.
        dispersion: The design effect.
    """
    before = min(max(rate, 0.001), 0.999)
    after = min(max(rate + change, 0.001), 0.999)
    forth, back = _divergence(after, before), _divergence(before, after)
    low, high = 0.0, 80.0
    for _ in range(100):
        middle = (low + high) / 2.0
        if (math.exp(middle) - middle - 1.0) / back < calls_between_alarms / dispersion:
            low = middle
        else:
            high = middle
    return _OVER_OPTIMUM * dispersion * (low + math.exp(-low) - 1.0) / forth


def _divergence(p: float, q: float) -> float:
    return p * math.log(p / q) + (1.0 - p) * math.log((1.0 - p) / (1.0 - q))
