"""Files that are either whole or not there."""

import os
import tempfile
from pathlib import Path

from lookup_audit.schemas.errors import ConfigError


def write_whole(path: Path, content: bytes) -> None:
    """Write a file in one step: who reads it sees the old content or the new, never a part.

    Raises:
        ConfigError: The place cannot be written.
    """
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
        try:
            with os.fdopen(handle, "wb") as stream:
                stream.write(content)
            # As open() would have made it, not private as temporary files are.
            mask = os.umask(0)
            os.umask(mask)
            os.chmod(name, 0o666 & ~mask)
            os.replace(name, path)
        except BaseException:
            os.unlink(name)
            raise
    except OSError as error:
        raise ConfigError(f"cannot write {path}: {error.strerror}") from error
