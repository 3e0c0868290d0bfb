"""Texts that look like a secret or name a person, replaced wherever they stand.

Our own expressions with the checks that each number carries: no kept library is light enough to
come with every emitter. phonenumbers 9.0 takes 48 MB on disk and 1.3 ms for a text of 4.6 kB with
eight numbers in it, twice what all of these take together, and needs to be told a country.
"""

import re
from collections.abc import Callable, Mapping
from datetime import date
from typing import Final, Literal, get_args

PatternName = Literal["token", "email", "national_id", "card", "phone"]
PATTERNS: Final[tuple[PatternName, ...]] = get_args(PatternName)

# Between groups of digits; people copy numbers with all of these.
_GAP = r"[ .\-\u00a0\u2010-\u2015\u2009\u202f]?"

# Neighbours that make a number part of something else: a hash, an id, another number.
_ALONE = r"(?<![0-9A-Za-z_])"
_END = r"(?![0-9A-Za-z_])"

# Every alternative begins where a run of its characters begins, so that the time is linear. Most
# texts have no run this long: looking for one takes a twentieth of looking for the tokens.
_LONG_RUN = re.compile(r"[\w.~+/=-]{16}")
_TOKEN = re.compile(
    r"(?<![\w-])eyJ[\w-]{8,}+\.[\w-]{8,}+(?:\.[\w-]*+)?"
    r"|\b(?:sk|pk|rk|ak)[-_][\w-]{16,}+"
    r"|\b(?:gh[pousr]_|github_pat_|glpat-|hf_|la_|npm_|pypi-|SG\.|xox[abeprs]-)[\w.-]{16,}+"
    r"|\b(?:AKIA|ASIA)[0-9A-Z]{16}\b|\bAIza[\w-]{35}"
    r"|\b(?i:bearer|basic|token)\s++(?=[A-Za-z.~+/=_-]{0,200}\d)[\w.~+/=-]{16,}+"
)
_PEM = re.compile(
    r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----.*?(?:-----END [A-Z ]{0,40}PRIVATE KEY-----|\Z)",
    re.DOTALL,
)
_SECRET_WORDS: Final = ("key", "secret", "passw", "pwd", "token")
_NAMED_SECRET = re.compile(
    r"\b(?:api[_-]?key|access[_-]?key|secret|password|passwd|pwd|token)[\"']?\s{0,8}[:=]\s{0,8}"
    r"[\"']?(?=[^\s\"',;&\d]{0,200}\d)[^\s\"',;&]{6,}+",
    re.IGNORECASE,
)
_EMAIL = re.compile(r"[\w.+%'-]{1,64}[@＠](?:[\w-]{1,63}\.){1,8}[\w-]{2,63}")
_NATIONAL_ID = re.compile(rf"{_ALONE}\d{{6}}{_GAP}\d{{8}}{_GAP}\d{{3}}[\dXxＸ]{_END}")
_NUMBERS = re.compile(rf"{_ALONE}\d++(?:{_GAP}\d++)*+{_END}")
_GROUP = re.compile(r"\d++")
_PHONE = re.compile(
    rf"(?<![\w+＋])(?:[+＋]|00)[1-9]{_GAP}(?:\(0\))?(?:{_GAP}\(?\d\)?){{6,14}}{_END}"
    rf"|{_ALONE}1[3-9]\d{_GAP}\d{{4}}{_GAP}\d{{4}}{_END}"
    rf"|(?<![0-9A-Za-z_(])\(?0\d{{2,4}}\)?[ \-/]\d{{3,4}}{_GAP}\d{{4}}{_END}"
    rf"|(?<![0-9A-Za-z_(])\(?[2-9]\d{{2}}\)?[ .-][2-9]\d{{2}}[ .-]\d{{4}}{_END}"
)

_MIN_CARD: Final = 13
_MAX_CARD: Final = 19
_ID_WEIGHTS: Final = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)
_ID_CHECKS: Final = "10X98765432"
# Issuer ranges of the schemes; without them every seventh timestamp would be a card.
_ISSUER = re.compile(
    r"4|5[1-5]|2(?:2[2-9]|[3-6]\d|7[01]|720)|3[47]|3(?:0[0-5]|[68])|35(?:2[89]|[3-8])|6"
)


def is_card(digits: str) -> bool:
    """Whether a number has an issuer's range and Luhn's check digit.

    >>> is_card("4111111111111111"), is_card("4111111111111112")
    (True, False)
    """
    if not _MIN_CARD <= len(digits) <= _MAX_CARD or _ISSUER.match(digits) is None:
        return False
    total = 0
    for index, digit in enumerate(reversed(digits)):
        value = int(digit) * (1 + index % 2)
        total += value - 9 if value > 9 else value
    return total % 10 == 0


