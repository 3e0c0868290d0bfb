"""Several tests at once: p values that hold for the whole family."""

from collections.abc import Sequence


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Holm's adjusted p values (Holm 1979, Scand. J. Statist. 6:65); no value stays no value.

    >>> holm([0.01, None, 0.04])
    [0.02, None, 0.04]
    """
    order = sorted((p, index) for index, p in enumerate(p_values) if p is not None)
    adjusted: list[float | None] = [None] * len(p_values)
    highest = 0.0
    for place, (p, index) in enumerate(order):
        highest = max(highest, min(1.0, (len(order) - place) * p))
        adjusted[index] = highest
    return adjusted
