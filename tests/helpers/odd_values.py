"""Values that a document should not have, or hardly ever has."""

from __future__ import annotations

from typing import Any

NUMBERS: list[Any] = [
    0, -0.0, 1, -1, 2, 3, 0.5, 5e-324, 1e-320, 1e-300, 1e-200, 1e-100, 1e-50, 1e-20, 1e-12, 1e-9,
    1e-6, 1e-3, 0.1, 0.9, 0.99, 0.999999, 1 - 1e-12, 1 - 2**-53, 1 + 2**-52, 10, 33.9, 34.1, 50,
    100, 501, 709, 710, 999.0, 1000, 1500, 1e4, 1e6, 1e7, 1e9, 1e12, 10**15, 2**31, 2**53 - 1,
    2**53, 2**63, 2**64, 1e30, 1e100, 1e300, 1e308, 10**400,
]  # fmt: skip
OTHERS: list[Any] = [None, True, False, "", "1", "x" * 300, "\ud800", [], {}, [[]], [0], {"a": 1}]
INTEGERS = [0, 1, -1, 2, 127, 255, 1 << 15, (1 << 31) - 1, -(1 << 31), 1 << 30, -2]
