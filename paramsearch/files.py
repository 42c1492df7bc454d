"""Files appear whole or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from accounting.base.errors import InvalidParameter


def check_writable(path: Path, option: str, suffixes: tuple[str, ...] = ()) -> None:
    """Refuse a destination before any work is done for it.

    By os.path, whose questions are answered for a name of any length.
    """
    if suffixes and path.suffix.lower() not in suffixes:
        raise InvalidParameter(f"{option} {path}: the name must end in " + " or ".join(suffixes))
    if not os.path.isdir(path.parent):
        raise InvalidParameter(f"{option} {path}: there is no folder {path.parent}")
    if os.path.exists(path) and not os.path.isfile(path):
        raise InvalidParameter(f"{option} {path}: this is not a regular file")
    if not os.access(path.parent, os.W_OK):
        raise InvalidParameter(f"{option} {path}: the folder {path.parent} cannot be written to")


def destination(output: Path | None, as_json: bool) -> None:
    """Refuse a result that would go nowhere."""
    if output is not None:
        check_writable(output, "--output")
    elif not as_json:
        raise InvalidParameter("where to? give --output FILE, or --json for standard output")


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
