"""Decompression that hands out small pieces, so that the caller can stop a bomb early.

A decoder takes compressed bytes as they arrive and yields pieces of at most 256 KiB; nothing here
ever holds a whole body. Concatenated gzip members and zstd frames are one stream.
"""

import sys
import zlib
from collections.abc import Callable, Iterator
from typing import Final, Protocol

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

PIECE_BYTES: Final = 256 * 1024
# An empty gzip member is 20 bytes and costs a fresh decoder: a body may not be made of those.
MAX_MEMBERS: Final = 10_000
# RFC 9659 binds the content coding "zstd" to windows of 8 MiB; a larger one is a memory attack.
_ZSTD_WINDOW_LOG: Final = 23


class InflateError(ValueError):
    """The bytes are not what the content encoding says, or they end too early."""


class _Member(Protocol):
    """One compressed member or frame."""

    @property
    def eof(self) -> bool: ...

    @property
    def unused_data(self) -> bytes: ...

    def pieces(self, data: bytes) -> Iterator[bytes]: ...


class _ZlibMember:
    def __init__(self, window_bits: int):
        self._stream = zlib.decompressobj(window_bits)

    @property
    def eof(self) -> bool:
        return self._stream.eof

    @property
    def unused_data(self) -> bytes:
        return self._stream.unused_data

    def pieces(self, data: bytes) -> Iterator[bytes]:
        more = True
        while more:
            piece = self._stream.decompress(data, PIECE_BYTES)
            data = self._stream.unconsumed_tail
            # A full piece may leave output inside the decoder although all input is used up.
            more = not self.eof and (bool(data) or len(piece) == PIECE_BYTES)
            yield piece


class _ZstdFrame:
    def __init__(self) -> None:
        self._stream = zstd.ZstdDecompressor(
            options={zstd.DecompressionParameter.window_log_max: _ZSTD_WINDOW_LOG}
        )

    @property
    def eof(self) -> bool:
        return self._stream.eof

    @property
    def unused_data(self) -> bytes:
        return self._stream.unused_data

    def pieces(self, data: bytes) -> Iterator[bytes]:
        more = True
        while more:
            yield self._stream.decompress(data, PIECE_BYTES)
            data = b""
            more = not (self.eof or self._stream.needs_input)


class Inflater:
    """Decoder of one body; make a new one for each with :func:`make_inflater`."""

    def __init__(self, name: str, make_member: Callable[[bytes], _Member], *, single: bool):
        self._name = name
        self._make_member = make_member
        self._single = single
        self._member: _Member | None = None
        self._members = 0

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield what ``data`` adds to the content.

        Raises:
            InflateError: The data is corrupt.
        """
        while data:
            if self._member is None:
                self._member = self._next_member(data)
            try:
                yield from filter(None, self._member.pieces(data))
            except (zlib.error, zstd.ZstdError) as error:
                raise InflateError(f"the body is not {self._name}: {error}") from error
            if not self._member.eof:
                return
            data = self._member.unused_data
            self._member = None

    def finish(self) -> None:
        """Check that the body ended where its encoding ends.

        Raises:
            InflateError: It was cut.
        """
        if self._member is not None:
            raise InflateError(f"the body ends in the middle of its {self._name} data")

    def _next_member(self, data: bytes) -> _Member:
        self._members += 1
        if self._members > (1 if self._single else MAX_MEMBERS):
            raise InflateError(f"the body goes on after the end of its {self._name} data")
        return self._make_member(data)


def _deflate_member(data: bytes) -> _Member:
    # RFC 9110 means zlib by "deflate", but some senders leave its two header bytes out. The low
    # four bits of a zlib header are 8; raw data whose first block began so would be odd padding.
    return _ZlibMember(zlib.MAX_WBITS if data[0] & 0x0F == 8 else -zlib.MAX_WBITS)


_CODINGS: Final[dict[str, Callable[[], Inflater]]] = {
    "gzip": lambda: Inflater("gzip", lambda _: _ZlibMember(16 + zlib.MAX_WBITS), single=False),
    "deflate": lambda: Inflater("deflate", _deflate_member, single=True),
    "zstd": lambda: Inflater("zstd", lambda _: _ZstdFrame(), single=False),
}
_CODINGS["x-gzip"] = _CODINGS["gzip"]
CODINGS: Final = tuple(sorted(_CODINGS))


def make_inflater(coding: str) -> Inflater | None:
    """The decoder of a content coding such as ``gzip``, or ``None`` for an unknown one."""
    make = _CODINGS.get(coding)
    return make() if make else None
