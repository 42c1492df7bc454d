"""The accuracy of elementary functions, measured on this machine before the first proof.

All rounding budgets of floating_point.md assume it.  The functions are those of the kernels, as
numba emits them, of numpy, and of the C library that Python calls; they are compared with balls at
a few thousand points each.  That takes a fraction of a second, and is remembered beside the machine
code of the kernels for as long as processor, numba, numpy and C library stay the same.
"""

from __future__ import annotations

import math
import os
import platform
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path

import numpy as np

from accounting.base.arrays import UNIT_ROUNDOFF, FloatArray
from accounting.base.balls import precision
from accounting.base.errors import InexactArithmetic, InternalError

LARGEST_ERROR = 8
"""Relative error of an elementary function, in units of 2^-53 (floating_point.md, Assumptions)."""
_ALLOWED = LARGEST_ERROR - 1e-6
"""The same, less the rounding of the comparison itself."""
_ALLOWED_OF_ROOT = 1 + 1e-6
"""The same of a square root, which IEEE 754 rounds correctly: more means that it does not."""
_POINTS = 2000
"""Number of arguments of each function, besides those near its zeros."""
_BITS, _LEAST_BITS = 128, 100
"""Working precision of the balls, and their least accuracy."""
_SMALLEST = 2.0**-1022
"""Smallest magnitude of a value that its error is compared with."""
_passed = False
"""Whether the functions of this process were found to be accurate."""


@dataclass(frozen=True)
class _Function:
    """The values that an implementation of a function gives at ``arguments``."""

    name: str
    source: str
    arguments: FloatArray
    values: FloatArray


def check_elementary_functions() -> None:
    """Raise unless the elementary functions are as accurate as floating_point.md assumes.

    The first call of a process does the work, or finds that another process has done it on this
    machine; later calls return at once.

    Raises:
        InexactArithmetic: If a function is not accurate enough at some argument.
    """
    global _passed  # noqa: PLW0603 - a property of the process
    if _passed:
        return
    mark = _mark()
    if mark is None or not os.access(mark, os.F_OK):
        with precision(_BITS):  # one thread at a time: the others find what it found
            if not _passed:
                measure()
                _passed = True
                if mark is not None:
                    with suppress(OSError):  # where nothing can be kept, the next process measures
                        mark.touch()
    _passed = True


def measure() -> None:
    """Compare every function with balls.

    Raises:
        InexactArithmetic: If one is not accurate enough at some argument.
    """
    with precision(_BITS):
        truths = {name: _truth(name, points) for name, points in _arguments().items()}
    for function in _functions():
        top, rest = truths[function.name]
        allowed = _ALLOWED_OF_ROOT if function.name == "sqrt" else _ALLOWED
        with np.errstate(over="ignore", invalid="ignore"):
            # the difference of two close doubles is exact
            error = np.abs((function.values - top) - rest) / np.maximum(np.abs(top), _SMALLEST)
        error[np.isnan(error)] = math.inf
        worst = int(np.argmax(error))
        if not error[worst] <= allowed * UNIT_ROUNDOFF:
            raise InexactArithmetic(
                f"{function.name}({float(function.arguments[worst])!r}) of {function.source} is "
                f"{float(function.values[worst])!r}, off by {error[worst] / UNIT_ROUNDOFF:.3g} "
                f"units of 2^-53, and floating_point.md assumes at most {round(allowed)}: no bound "
                "of the fast evaluators holds here; take other versions of numba, numpy or the C "
                "library, or prove by --tier ball"
            )


def _mark() -> Path | None:
    """The file that says that the functions of this machine passed; None if nothing is kept."""
    from accounting.base.jit import cache_folder, code_generation
    from accounting.evaluator.compiled import elementary_kernels

    folder = cache_folder(elementary_kernels.elementary_values)
    if folder is None:
        return None
    sources = [Path(file).read_bytes() for file in (__file__, elementary_kernels.__file__)]
    key = repr((code_generation(), np.__version__, platform.libc_ver(), sys.version, os.name))
    digest = sha256(b"\0".join([key.encode(), *sources])).hexdigest()
    return folder / f"elementary_functions.{digest[:16]}.passed"


@cache
def _arguments() -> dict[str, FloatArray]:
    """For every function, points of its whole domain in use, and near its zeros."""
    share = (np.arange(_POINTS) + 0.5) * 0.6180339887498949 % 1.0
    tiny = 2.0 ** -np.arange(1.0, 60.0)
    near = np.concatenate([tiny, -tiny, 1.4 * tiny, -1.7 * tiny])
    size = 2.0 ** (2040 * share - 1020) * (1 + share[::-1])
    angle = math.pi * share
    return {
        "exp": np.concatenate([1416 * share - 707, 20 * share - 10, near]),
        "expm1": np.concatenate([759 * share - 50, 4 * share - 2, near]),
        "log": np.concatenate([size, 0.5 + share, 1 + near]),
        "log1p": np.concatenate([1e6 * share, 2 * share - 1 + 1e-9, near]),
        "sqrt": np.concatenate([size, share, 1 + near]),
        "sin": np.concatenate([angle, tiny]),
        "cos": np.concatenate([angle, near]),
        "sinh": np.concatenate([share / 16, tiny]),
    }


def _functions() -> list[_Function]:
    """Every implementation that the evaluators use, at the arguments of its function."""
    from accounting.evaluator.compiled.elementary_kernels import NAMES, elementary_values

    arguments = _arguments()
    count = max(len(arguments[name]) for name in NAMES)
    rows = np.ones((len(NAMES), count))
    for row, name in zip(rows, NAMES, strict=True):
        row[: len(arguments[name])] = arguments[name]
    found = []
    for shape in ((len(NAMES), 1, count), (len(NAMES), count, 1)):
        values = np.empty(shape)
        elementary_values(rows.reshape(shape), values)
        found += [
            _Function(name, "numba", arguments[name], row[: len(arguments[name])])
            for name, row in zip(NAMES, values.reshape(rows.shape), strict=True)
        ]
    for name, points in arguments.items():
        vector: Callable[[FloatArray], FloatArray] = getattr(np, name)
        scalar: Callable[[float], float] = getattr(math, name)
        found.append(_Function(name, "numpy", points, vector(points)))
        values = np.array([scalar(point) for point in points.tolist()])
        found.append(_Function(name, "the C library", points, values))
    return found


def _truth(name: str, points: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The values of a function, each as a double and what is missing from it."""
    from flint import arb

    top, rest = np.empty(len(points)), np.empty(len(points))
    for i, point in enumerate(points.tolist()):
        value = getattr(arb(point), name)()
        if value.rel_accuracy_bits() < _LEAST_BITS:
            raise InternalError(f"{name}({point!r}) is not known to {_LEAST_BITS} bits")
        top[i] = float(value.mid())
        rest[i] = float((value - arb(top[i])).mid())
    return top, rest
