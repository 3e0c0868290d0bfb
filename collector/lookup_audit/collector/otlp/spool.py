"""Spans that were acknowledged and wait for their parents, on disk until they are published.

One file a request, written and synced before the answer, deleted when the last of its traces has
been published. A killed collector finds them when it starts again.
"""

import logging
import os
import uuid
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec

from lookup_audit.collector.otlp.spans import Span

logger = logging.getLogger(__name__)

_SUFFIX: Final = ".spans"
# Not JSON: it has no word for NaN, and a score that was one must stay one.
_DECODER: Final = msgspec.msgpack.Decoder(list[Span])


class Spool:
    """A directory of waiting spans, of one collector.

    Args:
        directory: Made if it is missing; only its owner may read it.
    """

    def __init__(self, directory: Path):
        self._directory = directory

    def open(self) -> None:
        """Make the directory.

        Raises:
            OSError: It cannot be made.
        """
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)

    def write(self, spans: Sequence[Span]) -> str:
        """Keep spans; they are safe when this returns. Returns the file's name.

        Raises:
            OSError: The disk is full or gone.
        """
        name = uuid.uuid4().hex + _SUFFIX
        path = self._directory / name
        partial = path.with_suffix(".partial")
        with partial.open("wb") as file:
            file.write(msgspec.msgpack.encode(spans))
            file.flush()
            os.fsync(file.fileno())
        partial.rename(path)
        _sync(self._directory)
        return name

    def read(self) -> Iterator[tuple[str, list[Span]]]:
        """What earlier runs left; a file that cannot be read is set aside and named in the log."""
        for path in sorted(self._directory.glob("*" + _SUFFIX)):
            try:
                yield path.name, _DECODER.decode(path.read_bytes())
            except (OSError, msgspec.MsgspecError) as error:
                aside = path.with_suffix(".unreadable")
                logger.warning("The spool file %s is set aside as %s: %s.", path, aside, error)
                path.rename(aside)

    def delete(self, names: Iterable[str]) -> None:
        """Forget files whose spans have been published."""
        for name in names:
            (self._directory / name).unlink(missing_ok=True)


def _sync(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