def is_national_id(text: str) -> bool:
    """Whether a text is a Chinese citizen's number: a date in it, and its check digit.

    >>> is_national_id("11010519491231002X"), is_national_id("110105194912310021")
    (True, False)
    """
    digits = [int(digit) for digit in text[:17]]
    try:
        date(int(text[6:10]), int(text[10:12]), int(text[12:14]))
    except ValueError:
        return False
    check = sum(d * w for d, w in zip(digits, _ID_WEIGHTS, strict=True)) % 11
    last = "X" if text[17] in "xXＸ" else str(int(text[17]))
    return _ID_CHECKS[check] == last


def _digits(text: str) -> str:
    # Digits of any script; int() and a card reader know them all.
    return "".join(str(int(character)) for character in text if character.isdecimal())


def _cards(match: re.Match[str]) -> str:
    """A row of groups with every card in it replaced, whatever number stands beside it."""
    text = match[0]
    groups = [group.span() for group in _GROUP.finditer(text)]
    kept: list[str] = []
    done = index = 0
    while index < len(groups):
        end = _card_end(text, groups, index)
        if end is None:
            index += 1
            continue
        kept += [text[done : groups[index][0]], "[card]"]
        done = groups[end][1]
        index = end + 1
    return "".join([*kept, text[done:]])


def _card_end(text: str, groups: list[tuple[int, int]], first: int) -> int | None:
    """The group with which a card ends that begins with the first, or ``None``."""
    digits = ""
    for last in range(first, len(groups)):
        digits += _digits(text[slice(*groups[last])])
        if len(digits) > _MAX_CARD:
            return None
        if is_card(digits):
            return last
    return None


def _without_tokens(text: str) -> str:
    if "-----BEGIN " in text:
        text = _PEM.sub("[token]", text)
    if _LONG_RUN.search(text) is not None:
        text = _TOKEN.sub("[token]", text)
    if ":" in text or "=" in text:
        lower = text.lower()
        if any(word in lower for word in _SECRET_WORDS):
            text = _NAMED_SECRET.sub("[token]", text)
    return text


def _national_id(match: re.Match[str]) -> str:
    characters = [c for c in match[0] if c.isdecimal() or c in "xXＸ"]
    return "[national_id]" if is_national_id("".join(characters)) else match[0]


_REPLACE: Final[Mapping[PatternName, Callable[[str], str]]] = {
    "token": _without_tokens,
    "email": lambda text: _EMAIL.sub("[email]", text) if "@" in text or "＠" in text else text,
    "national_id": lambda text: _NATIONAL_ID.sub(_national_id, text),
    "card": lambda text: _NUMBERS.sub(_cards, text),
    "phone": lambda text: _PHONE.sub("[phone]", text),
}
_OF_WORDS: Final[tuple[PatternName, ...]] = ("token", "email")
_OF_NUMBERS: Final[tuple[PatternName, ...]] = ("national_id", "card", "phone")
_UUID = re.compile(
    r"(?<![0-9A-Za-z])([0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})(?![0-9A-Za-z])"
)
# All that a number can be made of; the expressions for numbers look nowhere else.
_SPAN = re.compile(r"[+＋(\d][\dXxＸ ().\-/\u00a0\u2010-\u2015\u2009\u202f]{6,}+")
_DIGITS = re.compile(r"\d(?:\D{0,2}\d){6}")


def scrub(text: str, patterns: tuple[PatternName, ...]) -> str:
    """The text with everything replaced that the patterns find.

    >>> scrub("write to a.b@example.com", ("email",))
    'write to [email]'
    """
    if len(text) < 6:
        return text
    for name in _OF_WORDS:
        if name in patterns:
            text = _REPLACE[name](text)
    if _DIGITS.search(text) is None:
        return text
    # What is between two UUIDs, and each of them: one in some hundred looks like a phone number.
    parts = _UUID.split(text)
    parts[::2] = [_scrub_numbers(part, patterns) for part in parts[::2]]
    return "".join(parts)


def _scrub_numbers(text: str, patterns: tuple[PatternName, ...]) -> str:
    def scrub_span(match: re.Match[str]) -> str:
        # With its neighbours, which decide whether a number stands alone.
        before = text[match.start() - 1 : match.start()] if match.start() else ""
        after = text[match.end() : match.end() + 1]
        span = f"{before}{match[0]}{after}"
        for name in _OF_NUMBERS:
            if name in patterns:
                span = _REPLACE[name](span)
        return span[len(before) : len(span) - len(after)]

    return _SPAN.sub(scrub_span, text)
