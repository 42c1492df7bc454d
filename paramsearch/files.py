"""Files that appear whole or not at all."""

from __future__ import annotations

import os
import tempfile

from accounting.base.errors import InvalidParameter
from accounting.base.validation import AnyPath, as_path


def write_atomically(path: AnyPath, content: bytes, *, private: bool = False) -> None:
    """Write to a temporary file beside the destination, then rename."""
    path = as_path(path)
    if "\0" in str(path):
        raise InvalidParameter(f"cannot write {str(path)!r:.80}: its name has a null character")
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
