"""A body into the bytes of its events, byte for byte, so that one bad event harms no other.

A body is one JSON value, an array of them, or NDJSON; what it is decides, not its label. A body
of sound JSON is cut by the compiled decoder in one pass. Where that fails (a ``NaN`` token, half
a surrogate pair, a missing quote) a scanner finds the boundaries all the same and leaves the
judgement on each event to its decoder.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import msgspec

_BOM: Final = b"\xef\xbb\xbf"
_SPACE: Final = b" \t\r\n"
_VALUE: Final = msgspec.json.Decoder(msgspec.Raw)
_VALUES: Final = msgspec.json.Decoder(list[msgspec.Raw])
# The compiled decoder knows no limit on elements, and each costs 56 bytes: a body that could hold
# more than this many goes to the scanner, which stops at the limit.
_MAX_FAST_COMMAS: Final = 1_000_000

# A body with more braces than this is not read to its end by the scanner (about two seconds).
# Ten thousand events of twenty candidates have half as many.
_MAX_TURNS: Final = 1_000_000

_BLANK = re.compile(rb"[ \t\r\n]*+")
_GAP = re.compile(rb"[ \t\r\n,]*+")
# All quantifiers are possessive: on any bytes the time is linear. A string without an end
# swallows the rest of the text.
_STRING = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)'
_TO_BRACE = re.compile(rb'(?:[^"{}]++|' + _STRING + rb")*+(\{++|\}++)", re.DOTALL)
_TO_BRACKET = re.compile(rb'(?:[^"\[\]]++|' + _STRING + rb")*+(\[++|\]++)", re.DOTALL)
_SCALAR = re.compile(rb'(?:[^",{\]]++|' + _STRING + rb")*+", re.DOTALL)
_JUNK = re.compile(rb'(?:[^"{]++|' + _STRING + rb")*+", re.DOTALL)


class TooManyEventsError(ValueError):
    """The body holds more events than one request may."""


@dataclass(frozen=True, slots=True)
class Split:
    """The events of one body.

    Args:
        events: The bytes of each, in order, without the space around them.
        fault: What is wrong with the body around them, or ``""``.
    """

    events: list[bytes]
    fault: str = ""


def split(body: bytes, *, limit: int) -> Split:
    """Cut a body into its events; sound or not, each keeps its own bytes.

    An empty body is one empty event, which its decoder refuses; an empty array has none.

    Raises:
        TooManyEventsError: There are more than ``limit``.

    >>> split(b'[{"a": NaN}, {"b": 1}]', limit=10).events
    [b'{"a": NaN}', b'{"b": 1}']
    """
    text = body.removeprefix(_BOM).strip(_SPACE)
    if not text:
        return Split([b""])
    if text.startswith(b"["):
        events = _sound_array(text)
        if events is not None:
            return Split(_within(iter(events), limit))
    elif _is_sound(text):
        return Split([text])
    if _is_ndjson(text):
        return Split(_within((line for _, line in _lines(text)), limit))
    scanner = _Scanner(text)
    return Split(_within(scanner.elements(), limit), scanner.fault)


def _sound_array(text: bytes) -> list[bytes] | None:
    if text.count(b",") > _MAX_FAST_COMMAS:
        return None
    try:
        return [bytes(value) for value in _VALUES.decode(text)]
    except (msgspec.DecodeError, RecursionError):
        return None


def _is_sound(text: bytes) -> bool:
    try:
        _VALUE.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True


def _is_ndjson(text: bytes) -> bool:
    """Whether lines are the boundaries: some line that is not indented is a whole value.

    A pretty-printed object has no such line. In a pretty-printed array the last element may stand
    alone on its line, so there only the first line counts.
    """
    for start, line in _lines(text):
        if start and text[start - 1] != 0x0A:
            continue
        if start == 0:
            if len(line) == len(text):
                return False
            if _is_sound(line):
                return True
            if text.startswith(b"["):
                return False
        elif line.startswith(b"{") and line.endswith(b"}") and _is_sound(line):
            return True
    return False


def _lines(text: bytes) -> Iterator[tuple[int, bytes]]:
    """Each line that is not blank, without the space around it, and where it starts."""
    start = 0
    while start < len(text):
        end = text.find(b"\n", start)
        end = len(text) if end < 0 else end
        yield start, text[start:end].rstrip(_SPACE)
        start = _skip(_BLANK, text, end)


def _within(events: Iterator[bytes], limit: int) -> list[bytes]:
    kept: list[bytes] = []
    for event in events:
        if len(kept) == limit:
            raise TooManyEventsError(f"the body holds more than {limit} events; send it in parts")
        kept.append(event)
    return kept


def _skip(pattern: re.Pattern[bytes], text: bytes, position: int) -> int:
    match = pattern.match(text, position)
    return match.end() if match else position


class _Scanner:
    """Finds the elements of an array, or values one after another, however broken they are."""

    def __init__(self, text: bytes):
        self.fault = ""
        self._text = text
        self._in_array = text.startswith(b"[")
        self._turns = 0

    def elements(self) -> Iterator[bytes]:
        """Yield each element without the space around it; then ``fault`` is set."""
        text = self._text
        position: int | None = 1 if self._in_array else 0
        while position is not None:
            position = _skip(_GAP, text, position)
            if position == len(text):
                if self._in_array:
                    self.fault = "the array is not closed: the body was cut"
                return
            if self._in_array and text[position] == 0x5D:
                if text[position + 1 :].strip(_SPACE):
                    self.fault = "there is data after the end of the array; it was not read"
                return
            end = self._element_end(position)
            yield text[position:end].rstrip(_SPACE)
            position = end

    def _element_end(self, start: int) -> int | None:
        """Where the element that starts here ends, or ``None`` if it never does.

        Inside an object only braces count and inside an array only brackets, so that one that is
        missing from the other kind does not reach the neighbours.
        """
        opening = self._text[start]
        if opening == 0x7B:
            return self._closing(_TO_BRACE, opening, start)
        if opening == 0x5B:
            return self._closing(_TO_BRACKET, opening, start)
        return max(start + 1, _skip(_SCALAR if self._in_array else _JUNK, self._text, start))

    def _closing(self, pattern: re.Pattern[bytes], opening: int, position: int) -> int | None:
        depth = 0
        while match := pattern.match(self._text, position):
            first, position = match.span(1)
            if self._text[first] == opening:
                depth += position - first
            elif position - first < depth:
                depth -= position - first
            else:
                return first + depth
            self._turns += 1
            if self._turns > _MAX_TURNS:
                return None
        return None
