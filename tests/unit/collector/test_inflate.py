import gzip
import zlib

import pytest
from backports import zstd

from lookup_audit.collector.inflate import (
    CODINGS,
    MAX_MEMBERS,
    PIECE_BYTES,
    InflateError,
    make_inflater,
)

TEXT = b'{"a": "some text that repeats, repeats, repeats"}' * 30_000


def raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(data) + packer.flush()


ENCODED = {
    "gzip": gzip.compress(TEXT),
    "x-gzip": gzip.compress(TEXT),
    "deflate": zlib.compress(TEXT),
    "raw deflate": raw_deflate(TEXT),
    "zstd": zstd.compress(TEXT),
}


def inflate(coding: str, data: bytes, chunk: int = 2**30) -> bytes:
    inflater = make_inflater(coding.removeprefix("raw "))
    assert inflater is not None
    pieces = []
    for start in range(0, len(data), chunk):
        pieces += list(inflater.feed(data[start : start + chunk]))
    inflater.finish()
    assert all(0 < len(piece) <= PIECE_BYTES for piece in pieces)
    return b"".join(pieces)


@pytest.mark.parametrize("chunk", [1, 7, 1000, 2**30])
@pytest.mark.parametrize("coding", ENCODED)
def test_the_content_comes_back_whatever_the_chunks(coding: str, chunk: int) -> None:
    assert inflate(coding, ENCODED[coding], chunk) == TEXT


@pytest.mark.parametrize("size", [PIECE_BYTES - 1, PIECE_BYTES, PIECE_BYTES + 1, 3 * PIECE_BYTES])
@pytest.mark.parametrize("coding", ["gzip", "zstd"])
def test_content_of_exactly_full_pieces_ends_where_it_should(coding: str, size: int) -> None:
    compress = gzip.compress if coding == "gzip" else zstd.compress
    assert inflate(coding, compress(b"x" * size)) == b"x" * size


@pytest.mark.parametrize("chunk", [1, 2**30])
@pytest.mark.parametrize("coding", ["gzip", "zstd"])
def test_concatenated_members_are_one_content(coding: str, chunk: int) -> None:
    compress = gzip.compress if coding == "gzip" else zstd.compress
    assert inflate(coding, compress(b"ab") + compress(b"") + compress(b"cd"), chunk) == b"abcd"


@pytest.mark.parametrize("coding", ENCODED)
def test_a_cut_body_is_an_error(coding: str) -> None:
    with pytest.raises(InflateError, match="in the middle"):
        inflate(coding, ENCODED[coding][:-3])


@pytest.mark.parametrize("coding", CODINGS)
def test_a_body_that_is_not_encoded_as_it_says_is_an_error(coding: str) -> None:
    with pytest.raises(InflateError, match="the body is not"):
        inflate(coding, b'{"event_id": "plain"}')


@pytest.mark.parametrize("coding", ENCODED)
def test_bytes_after_the_end_are_an_error(coding: str) -> None:
    with pytest.raises(InflateError):
        inflate(coding, ENCODED[coding] + b"tail")


@pytest.mark.parametrize("coding", ["gzip", "zstd"])
def test_a_body_of_countless_empty_members_is_stopped(coding: str) -> None:
    empty = gzip.compress(b"") if coding == "gzip" else zstd.compress(b"")
    with pytest.raises(InflateError, match="goes on after the end"):
        inflate(coding, empty * (MAX_MEMBERS + 1))


def test_a_zstd_window_beyond_the_standard_is_refused() -> None:
    options: dict[int, int] = {zstd.CompressionParameter.window_log: 27}
    packer = zstd.ZstdCompressor(options=options)
    with pytest.raises(InflateError, match="not zstd"):
        inflate("zstd", packer.compress(b"x" * 1000) + packer.flush())


def test_an_unknown_coding_has_no_decoder() -> None:
    assert make_inflater("br") is None
