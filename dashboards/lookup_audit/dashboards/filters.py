"""SQL fragments that every panel is built from: what the reader chose, and intervals of rates.

Values of variables reach SQL only as ``decodeURLComponent('${name:percentencode}')``: of all of
Grafana's formats it alone leaves neither a quote nor a backslash in the literal. An option's value
is encoded once more when it is listed, so that several may be joined by commas.
"""

from lookup_audit.dashboards.model import ALL, NONE, STRATUM

# 1.96: the two-sided 95 % point of the normal distribution.
_Z = 1.959963984540054


def typed(variable: str) -> str:
    """What the reader typed, as an SQL string."""
    return f"decodeURLComponent('${{{variable}:percentencode}}')"


def _chosen(variable: str) -> str:
    return (
        f"arrayMap(x -> if(x = '{NONE}', '', decodeURLComponent(x)), "
        f"splitByChar(',', trimBoth({typed(variable)}, '{{}}')))"
    )


def option(column: str) -> str:
    """A stored value as the value of an option."""
    return f"if({column} = '', '{NONE}', encodeURLComponent({column}))"


def picked(variable: str, column: str, *, joined: bool = False, rolled_up: bool = False) -> str:
    """Whether a row is among what the reader chose.

    Args:
        variable: The reader's choice: one, several, or all.
        column: What is compared.
        joined: The column may hold several values with ``+`` between; one of them is enough.
        rolled_up: ``*`` in the column stands for all.
    """
    parts = [f"{typed(variable)} = '{ALL}'", f"has({_chosen(variable)}, {column})"]
    if joined:
        parts.append(f"hasAny({_chosen(variable)}, splitByChar('+', {column}))")
    if rolled_up:
        parts.append(f"{column} = '{ALL}'")
    return f"({' OR '.join(parts)})"


def stratum(
    *,
    prefix: str = "",
    without: tuple[str, ...] = (),
    joined: bool = False,
    rolled_up: bool = False,
) -> str:
    """Whether a row is in the strata the reader chose.

    Args:
        prefix: Table alias with its dot.
        without: Variables whose column is not there.
        joined: The mode and the model version may be several, as of an outcome's lookups.
        rolled_up: See :func:`picked`; never of the mode.
    """
    return " AND ".join(
        picked(
            name,
            prefix + name,
            joined=joined and name in ("model_version", "mode"),
            rolled_up=rolled_up and name != "mode",
        )
        for name in STRATUM
        if name not in without
    )


def days(column: str = "day") -> str:
    """Whether a day, UTC, touches the range."""
    return f"{column} BETWEEN toDate($__fromTime, 'UTC') AND toDate($__toTime, 'UTC')"


def rate(part: str, whole: str) -> str:
    """A rate; NULL over nothing."""
    return f"{part} / nullIf({whole}, 0)"


def wilson(part: str, whole: str) -> tuple[str, str]:
    """The two ends of Wilson's 95 % interval of a rate; NULL over nothing.

    Source: Wilson 1927, JASA 22:209.
    """
    n = f"nullIf({whole}, 0)"
    half = f"{_Z} * sqrt({part} * ({whole} - {part}) / {n} + {_Z**2 / 4})"
    low, high = (
        f"greatest(0., least(1., ({part} + {_Z**2 / 2} {sign} {half}) / ({n} + {_Z**2})))"
        for sign in "-+"
    )
    return low, high


def interval_columns(part: str, whole: str, name: str) -> str:
    """The rate and its two ends, as columns ``name``, ``name_low``, ``name_high``."""
    low, high = wilson(part, whole)
    return f"{rate(part, whole)} AS {name}, {low} AS {name}_low, {high} AS {name}_high"
