"""Files appear whole or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from accounting.base.errors import InvalidParameter


def write_atomically(path: Path, content: bytes, *, private: bool = False) -> None:
    """Write to a temporary file beside the destination, then rename."""
    try:
        handle, name = tempfile.mkstemp(dir=path.parent)
    except OSError as error:
        raise InvalidParameter(f"cannot write {path}: {error.strerror}") from error
    try:
        with os.fdopen(handle, "wb") as out:
            out.write(content)
            out.flush()
            os.fsync(out.fileno())
        if not private:
            umask = os.umask(0)
            os.umask(umask)
            os.chmod(name, 0o666 & ~umask)
        os.replace(name, path)
    except OSError as error:
        os.unlink(name)
        raise InvalidParameter(f"cannot write {path}: {error.strerror}") from error
    except BaseException:
        os.unlink(name)
        raise
