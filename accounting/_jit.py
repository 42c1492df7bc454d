"""The one place that knows numba: every kernel is compiled with these flags.

``fastmath`` stays off, because the floating-point budgets in ``floating_point.md`` assume that
every operation is rounded as written.  ``cache`` keeps the machine code between processes,
``nogil`` lets two threads share a batch, and ``error_model="numpy"`` drops the Python-style test
for division by zero, which no kernel can reach.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

Function = TypeVar("Function", bound=Callable[..., Any])


def kernel(function: Function) -> Function:
    """Compile ``function`` on first use; the signature follows from the arguments."""
    compiled = numba.njit(cache=True, nogil=True, fastmath=False, error_model="numpy")(function)
    return cast(Function, compiled)
