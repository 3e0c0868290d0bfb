r"""Text in spreadsheet cells that a spreadsheet must not run as a formula, and back.

A cell that a program would take for a formula gets a leading apostrophe, which spreadsheets show
as text. So does one that begins with apostrophes before such a character: the way back is exact.
"""

import re

# Full-width signs too: spreadsheets set to Chinese or Japanese take them for the plain ones.
_FORMULA = re.compile("'*[=+\\-@\t\r\n＝＋－＠]")
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
# What a cell can hold is 32,767 characters in the common programs.
MAX_CELL = 32_000


def protect(text: str) -> str:
    """A text as a cell that is never run.

    >>> protect("=1+1"), protect("'=1+1"), protect("1+1")
    ("'=1+1", "''=1+1", '1+1')
    """
    return f"'{text}" if _FORMULA.match(text) else text


def unprotect(cell: str) -> str:
    """The text that :func:`protect` made the cell of.

    >>> unprotect("'=1+1"), unprotect("'quoted'")
    ('=1+1', "'quoted'")
    """
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell


def fit(text: str, limit: int = MAX_CELL) -> str:
    """A text without control characters, cut with a mark where a cell could not hold it."""
    clean = _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text)
    return clean if len(clean) <= limit else clean[:limit] + " […]"
