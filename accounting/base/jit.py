"""The only module that uses numba: every kernel is compiled with these flags.

``fastmath`` stays off, because the floating-point budgets in ``floating_point.md`` assume that
every operation is rounded as written.  ``cache`` keeps the machine code between processes,
``nogil`` lets two threads share a batch, and ``error_model="numpy"`` drops the Python-style test
for division by zero, which no kernel can reach.

Numba keeps the code next to the source or in the user's cache folder.  If neither is writable, as
in many containers, the code is kept in a private temporary folder, or not at all.

Numba compiles a kernel again when the file that defines it changes, but not when a change in
another file affects a kernel that it calls or a constant that it reads, although both are part of
its code.  Proofs must not run what the sources no longer say, so both are added to what numba
compares.
"""

from __future__ import annotations

import os
import stat
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar, cast

import llvmlite
import llvmlite.binding as llvm
import numba
from numba.core import event
from numba.core.dispatcher import Dispatcher

from accounting.base.progress import compiling

Function = TypeVar("Function", bound=Callable[..., Any])
_TRANSLATION = ("USING_SVML", "DISABLE_JIT", "CPU_NAME", "CPU_FEATURES", "OPT", "LOOP_VECTORIZE")
"""Settings of numba on which the code of an elementary function may depend."""


class _Announcement(event.Listener):
    """Says that code is being compiled, not only read from the cache."""

    def on_start(self, _: event.Event) -> None:
        compiling()

    def on_end(self, _: event.Event) -> None:
        pass


_register: Callable[[str, event.Listener], None] = event.register
_register("numba:compile", _Announcement())


def kernel(function: Function) -> Function:
    """Compile ``function`` on first use; the signature follows from the arguments."""
    try:
        return _compiled(function, cached=True)
    except RuntimeError:  # numba found no folder that it can write to
        folder = _temporary()
    settings: Any = numba.config
    given = settings.CACHE_DIR
    settings.CACHE_DIR = "" if folder is None else str(folder)
    try:
        return _compiled(function, cached=folder is not None)
    except RuntimeError:
        return _compiled(function, cached=False)
    finally:
        settings.CACHE_DIR = given


def _compiled(function: Function, *, cached: bool) -> Function:
    flags: dict[str, Any] = {"nogil": True, "fastmath": False, "error_model": "numpy"}
    compiled: Any = numba.njit(cache=cached, **flags)(function)
    if cached:
        try:
            kept = compiled._cache._cache_file
            kept._source_stamp = kept._source_stamp, _frozen(function)
        except AttributeError:  # numba has changed inside: better slow than out of date
            return _compiled(function, cached=False)
    return cast(Function, compiled)


def cache_folder(function: Callable[..., Any]) -> Path | None:
    """Return the folder in which the machine code of a kernel is kept, None if it is not kept."""
    if not isinstance(function, Dispatcher):
        return None
    path: Any = getattr(function.stats, "cache_path", None)
    return None if path is None else Path(path)


def code_generation() -> str:
    """Return what decides how numba translates elementary functions on this machine."""
    settings: Any = numba.config
    flags = {name: getattr(settings, name, None) for name in _TRANSLATION}
    target = llvm.get_process_triple(), llvm.get_host_cpu_name()
    features = llvm.get_host_cpu_features().flatten()
    return repr((numba.__version__, llvmlite.__version__, flags, target, features))


def _frozen(function: Callable[..., Any]) -> tuple[tuple[str, str], ...]:
    """Return the names of other kernels and of constants that a function uses, each with a hash of
    its file and of what that kernel uses in turn, or with its value."""
    found = []
    for name in sorted(set(function.__code__.co_names)):
        value = function.__globals__.get(name)
        if isinstance(value, Dispatcher):
            other: Any = value.py_func
            of_other = f"{_digest(other.__code__.co_filename)} {_frozen(other)}"
            found.append((name, sha256(of_other.encode()).hexdigest()))
        elif isinstance(value, int | float | str):
            found.append((name, repr(value)))
    return tuple(found)


@cache
def _digest(path: str) -> str:
    return sha256(Path(path).read_bytes()).hexdigest()


@cache
def _temporary() -> Path | None:
    """Make the folder that is used instead; print one warning."""
    folder: Path | None = None
    with suppress(OSError):  # there may be no folder for temporary files either
        folder = _own(Path(tempfile.gettempdir()) / "paramsearch-kernels")
    where = "not kept" if folder is None else f"kept in {folder}"
    print(
        f"warning: numba's cache folders cannot be written to: compiled code is {where}, which "
        "costs seconds at the start; set NUMBA_CACHE_DIR to a folder that can be written to",
        file=sys.stderr,
    )
    return folder


def _own(folder: Path) -> Path | None:
    """Make a folder that nobody else can write to, since numba runs what it finds there."""
    if not hasattr(os, "getuid"):
        return None
    folder = folder.with_name(f"{folder.name}-{os.getuid()}")
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    private = stat.S_ISDIR(found.st_mode) and not found.st_mode & 0o077
    return folder if private and found.st_uid == os.getuid() else None
